"""Submodels drawn by repeated Bernoulli thinning: FedMAP, Algorithm 2, with the survival counts (6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fl.errors import MethodError
from fl.masks.granularity import ROUNDING, DoesNotFit, Grain, Units, Weights, top
from fl.models.layout import Layout

Array = np.ndarray
MOST_DRAWS = 200


@dataclass(frozen=True)
class Thinned:
    """mask: the submodel, bool [J].   survived: draws that each place survived, m of (6), [J].   draws: n."""

    mask: Array
    survived: Array
    draws: int


@dataclass(frozen=True)
class Rules:
    """How masks are drawn and their gradient is taken.

    least: draws that thinning makes in any case (E1).     exponent: n of (7): draws, or survivals as printed.
    surrogate: fedpm | identity.     scaled: whether the kept weights are scaled (H7b).
    """

    least: int = 1
    exponent: str = "draws"
    surrogate: str = "fedpm"
    scaled: bool = True


@dataclass(frozen=True)
class Record:
    """What a device counted in a mask round: the draws n of its upload; of a mean step its draws and its cost."""

    draws: float
    draws_per_step: float
    flops: float
    weights: float


def thin(
    grain: Grain,
    p: Array,
    gamma: float,
    rng: np.random.Generator,
    least: int = 1,
    start: Array | None = None,
) -> Thinned:
    """Thins until the budget holds: FedMAP, Algorithm 2, with the survival counts (6).

    Args:
        p: [J].     gamma: budget, share of d.     start: what is thinned, bool [J]; None: everything.
        least: draws that are made in any case; the print has 0 (E1).
    Raises:
        DoesNotFit: after 200 draws.
    """
    candidate = np.ones(grain.count, dtype=bool) if start is None else start
    survived, draws = np.zeros(grain.count, dtype=np.int16), 0
    while draws < least or not grain.fits(candidate, gamma):
        if draws == MOST_DRAWS:
            raise DoesNotFit(
                f"still has {grain.size(candidate):,} of {grain.total:,} weights after {draws} draws, its budget is "
                f"{grain.room(gamma):,}: give it a larger model_budget, or lower mask_lr"
            )
        candidate = grain.survivors(candidate, p, rng)
        survived += candidate
        draws += 1
    return Thinned(candidate, survived, draws)


def thin_for(whom: str, *args: Any, **more: Any) -> Thinned:
    """`thin`, whose complaint names whose submodel it is."""
    try:
        return thin(*args, **more)
    except DoesNotFit as error:
        raise MethodError(f"the submodel of {whom}", str(error)) from error


def expected_draws(p: Array, gamma: float, least: int = 1) -> int:
    """Draws after which the expected share of what is left, mean p^n, is within the budget."""
    left, draws = p.astype(np.float64) ** least, least
    while left.mean() > gamma * ROUNDING and draws < MOST_DRAWS:
        left *= p
        draws += 1
    return draws


def expected_holders(p: Array, gammas: Sequence[float], least: int = 1) -> Array:
    """N_j = sum_k P(j in M_k) [J], where a draw of budget gamma_k takes its expected number of draws: H8."""
    counts = Counter(expected_draws(p, gamma, least) for gamma in gammas)
    return sum(devices * p.astype(np.float64) ** draws for draws, devices in counts.items())


def refilled(grain: Weights, drawn: Thinned, p: Array, gamma: float) -> Array:
    """The mask with the likeliest of the places that the last draw dropped, up to the budget: H5."""
    dropped = (drawn.survived == drawn.draws - 1) & ~drawn.mask
    room = grain.room(gamma) - grain.size(drawn.mask)
    return drawn.mask | (dropped & top(np.where(dropped, p, -1.0), np.zeros(grain.count), room))


def empty_layers(layout: Layout, kept: Array) -> int:
    """Layers that keep no weight at all, whose output then is constant: H10."""
    return sum(not kept[slot.slice].any() for slot in layout.slots if slot.kind == "weight")


def scale(grain: Grain, kept: Array) -> Array:
    """Factor of every weight that makes up for what its layer leaves out of ``kept`` bool [P], float32 [P]: H7b.

    1 / sqrt(share of the layer's weights that are kept); where units are left out, of the weights of its kept units;
    1 for what is no weight.
    """
    factor = np.ones(grain.layout.size, dtype=np.float32)
    for slot in grain.tensors:
        own = kept[slot.slice].reshape(slot.shape[0], -1)
        own = own[own.any(axis=1)] if isinstance(grain, Units) else own
        if own.any():
            factor[slot.slice] = own.mean() ** -0.5
    return factor
