"""Learnable unit patterns: importance scores decide which units compute, FedLPS, eqs. (2)-(11).

A flat model here is w [P + 2 J]: the P coordinates of the architecture, the scores q of its J
hidden units, and the pattern beta, 1 for a unit that is kept. A unit is an output channel or a
neuron; of every layer the share s with the largest scores is kept, and only what is kept computes,
is trained and is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fl.contracts import Array
from fl.masks.unit_masks import hidden, memberships, owners, unit_count
from fl.models.layout import Layout


@dataclass(frozen=True, eq=False)
class HiddenUnits:
    """The J hidden units of a model and the weights that they gate.

    Args:
        layout: Of the architecture.
        rows: A unit that is left out takes along the weights that lead into it, while its bias, its
            norm and what the next layer makes of it stay (FedLPS, released code); else it takes all
            of these along and emits exactly 0.
        device: Where torch computes.
    """

    layout: Layout
    rows: bool
    device: str = "cpu"

    @cached_property
    def counts(self) -> list[int]:
        """Units of each group."""
        return [group.units for group in hidden(self.layout).values()]

    @property
    def total(self) -> int:
        """J."""
        return sum(self.counts)

    def weights(self, w: Tensor) -> Tensor:
        """The view omega [P] of w [P + 2 J]."""
        return w[: self.layout.size]

    def scores(self, w: Tensor) -> Tensor:
        """The view q [J] of w [P + 2 J]."""
        return w[self.layout.size : self.layout.size + self.total]

    def pattern(self, w: Tensor) -> Tensor:
        """The view beta [J] of w [P + 2 J]."""
        return w[self.layout.size + self.total :]

    @torch.no_grad()
    def top(self, scores: Tensor, share: float) -> Tensor:
        """1 for the units with the largest scores of their group: (4), per layer.

        Of equal scores the one with the lower index is kept.
        """
        kept = torch.zeros_like(scores)
        for part, q in zip(kept.split(self.counts), scores.split(self.counts), strict=True):
            part[q.argsort(descending=True, stable=True)[: unit_count(share, len(q))]] = 1.0
        return kept

    def spread(self, gate: Tensor) -> Tensor:
        """Factors per unit [J] -> per weight [P], the product over the units on which it lies."""
        padded = torch.cat([gate, gate.new_ones(1)])
        factor = padded.index_select(0, self._places[0])
        for place in self._places[1:]:
            factor = factor * padded.index_select(0, place)
        return factor

    def sums(self, w: Tensor) -> Tensor:
        """|omega|_J [J]: the sum of the absolute weights that lead into each unit."""
        total = w.new_zeros(self.total + 1)
        return total.index_add_(0, self._owners, self.weights(w).abs())[:-1]

    def standardised(self, values: Tensor) -> Tensor:
        """values [J] standardised within each group; equal values give 0."""
        parts = []
        for part in values.split(self.counts):
            away = part - part.mean()
            parts.append(away / away.square().mean().sqrt().clamp(min=1e-12))
        return torch.cat(parts)

    @cached_property
    def _owners(self) -> Tensor:
        return self._index(owners(self.layout))

    @cached_property
    def _places(self) -> list[Tensor]:
        rows = self.rows
        every = [owners(self.layout, ["weight"])] if rows else memberships(self.layout)
        return [self._index(one) for one in every]

    def _index(self, units: Array) -> Tensor:
        """Unit numbers with J in place of -1."""
        return torch.from_numpy(np.where(units < 0, self.total, units)).to(self.device)


@dataclass(frozen=True, eq=False)
class PatternObjective:
    """What one device minimises in one round: FedLPS, eq. (9), and the model that computes.

    Args:
        units: The hidden units.
        share: The ratio s.
        anchor: omega^r, the weights received [P].
        learned: The scores decide the pattern, anew in every step; else the pattern in w holds for
            the round.
        mu: Weight of (7).
        lam: Weight of (8).
        decay: Weight decay of what is kept.
        every_score: The task loss moves also the scores of units that are left out.
        mean: (7) and (8) as means, (8) per layer; else sums.
        standardise: |omega|_J within its layer before (8).
    """

    units: HiddenUnits
    share: float
    anchor: Tensor
    learned: bool = True
    mu: float = 0.0
    lam: float = 0.0
    decay: float = 0.0
    every_score: bool = False
    mean: bool = False
    standardise: bool = False

    def pattern(self, w: Tensor) -> Tensor:
        """beta [J]: the units that are kept at scores q; (4)."""
        if not self.learned:
            return self.units.pattern(w).detach()
        return self.units.top(self.units.scores(w), self.share)

    def effective(self, w: Tensor, rng: np.random.Generator | None = None) -> Tensor:
        """omega * m [P]; backward as if beta were sigma(q): the straight-through estimator."""
        gate = self.pattern(w)
        if self.learned:
            soft = torch.sigmoid(self.units.scores(w))
            through = soft - soft.detach()  # zero, with the derivative of the sigmoid
            gate = gate + (through if self.every_score else gate * through)
        return self.units.weights(w) * self.units.spread(gate)

    def penalty(self, w: Tensor) -> Tensor:
        """mu (7) + lam (8), and the weight decay; weights that are left out stay as they are."""
        total = w.new_zeros(())
        omega = self.units.weights(w)
        if self.mu or self.decay:
            kept = self.units.spread(self.pattern(w))
            if self.mu:
                away = kept * (omega - self.anchor).square()
                total = total + self.mu * (away.mean() if self.mean else away.sum())
            if self.decay:
                total = total + self.decay / 2 * (kept * omega.square()).sum()
        if self.lam and self.learned:
            scores, target = self.units.scores(w), self.target(w)
            total = total + self.lam * importance_loss(scores, target, self.units.counts, self.mean)
        return total

    @torch.no_grad()
    def target(self, w: Tensor) -> Tensor:
        """sigma(|omega|_J) [J], to which (8) pulls the scores; a constant of the step."""
        sums = self.units.sums(w)
        return torch.sigmoid(self.units.standardised(sums) if self.standardise else sums)

    def settle(self, w: Tensor, velocity: Tensor | None) -> None:
        """Takes the momentum from weights that the next step leaves out: they stay as they are."""
        if velocity is not None:
            self.units.weights(velocity).mul_(self.units.spread(self.pattern(w)))

    def finish(self, done: Sequence[Tensor]) -> Tensor:
        """The personal model (12): what the last scores keep, zero elsewhere, and the scores."""
        w = done[-1].clone()
        self.units.pattern(w).copy_(self.pattern(done[-1]))
        self.units.weights(w).mul_(self.units.spread(self.units.pattern(w)))
        return w


def importance_loss(q: Tensor, target: Tensor, counts: Sequence[int], mean: bool = False) -> Tensor:
    """|q - target|^2: FedLPS, eq. (8).

    Args:
        q: Scores [J].
        target: [J].
        counts: Units of each layer.
        mean: The mean of each layer, summed over the layers; else the sum.
    """
    squares = (q - target).square()
    if not mean:
        return squares.sum()
    return sum((part.mean() for part in squares.split(list(counts))), q.new_zeros(()))
