"""Trainable thresholds of filters and neurons: Kim et al., "SpaFL", NeurIPS 2024.

Equations are of that paper. The weights that feed one output unit are a *row*: c_in k h of a
filter, n_in of a neuron. A row lives where the mean of its |w| is above its threshold tau, eq. (1);
at equality it does not. A flat model here is w [P + T]: the P coordinates of the architecture, then
one threshold for each of T rows, in the order of the layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from fl.accounting import Accounting, StepCost, slot_flops
from fl.contracts import Array
from fl.masks.unit_masks import output_layer
from fl.models.architectures import Architecture
from fl.models.layout import Layout, Slot

Tensor = Any
DEAD = 0.01  # a tensor with no larger share of living rows begins anew: paper "< 1 %", code <=


def carriers(layout: Layout, output: bool = True) -> tuple[Slot, ...]:
    """The tensors whose rows carry thresholds: weights of convolutions and linear layers.

    Shortcuts are among them; not those of an LSTM, where four rows make one unit, and no embedding.
    ``output`` false: not the output layer.
    """
    found, last = [], output_layer(layout)
    for slot in layout.slots:
        axis = slot.axes[0] if slot.kind == "weight" else None
        if axis and axis.blocks == 1 and (output or not last[slot.offset]):
            found.append(slot)
    return tuple(found)


def threshold_slots(weights: Sequence[Slot]) -> tuple[Slot, ...]:
    """The thresholds [n_out] of each tensor, as slots behind the architecture (`Method.extra`)."""
    return tuple(
        Slot(f"{s.name}.threshold", s.shape[:1], 0, "threshold", s.role, s.layer) for s in weights
    )


@dataclass(frozen=True, eq=False)
class ThresholdRows:
    """The rows of a flat model that have thresholds; methods ending in ``_`` work in place.

    Args:
        weights: The L tensors whose rows have thresholds.
        size: P, the coordinates of the architecture.
    """

    weights: tuple[Slot, ...]
    size: int

    @cached_property
    def counts(self) -> list[int]:
        """Rows of each tensor, n_out [L]."""
        return [slot.shape[0] for slot in self.weights]

    @cached_property
    def widths(self) -> list[int]:
        """Weights in a row of each tensor, n_in [L]."""
        return [prod(slot.shape[1:]) for slot in self.weights]

    @cached_property
    def areas(self) -> list[int]:
        """Divisors of (13) in the released code: kernel area of a convolution, else n_in [L]."""
        shapes = (slot.shape for slot in self.weights)
        return [prod(shape[2:]) if len(shape) > 2 else shape[1] for shape in shapes]

    def split(self, per_row: Array) -> list[Array]:
        """The parts of an array [T] that belong to each tensor."""
        return np.split(per_row, np.cumsum(self.counts)[:-1])

    # --- tensors ---------------------------------------------------------------------------------

    def tensors(self, w: Tensor) -> list[Tensor]:
        """Views [n_out, n_in] of the weights of w [P] or [P + T]."""
        return [w[slot.slice].view(slot.shape[0], -1) for slot in self.weights]

    def thresholds(self, w: Tensor) -> Tensor:
        """The view tau [T] of w [P + T]."""
        return w[self.size :]

    def means(self, w: Tensor) -> Tensor:
        """mu [T], the mean |w| of every row."""
        from torch import cat

        pairs = zip(self.tensors(w), self.widths, strict=True)
        return cat([x.abs().sum(dim=1) / n for x, n in pairs])

    def alive(self, w: Tensor) -> Tensor:
        """The rows that compute, bool [T]: eq. (1)."""
        return self.means(w) > self.thresholds(w)

    def living(self, w: Tensor) -> Array:
        """The same as an array."""
        return self.alive(w).cpu().numpy()

    def recovered(self, before: Tensor, after: Tensor) -> int:
        """How many rows were dead before and live after."""
        return int((self.alive(after) & ~self.alive(before)).sum())

    def cut(self, w: Tensor, alive: Tensor, into: Tensor) -> Tensor:
        """Write w [P] or [P + T] into another tensor, with zeros in the dead rows.

        Coordinates behind w stay.
        """
        from torch import mul

        for x, y, living in zip(
            self.tensors(w), self.tensors(into), alive.split(self.counts), strict=True
        ):
            mul(x, living.unsqueeze(1), out=y)
        for rest in self._between:
            into[rest] = w[rest]
        return into

    @cached_property
    def _between(self) -> list[slice]:
        """The coordinates of the architecture that lie in no row."""
        ends = [0, *(slot.slice.stop for slot in self.weights)]
        starts = [*(slot.offset for slot in self.weights), self.size]
        return [slice(*gap) for gap in zip(ends, starts, strict=True) if gap[0] < gap[1]]

    def masked(self, w: Tensor) -> Tensor:
        """The model that computes: w [P + T] with its dead rows at zero, w~ of the paper."""
        return self.cut(w, self.alive(w), w.clone())

    def nudged(self, w: Tensor, change: Tensor, divisor: str = "n_in") -> Tensor:
        """w [P + T] after the last change of the global thresholds: eq. (13) as derived.

        Every weight of row i moves by -sign(sum_j w_ij) change_i / n_in: a row whose threshold rose
        shrinks.

        Args:
            w: The model [P + T].
            change: Of the thresholds [T].
            divisor: n_in; kernel_area divides a convolution by k h alone, as the released code.
        """
        w = w.clone()
        by = self.widths if divisor == "n_in" else self.areas
        for x, delta, n in zip(self.tensors(w), change.split(self.counts), by, strict=True):
            x -= (x.sum(dim=1).sign() * delta / n).unsqueeze(1)
        return w

    def clamp_(self, w: Tensor) -> None:
        """Weights into [-1, 1], thresholds into [0, 1]: their ranges in the paper."""
        for x in self.tensors(w):
            x.clamp_(-1.0, 1.0)
        self.thresholds(w).clamp_(0.0, 1.0)

    def revive_(self, w: Tensor, alive: Tensor, velocity: Tensor | None = None) -> None:
        """Thresholds, and their velocity, to zero in every tensor of which hardly a row lives."""
        flats = [
            self.thresholds(flat).split(self.counts) for flat in (w, velocity) if flat is not None
        ]
        for living, *parts in zip(alive.split(self.counts), *flats, strict=True):
            stays = living.float().mean() > DEAD
            for part in parts:
                part *= stays

    def starting(self, w: Tensor) -> Array:
        """The rows of w [P + T] that compute in the first step from it, bool [T]."""
        w = w.clone()
        self.clamp_(w)
        self.revive_(w, self.alive(w))
        return self.living(w)

    # --- what is left, and what it costs ---------------------------------------------------------

    def shares(self, alive: Array) -> Array:
        """Share of living rows in each tensor [L]; alive [T] may be a mean over steps."""
        return np.array([part.mean() for part in self.split(alive)])

    def densities(self, macs: Mapping[str, float], alive: Array) -> dict[str, float]:
        """What is left where the rows alive bool [T] live, in four readings of "density".

        Args:
            macs: Multiply-adds of a forward pass by the name of the tensor.
            alive: bool [T].

        Returns:
            layer_mean: Mean over tensors (what the paper reports).
            params: Share of the weights.
            macs: Of the multiply-adds, by rows as in (50).
            structural: Of the multiply-adds, without the inputs from dead units too.
        """
        shares = self.shares(alive)
        sizes = np.array([slot.size for slot in self.weights])
        work = np.array([macs[slot.name] for slot in self.weights])
        return {
            "layer_mean": float(shares.mean()),
            "params": float(shares @ sizes / sizes.sum()),
            "macs": float(shares @ work / work.sum()),
            "structural": float(shares * self._living_inputs(alive) @ work / work.sum()),
        }

    def _living_inputs(self, alive: Array) -> Array:
        """Share of the inputs of each tensor that come from living units [L]; the pictures live.

        A unit lives where one of the tensors that are added in it feeds it.
        """
        units: dict[str, Array] = {}
        for slot, part in zip(self.weights, self.split(alive), strict=True):
            if slot.axes[0] is not None:
                group = slot.axes[0].group
                units[group] = part | units.get(group, False)
        shares = np.ones(len(self.weights))
        for i, slot in enumerate(self.weights):
            axis = slot.axes[1]
            if axis is not None and axis.group in units:
                shares[i] = axis.spread(units[axis.group]).mean()
        return shares

    def cost(self, architecture: Architecture, shares: Array, accounting: Accounting) -> StepCost:
        """Cost of a step where ``shares`` [L] of the rows compute: (50), with densities as in text.

        Whole rows are left out, so that all of their work is saved. Also frozen weights need their
        gradient, for (9).
        """
        share = dict(zip((slot.name for slot in self.weights), shares, strict=True))
        weights = flops = 0.0
        for slot, forward, backward in slot_flops(
            architecture, np.ones(self.size, dtype=bool), accounting
        ):
            left = slot.size * float(share.get(slot.name, 1.0))
            weights += left
            flops += left * (forward + backward)
        return StepCost(weights, 0.0, flops, 0.0)

    def upkeep(self, passes: float) -> float:
        """FLOPs of means and masks in so many passes: 1.5 d multiply-adds each, as in (50)."""
        return 2 * 1.5 * sum(slot.size for slot in self.weights) * passes
