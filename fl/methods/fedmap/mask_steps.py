"""Steps of a FedMAP device on the mask logits s, p = sigmoid(s)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from functools import partial

import numpy as np
import torch
from torch import Tensor

from fl.accounting import StepCost
from fl.contracts import Array
from fl.masks.straight_through import StraightThrough, slope
from fl.methods.fedmap.fedmap_parameters import FedMapParameters
from fl.methods.fedmap.granularity import Granularity, PerUnit, PerWeight
from fl.methods.fedmap.thinning import Record, scale, thin
from fl.models.layout import along

LARGEST_LOGIT = 13.8  # p stays below 1 - 1e-6, so that thinning comes to an end


def spread(places: Granularity, chosen: Tensor) -> Tensor:
    """`Granularity.expand`, differentiable: values [J] of places -> factors [P] of weights."""
    if isinstance(places, PerWeight):
        if places.count == places.layout.size:
            return chosen
        where = torch.from_numpy(places.maskable).to(chosen.device)
        return torch.ones_like(where, dtype=chosen.dtype).masked_scatter(where, chosen)
    assert isinstance(places, PerUnit)
    units, pieces = places.by_group(chosen), []
    for slot in places.layout.slots:
        factor = chosen.new_ones(slot.shape)
        for place, axis in enumerate(slot.axes):
            if axis is not None and axis.group in units:
                values = units[axis.group].repeat_interleave(axis.repeat).repeat(axis.blocks)
                factor = factor * along(values, place, len(slot.shape))
        pieces.append(factor.reshape(-1))
    return torch.cat(pieces)


class MaskSteps:
    """The mask steps of one device in one round: FedMAP, Algorithm 1 with Proposition 4.1.

    A step draws a parent within the budget, shrinks it once more to the child that computes, and
    gives every place of the parent its gradient (7). The model is [x, s, record]; x stays. What a
    device counts goes into the record, since only the training knows it: see `Record`.

    Args:
        device: k.
        settings: How masks are drawn, and their gradient is taken.
        gamma: Budget of the device.
        cost: Masks of child and parent, bool [P] -> what a step with them costs.
    """

    def __init__(
        self,
        device: int,
        settings: FedMapParameters,
        gamma: float,
        cost: Callable[[Array, Array], StepCost],
    ) -> None:
        places, least, owner = settings.places, settings.least_draws, f"device {device}"
        self.settings, self.places, self.cost = settings, places, cost
        self.thin = partial(thin, places, gamma=gamma, least=least, owner=owner)
        size = places.layout.size
        self.x, self.s = slice(0, size), slice(size, size + places.count)
        self.seen: list[tuple[float, float, float]] = []

    def begin(self, start: Tensor) -> Tensor:
        """Start of the phase; a job may run twice, and its record then begins anew."""
        self.seen = []
        return start

    def effective(self, w: Tensor, rng: np.random.Generator) -> Tensor:
        """The weights [P] that compute in this step: x on the child, differentiable by s."""
        places, settings = self.places, self.settings
        p = probability(w[self.s])
        chances = p.cpu().numpy()
        parent = self.thin(p=chances, rng=rng)
        child = places.survivors(parent.mask, chances, rng)
        draws = parent.draws + 1
        kept = places.expand(child)
        cost = self.cost(kept, places.expand(parent.mask))
        self.seen.append((draws, cost.flops, cost.weights))
        value, candidate = (torch.from_numpy(mask).to(p.device) for mask in (child, parent.mask))
        survivals = torch.from_numpy(parent.survived).to(p) + value.to(p.dtype)
        if settings.indicator == "printed":
            candidate = survivals >= survivals.max() - 1
        exponent = draws if settings.exponent == "draws" else survivals
        back = slope(p, exponent, settings.surrogate) * candidate
        x = w[self.x].detach()
        if settings.mask_scaler:
            x = x * torch.from_numpy(scale(places, kept)).to(p.device)
        return x * spread(places, StraightThrough.apply(w[self.s], value.to(p.dtype), back))

    def finish(self, done: list[Tensor]) -> Tensor:
        """[x, s, record]; the draws of the upload are still to come."""
        w = done[-1].clone()
        draws, flops, weights = np.mean(self.seen, axis=0) if self.seen else (0.0, 0.0, 0.0)
        w[self.s.stop :] = torch.tensor(astuple(Record(0.0, draws, flops, weights))).to(w)
        return w


def probability(logits: Tensor) -> Tensor:
    """p = sigmoid(s), kept away from 0 and 1."""
    return logits.detach().clamp(-LARGEST_LOGIT, LARGEST_LOGIT).sigmoid()
