"""What has a keep-probability in FedMAP, a weight or a unit, and how large a choice of them is.

A choice is bool [J], a probability p [J] in (0, 1); a budget gamma is a share of the d maskable
weights: those of convolutions, linear and recurrent layers, of the output layer too. The rest does
not count: it is kept, or goes along with its unit. The paper says neither which tensors are masked
nor at which granularity (docs/papers/fedmap.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import floor, prod
from typing import Any

import numpy as np

from fl.contracts import Array
from fl.errors import MethodError
from fl.masks import unit_masks as masks
from fl.methods.fedmap.top_k import first, top
from fl.models.layout import Group, Layout, Slot, UnitAxis

ROUNDING = 1 + 1e-12  # so that 0.29 * 100 = 28.999999999999996 is 29


class Granularity(ABC):
    """J places that have a keep-probability; each of the ``layers`` keeps at least ``least``."""

    layout: Layout
    least: int

    @property
    @abstractmethod
    def layers(self) -> tuple[slice, ...]:
        """The places of each layer, slices of [0, J)."""

    @abstractmethod
    def sizes(self, chosen: Array) -> list[int]:
        """Maskable weights that the choice bool [J] keeps of every tensor that can be masked."""

    @abstractmethod
    def expand(self, chosen: Array) -> Array:
        """The choice bool [J] as weights bool [P] of the architecture; the rest follows."""

    @abstractmethod
    def choice_of(self, kept: Array) -> Array:
        """The inverse of `expand`: weights bool [P] that are kept -> the choice bool [J]."""

    @abstractmethod
    def magnitude(self, w: Array) -> Array:
        """What breaks ties between equal probabilities: |w| [J]."""

    @property
    def count(self) -> int:
        """J, how many keep-probabilities there are."""
        return self.layers[-1].stop

    @cached_property
    def tensors(self) -> tuple[Slot, ...]:
        """What can be masked: the weights of convolutions, linear and recurrent layers."""
        return tuple(slot for slot in self.layout.slots if slot.kind == "weight")

    def size(self, chosen: Array) -> int:
        """Maskable weights that the choice bool [J] keeps."""
        return sum(self.sizes(chosen))

    @cached_property
    def total(self) -> int:
        """d, the maskable weights of the whole model."""
        return self.size(np.ones(self.count, dtype=bool))

    def room(self, gamma: float) -> int:
        """Maskable weights within the budget: floor(gamma d)."""
        return floor(gamma * self.total * ROUNDING)

    def fits(self, chosen: Array, gamma: float) -> bool:
        """FedMAP, Section 3: |M|_1 <= gamma d."""
        return self.size(chosen) <= self.room(gamma)

    def survivors(self, candidate: Array, p: Array, rng: np.random.Generator) -> Array:
        """One draw M ~ Bern(p M): FedMAP, Algorithm 2 and Proposition 4.1 (printed "Beta")."""
        left = candidate & (rng.random(len(p), dtype=np.float32) < p)
        return self.guarded(left, candidate, p) if self.least else left

    def guarded(self, left: Array, among: Array, p: Array) -> Array:
        """``left``, filled up with the likeliest of ``among`` where a layer has too few."""
        for layer in self.layers:
            if np.count_nonzero(left[layer]) < self.least:
                rank = np.argsort(-np.where(among[layer], p[layer], -1.0), kind="stable")
                best = rank[: min(self.least, np.count_nonzero(among[layer]))]
                left[layer.start + best] = True
        return left

    def largest(self, p: Array, w: Array, gamma: float) -> Array:
        """TopK: the most places of largest p within the budget, bool [J].

        Of equal p those of larger |w| come first, of equal |w| those of lower index.

        Args:
            p: Keep-probabilities [J].
            w: Weights [P].
            gamma: Budget.

        Raises:
            MethodError: What every layer keeps at least is more than the budget.
        """
        order = np.lexsort((-self.magnitude(w), -p))
        needed = np.zeros(self.count, dtype=bool)
        for layer in self.layers:
            needed[order[(order >= layer.start) & (order < layer.stop)][: self.least]] = True
        order = np.concatenate([order[needed[order]], order[~needed[order]]])
        low, high = int(needed.sum()), self.count
        if not self.fits(needed, gamma):
            raise self.too_small(self.size(needed), gamma)
        while low < high:  # bisection: the size grows with the number of places
            middle = (low + high + 1) // 2
            if self.fits(first(order, middle), gamma):
                low = middle
            else:
                high = middle - 1
        return first(order, low)

    def too_small(self, needed: int, gamma: float) -> MethodError:
        """The sentence about a budget below what every layer keeps at least."""
        found = f"has at least {needed:,} of {self.total:,} weights, its budget is"
        return MethodError(
            "the submodel", f"{found} {self.room(gamma):,}: give it a larger model_budget"
        )


@dataclass(frozen=True, eq=False)
class PerWeight(Granularity):
    """One probability per weight of convolutions, linear and recurrent layers.

    Biases, norms and embeddings are always kept. A layer can lose all its weights unless ``least``
    is given.
    """

    layout: Layout
    least: int = 0

    @cached_property
    def layers(self) -> tuple[slice, ...]:
        ends = np.cumsum([0, *(slot.size for slot in self.tensors)]).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @cached_property
    def maskable(self) -> Array:
        """Which weights of the architecture these are, bool [P]."""
        return self.layout.where(lambda slot: slot.kind == "weight")

    def sizes(self, chosen: Array) -> list[int]:
        return [int(np.count_nonzero(chosen[layer])) for layer in self.layers]

    def expand(self, chosen: Array) -> Array:
        mask = ~self.maskable
        mask[self.maskable] = chosen
        return mask

    def choice_of(self, kept: Array) -> Array:
        return kept[: self.layout.size][self.maskable]

    def magnitude(self, w: Array) -> Array:
        return np.abs(self.choice_of(w))

    def largest(self, p: Array, w: Array, gamma: float) -> Array:
        """As of any granularity, without sorting all of it where no layer has a least."""
        if self.least:
            return super().largest(p, w, gamma)
        return top(p, self.magnitude(w), self.room(gamma))

    def largest_of_each(self, p: Array, w: Array, gamma: float) -> Array:
        """TopK of every layer by itself; what the least of some is too much the largest give.

        Raises:
            MethodError: As `largest`.
        """
        score, mask = self.magnitude(w), np.zeros(self.count, dtype=bool)
        sizes = np.array([layer.stop - layer.start for layer in self.layers])
        least = np.minimum(self.least, sizes)
        rooms = np.maximum(least, np.floor(gamma * sizes * ROUNDING).astype(int))
        if least.sum() > self.room(gamma):
            raise self.too_small(int(least.sum()), gamma)
        while rooms.sum() > self.room(gamma):
            largest = int(np.argmax(rooms - least))
            over = rooms.sum() - self.room(gamma)
            rooms[largest] -= min(over, rooms[largest] - least[largest])
        for layer, room in zip(self.layers, rooms.tolist(), strict=True):
            mask[layer] = top(p[layer], score[layer], room)
        return mask


@dataclass(frozen=True, eq=False)
class PerUnit(Granularity):
    """One probability per hidden unit, so that submodels are smaller dense models.

    Thinning goes on until the dense submodel fits; every layer keeps a unit, and the output layer
    all of its own.
    """

    layout: Layout
    least: int = 1

    @cached_property
    def layers(self) -> tuple[slice, ...]:
        ends = np.cumsum([0, *(group.units for group in self._hidden)]).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @cached_property
    def _hidden(self) -> list[Group]:
        return list(masks.hidden(self.layout).values())

    def by_group(self, values: Any) -> dict[str, Any]:
        """Group -> its part of ``values`` [J], an array or a tensor."""
        return {
            group.name: values[layer]
            for group, layer in zip(self._hidden, self.layers, strict=True)
        }

    def sizes(self, chosen: Array) -> list[int]:
        kept = {name: int(units.sum()) for name, units in self.by_group(chosen).items()}
        return [prod(lengths(slot.shape, slot.axes, kept)) for slot in self.tensors]

    def expand(self, chosen: Array) -> Array:
        return self.layout.expand(self.by_group(chosen))

    def choice_of(self, kept: Array) -> Array:
        units = self.layout.kept_units(kept)
        return np.concatenate([units[group.name] for group in self._hidden])

    def magnitude(self, w: Array) -> Array:
        return np.concatenate(list(masks.unit_sums(self.layout, np.abs(w)).values()))


def lengths(
    shape: tuple[int, ...], axes: tuple[UnitAxis | None, ...], kept: dict[str, int]
) -> list[int]:
    """The dimensions of a tensor with so many units kept of each group."""
    return [
        kept[axis.group] * axis.repeat * axis.blocks
        if axis is not None and axis.group in kept
        else size
        for size, axis in zip(shape, axes, strict=True)
    ]
