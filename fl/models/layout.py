"""A model is one flat vector w [P]; a layout says which slice is which tensor, of which layer, role and units.

A *unit* is an output channel or a neuron. Units come in groups, one per layer that makes them; tensors that are added
together share one group. An `UnitAxis` says how a dimension of a tensor is made of the units of a group, so that a choice
of units becomes a mask of coordinates (`Layout.expand`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod
from operator import and_
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class UnitAxis:
    """One dimension of a tensor in units of a group: index = (block * units + unit) * repeat + r.

    repeat: neighbours that belong to one unit (pixels of a channel, flattened).   blocks: copies of all (LSTM gates).
    """

    group: str
    repeat: int = 1
    blocks: int = 1

    def units(self, size: int) -> int:
        """Units behind a dimension of that size."""
        return size // (self.repeat * self.blocks)

    def spread(self, kept: Array) -> Array:
        """Units bool [units] -> indices of the dimension, bool [blocks * units * repeat]."""
        return np.tile(np.repeat(kept, self.repeat), self.blocks)


@dataclass(frozen=True)
class Group:
    """Units that are kept or left out together in every tensor. hidden: not those of the output layer."""

    name: str
    units: int
    hidden: bool


@dataclass(frozen=True)
class Slot:
    """One tensor of the model: the coordinates [offset, offset + size) of w."""

    name: str  # "conv1.weight"
    shape: tuple[int, ...]
    offset: int
    kind: str  # weight (conv, linear, LSTM) | bias | norm (scale and shift) | embedding; a method's own slots: its word
    role: str  # features | classifier
    layer: int  # its layer's place in the architecture
    axes: tuple[UnitAxis | None, ...] = ()  # one per dimension; None: not divided into units

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def slice(self) -> slice:
        return slice(self.offset, self.offset + self.size)


@dataclass(frozen=True)
class Layout:
    """The slots of a flat model, in order and without gaps. output: the group of the output layer."""

    slots: tuple[Slot, ...]
    output: str | None = None

    @cached_property
    def size(self) -> int:
        """P, the number of weights and biases."""
        return sum(slot.size for slot in self.slots)

    def extended(self, slots: Iterable[Slot]) -> Layout:
        """This layout with further slots behind its own, in their order; their offsets are set here."""
        every, end = list(self.slots), self.size
        for slot in slots:
            every.append(replace(slot, offset=end))
            end += slot.size
        return Layout(tuple(every), self.output)

    def split(self, w: Any) -> list[Any]:
        """Views of w [P] (numpy or torch), one per slot, in the slot's shape."""
        return [w[slot.slice].reshape(slot.shape) for slot in self.slots]

    def named(self, w: Any) -> dict[str, Any]:
        """Slot name -> view of w [P]."""
        return dict(zip((slot.name for slot in self.slots), self.split(w), strict=True))

    # --- masks of coordinates --------------------------------------------------------------------------------------

    def where(self, wanted: Callable[[Slot], bool]) -> Array:
        """Mask bool [P], true on the slots that are wanted."""
        mask = np.zeros(self.size, dtype=bool)
        for slot in self.slots:
            mask[slot.slice] = wanted(slot)
        return mask

    def role(self, role: str) -> Array:
        """Mask bool [P] of one role: features, classifier, or none (nothing is true). Shared: do not write to it."""
        if role not in self._roles:
            self._roles[role] = self.where(lambda slot: slot.role == role)
        return self._roles[role]

    @cached_property
    def _roles(self) -> dict[str, Array]:
        return {"none": np.zeros(self.size, dtype=bool)}

    # --- units -----------------------------------------------------------------------------------------------------

    @cached_property
    def groups(self) -> dict[str, Group]:
        """The groups of units by name, in the order of the model."""
        found: dict[str, Group] = {}
        for slot in self.slots:
            for axis, size in zip(slot.axes, slot.shape, strict=False):
                if axis is not None and axis.group not in found:
                    found[axis.group] = Group(
                        axis.group, axis.units(size), axis.group != self.output
                    )
        return found

    def expand(self, kept: Mapping[str, Array], rows: bool = False) -> Array:
        """Units that are kept -> the coordinates that are kept, bool [P].

        A coordinate is kept where all its axes lie on kept units. Groups that are not named are kept entirely, and so
        are slots without axes.

        Args:
            kept: group -> bool [units].
            rows: count only the outputs of weights; biases, norms and the inputs of the next layer stay: the row
                accounting of FedLPS.
        """
        for name, units in kept.items():
            if name not in self.groups or np.shape(units) != (self.groups[name].units,):
                known = ", ".join(f"{g.name} [{g.units}]" for g in self.groups.values())
                raise ValueError(
                    f"there is no group {name} of {np.size(units)} units; there are {known}"
                )
        mask = np.ones(self.size, dtype=bool)
        for slot in self.slots:
            if rows and slot.kind != "weight":
                continue
            ones = [
                along(axis.spread(np.asarray(kept[axis.group], dtype=bool)), place, len(slot.shape))
                for place, axis in enumerate(slot.axes[:1] if rows else slot.axes)
                if axis is not None and axis.group in kept
            ]
            if ones:
                mask[slot.slice].reshape(slot.shape)[...] = reduce(and_, ones)
        return mask


def along(values: Array, place: int, dimensions: int) -> Array:
    """values [n] as an array with n entries in dimension ``place`` and one in every other."""
    return values.reshape([-1 if i == place else 1 for i in range(dimensions)])
