"""Submodels drawn by repeated Bernoulli thinning: FedMAP, Algorithm 2, eq. (6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fl.contracts import Array
from fl.errors import MethodError
from fl.methods.fedmap.granularity import ROUNDING, Granularity, PerUnit, PerWeight
from fl.methods.fedmap.top_k import top
from fl.models.layout import Layout

MOST_DRAWS = 200


@dataclass(frozen=True)
class Thinned:
    """A drawn submodel.

    Args:
        mask: The submodel, bool [J].
        survived: Draws that each place survived, m of (6), int [J].
        draws: How many there were, n.
    """

    mask: Array
    survived: Array
    draws: int


@dataclass(frozen=True)
class Record:
    """What a device counts in a mask round.

    Args:
        draws: n of its upload.
        draws_per_step: Of a mean step.
        flops: Of a mean step and sample.
        weights: That a mean step updates.
    """

    draws: float
    draws_per_step: float
    flops: float
    weights: float


def thin(
    places: Granularity,
    p: Array,
    gamma: float,
    rng: np.random.Generator,
    least: int = 1,
    start: Array | None = None,
    owner: str = "a device",
) -> Thinned:
    """Thin until the budget holds: FedMAP, Algorithm 2, with the survival counts (6).

    Args:
        places: What is drawn.
        p: Keep-probabilities [J].
        gamma: Budget, share of d.
        rng: Source of the draws.
        least: Draws that are made in any case; the print has 0.
        start: What is thinned, bool [J]; None: everything.
        owner: Whose submodel it is, for the error.

    Raises:
        MethodError: It does not fit after 200 draws.
    """
    candidate = np.ones(places.count, dtype=bool) if start is None else start
    survived, draws = np.zeros(places.count, dtype=np.int16), 0
    while draws < least or not places.fits(candidate, gamma):
        if draws == MOST_DRAWS:
            raise MethodError(
                f"the submodel of {owner}",
                f"still has {places.size(candidate):,} of {places.total:,} weights after {draws} "
                f"draws, its budget is {places.room(gamma):,}: give it a larger model_budget, or "
                "lower mask_lr",
            )
        candidate = places.survivors(candidate, p, rng)
        survived += candidate
        draws += 1
    return Thinned(candidate, survived, draws)


def expected_draws(p: Array, gamma: float, least: int = 1) -> int:
    """Draws after which the expected share of what is left, mean p^n, is within the budget."""
    left, draws = p.astype(np.float64) ** least, least
    while left.mean() > gamma * ROUNDING and draws < MOST_DRAWS:
        left *= p
        draws += 1
    return draws


def expected_holders(p: Array, gammas: Sequence[float], least: int = 1) -> Array:
    """N_j = sum_k P(j in M_k) [J], where budget gamma_k takes its expected number of draws."""
    counts = Counter(expected_draws(p, gamma, least) for gamma in gammas)
    each = [devices * p.astype(np.float64) ** draws for draws, devices in counts.items()]
    return sum(each[1:], each[0])


def unbiased_rate(holders: Array, devices: int, sampled: int) -> Array:
    """Server step size 1 / P(at least one of N_j holders is sampled) [J]: FedMAP, (2).

    Args:
        holders: N_j [J]; expected numbers need not be whole. 0 gives a step of 0.
        devices: N.
        sampled: A, drawn uniformly.
    """
    missed = np.ones_like(holders, dtype=np.float64)
    for a in range(sampled):
        missed *= np.maximum(devices - holders - a, 0.0) / (devices - a)
    return np.divide(1.0, 1.0 - missed, out=np.zeros_like(missed), where=holders > 0)


def refilled(places: PerWeight, drawn: Thinned, p: Array, gamma: float) -> Array:
    """The mask with the likeliest of the places that the last draw dropped, up to the budget."""
    dropped = (drawn.survived == drawn.draws - 1) & ~drawn.mask
    room = places.room(gamma) - places.size(drawn.mask)
    return drawn.mask | (dropped & top(np.where(dropped, p, -1.0), np.zeros(places.count), room))


def empty_layers(layout: Layout, kept: Array) -> int:
    """Layers that keep no weight at all, whose output then is constant."""
    return sum(not kept[slot.slice].any() for slot in layout.slots if slot.kind == "weight")


def scale(places: Granularity, kept: Array) -> Array:
    """Factor of every weight that makes up for what its layer leaves out, float32 [P].

    1 / sqrt(share of the layer's weights that are kept); where units are left out, of the weights
    of its kept units; 1 for what is no weight. Not in the paper.

    Args:
        places: Weights or units.
        kept: Which weights are kept, bool [P].
    """
    factor = np.ones(places.layout.size, dtype=np.float32)
    for slot in places.tensors:
        own = kept[slot.slice].reshape(slot.shape[0], -1)
        own = own[own.any(axis=1)] if isinstance(places, PerUnit) else own
        if own.any():
            factor[slot.slice] = own.mean() ** -0.5
    return factor
