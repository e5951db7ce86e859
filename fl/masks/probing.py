"""How a device of FedMAP learns where its submodel should lie: steps on the mask logits s, p = sigmoid(s)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from functools import partial

import numpy as np
import torch
from torch import Tensor

from fl.accounting import StepCost
from fl.masks.granularity import Grain, Units
from fl.masks.thinning import Record, Rules, scale, thin_for

Array = np.ndarray
LARGEST_LOGIT = 13.8  # p stays below 1 - 1e-6, so that thinning comes to an end: H12


class StraightThrough(torch.autograd.Function):
    """Gives ``value`` [J] in the forward pass, and ``slope`` [J] as its derivative in the backward pass."""

    @staticmethod
    def forward(ctx, logits: Tensor, value: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(slope)
        return value

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return gradient * slope, None, None


def slope(p: Tensor, draws: int | Tensor, surrogate: str = "fedpm") -> Tensor:
    """d mask / d s [J] of a place that is a candidate in the last of n draws.

    fedpm: (p^2 - p^(2n+2)) / (1 + p), FedMAP, (7), (10), (11): the backward pass of a draw with probability q is q.
    identity: p (1 - p^n): the backward pass of a draw is 1.
    """
    if surrogate == "identity":
        return p * (1.0 - p**draws)
    return (p**2 - p ** (2 * draws + 2)) / (1.0 + p)


def spread(grain: Grain, chosen: Tensor) -> Tensor:
    """`Grain.expand`, differentiable: values [J] of places -> factors [P] of the architecture's weights."""
    if not isinstance(grain, Units):
        if grain.count == grain.layout.size:
            return chosen
        where = torch.from_numpy(grain.maskable).to(chosen.device)
        return torch.ones_like(where, dtype=chosen.dtype).masked_scatter(where, chosen)
    units, pieces = grain.by_group(chosen), []
    for slot in grain.layout.slots:
        factor = chosen.new_ones(slot.shape)
        for place, axis in enumerate(slot.axes):
            if axis is not None and axis.group in units:
                values = units[axis.group].repeat_interleave(axis.repeat).repeat(axis.blocks)
                factor = factor * values.view(
                    [-1 if i == place else 1 for i in range(len(slot.shape))]
                )
        pieces.append(factor.reshape(-1))
    return torch.cat(pieces)


class MaskSteps:
    """The mask steps of one device in one round: FedMAP, Algorithm 1, with the shrink step of Proposition 4.1.

    A step draws a parent within the budget, shrinks it once more to the child that computes, and gives every place of
    the parent its gradient (7). The model is [x, s, record]; x stays. What a device counts goes into the record, since
    only the training tells: see `Record`.

    Args:
        device: k.     gamma: its budget.     cost: (child, parent) bool [P] -> what a step with them costs.
        upload: the stream of the last thinning, whose counts are sent.
    """

    def __init__(
        self,
        device: int,
        grain: Grain,
        rules: Rules,
        gamma: float,
        cost: Callable[[Array, Array], StepCost],
        upload: Callable[[], np.random.Generator],
    ) -> None:
        self.grain, self.rules, self.cost, self.upload = grain, rules, cost, upload
        self.thin = partial(thin_for, f"device {device}", grain, gamma=gamma, least=rules.least)
        size = grain.layout.size
        self.x, self.s = slice(0, size), slice(size, size + grain.count)
        self.seen: list[tuple[float, float, float]] = []

    def begin(self, start: Tensor) -> Tensor:
        """A job may run twice: its record then begins anew."""
        self.seen = []
        return start

    def effective(self, w: Tensor, rng: np.random.Generator) -> Tensor:
        """The weights [P] that compute in this step: x on the child, differentiable by s."""
        grain, rules = self.grain, self.rules
        p = probability(w[self.s])
        chances = p.cpu().numpy()
        parent = self.thin(p=chances, rng=rng)
        child = grain.survivors(parent.mask, chances, rng)
        draws = parent.draws + 1
        kept = grain.expand(child)
        cost = self.cost(kept, grain.expand(parent.mask))
        self.seen.append((draws, cost.flops, cost.weights))
        value, candidate = (torch.from_numpy(mask).to(p.device) for mask in (child, parent.mask))
        exponent = draws if rules.exponent == "draws" else draws - 1 + value.to(p.dtype)
        back = slope(p, exponent, rules.surrogate) * candidate
        x = w[self.x].detach()
        if rules.scaled:
            x = x * torch.from_numpy(scale(grain, kept)).to(p.device)
        return x * spread(grain, StraightThrough.apply(w[self.s], value.to(p.dtype), back))

    def finish(self, done: list[Tensor]) -> Tensor:
        """[x, m, record]: the survival counts of one more thinning, without a shrink draw."""
        w = done[-1].clone()
        drawn = self.thin(p=probability(w[self.s]).cpu().numpy(), rng=self.upload())
        w[self.s] = torch.from_numpy(drawn.survived).to(w)
        draws, flops, weights = np.mean(self.seen, axis=0) if self.seen else (0.0, 0.0, 0.0)
        record = Record(drawn.draws, draws, flops, weights)
        w[self.s.stop :] = torch.tensor(astuple(record)).to(w)
        return w


def probability(logits: Tensor) -> Tensor:
    """p = sigmoid(s), kept away from 0 and 1: H12."""
    return logits.detach().clamp(-LARGEST_LOGIT, LARGEST_LOGIT).sigmoid()
