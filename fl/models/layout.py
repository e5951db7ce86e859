"""Layout of a model in one flat vector w [P]: which slice is which tensor, layer, role and units.

A *unit* is an output channel or a neuron. Units form groups, one per layer that computes them;
tensors that are added together share one group. A `UnitAxis` describes how a dimension of a tensor
is made of the units of a group, so that a choice of units becomes a mask of coordinates
(`Layout.expand`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod
from operator import and_
from typing import Any

import numpy as np

from fl.contracts import Array
from fl.errors import ModelError

ROLES = ("features", "classifier", "personal", "none")  # of the weights of any model


@dataclass(frozen=True)
class UnitAxis:
    """One dimension of a tensor in units of a group.

    The place of a unit is (block * units + unit) * repeat + r.

    Args:
        group: name of the group.
        repeat: neighbours that belong to one unit, such as the pixels of a flattened channel.
        blocks: copies of all units, such as the gates of an LSTM.
        cut: may units be left out?
    """

    group: str
    repeat: int = 1
    blocks: int = 1
    cut: bool = True

    def units(self, size: int) -> int:
        """Units behind a dimension of that size."""
        return size // (self.repeat * self.blocks)

    def spread(self, kept: Array) -> Array:
        """Units bool [units] -> places of the dimension, bool [blocks * units * repeat]."""
        return np.tile(np.repeat(kept, self.repeat), self.blocks)


@dataclass(frozen=True)
class Group:
    """Units that are kept or left out together in every tensor.

    hidden: may be left out; units of the output layer may not.
    """

    name: str
    units: int
    hidden: bool


@dataclass(frozen=True)
class Slot:
    """One tensor of the model: the coordinates [offset, offset + size) of w.

    Args:
        name: "conv1.weight".
        shape: its dimensions.
        offset: first coordinate.
        kind: weight (convolution, linear, LSTM) | bias | norm (scale and shift) | embedding, or a
            method's own word for slots that it adds.
        role: features | classifier.
        layer: place of its layer in the architecture.
        axes: one per dimension; None: not divided into units.
    """

    name: str
    shape: tuple[int, ...]
    offset: int
    kind: str
    role: str
    layer: int
    axes: tuple[UnitAxis | None, ...] = ()

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def slice(self) -> slice:
        return slice(self.offset, self.offset + self.size)


@dataclass(frozen=True)
class Layout:
    """Slots of a flat model, in order and without gaps.

    output: the group of the output layer. no_units: why the groups of hidden units are not known.
    """

    slots: tuple[Slot, ...]
    output: str | None = None
    no_units: str | None = None

    @cached_property
    def size(self) -> int:
        """P, the number of weights and biases."""
        return sum(slot.size for slot in self.slots)

    def extended(self, slots: Iterable[Slot]) -> Layout:
        """This layout with further slots behind its own; their offsets are set here."""
        every, end = list(self.slots), self.size
        for slot in slots:
            every.append(replace(slot, offset=end))
            end += slot.size
        return replace(self, slots=tuple(every))

    def split(self, w: Any) -> list[Any]:
        """Views of w [P] (numpy or torch), one per slot, in the slot's shape."""
        return [w[slot.slice].reshape(slot.shape) for slot in self.slots]

    def named(self, w: Any) -> dict[str, Any]:
        """Slot name -> view of w [P]."""
        return dict(zip((slot.name for slot in self.slots), self.split(w), strict=True))

    def where(self, wanted: Callable[[Slot], bool]) -> Array:
        """Mask bool [P], true on the slots that are wanted."""
        mask = np.zeros(self.size, dtype=bool)
        for slot in self.slots:
            mask[slot.slice] = wanted(slot)
        return mask

    def role(self, role: str) -> Array:
        """Mask bool [P] of a role, shared by all who ask; all false where no slot has it.

        Args:
            role: one of `ROLES`, or of a slot.

        Raises:
            ModelError: another word.
        """
        if role not in self._roles:
            known = ", ".join(self._roles)
            raise ModelError(f'the role "{role}" of weights is unknown; there are {known}')
        return self._roles[role]

    @cached_property
    def _roles(self) -> dict[str, Array]:
        def of_role(role: str) -> Array:
            return self.where(lambda slot: slot.role == role)

        return {role: of_role(role) for role in (*ROLES, *(slot.role for slot in self.slots))}

    @cached_property
    def groups(self) -> dict[str, Group]:
        """The groups of units by name, in the order of the model."""
        found: dict[str, Group] = {}
        for slot in self.slots:
            for axis, size in zip(slot.axes, slot.shape, strict=False):
                if axis is not None and axis.group not in found:
                    found[axis.group] = Group(
                        axis.group, axis.units(size), axis.cut and axis.group != self.output
                    )
        return found

    def expand(self, kept: Mapping[str, Array], rows: bool = False) -> Array:
        """Coordinates bool [P] of which all axes lie on kept units.

        Args:
            kept: group -> bool [units]; groups that are not named are kept entirely.
            rows: look only at the outputs of weights; biases, norms and the inputs of the next
                layer stay: the row accounting of FedLPS.

        Raises:
            ValueError: there is no group of that name and size.
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

    def kept_units(self, mask: Array) -> dict[str, Array]:
        """Group -> bool [units], true where its first tensor keeps a coordinate of mask [P]."""
        kept: dict[str, Array] = {}
        for slot in self.slots:
            for place, axis in enumerate(slot.axes):
                if axis is not None and axis.group not in kept:
                    table = np.moveaxis(mask[slot.slice].reshape(slot.shape), place, 0)
                    lines = np.any(table.reshape(len(table), -1), axis=1)
                    blocks = lines.reshape(axis.blocks, -1, axis.repeat)
                    kept[axis.group] = np.any(blocks, axis=(0, 2))
        return kept


def along(values: Any, place: int, dimensions: int) -> Any:
    """values [n] (numpy or torch) with n entries in dimension ``place`` and one in every other."""
    return values.reshape([-1 if i == place else 1 for i in range(dimensions)])
