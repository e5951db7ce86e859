"""A model is one flat vector w [P]; a layout says which slice is which tensor, of which layer, in which role."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Slot:
    """One tensor of the model: the coordinates [offset, offset + size) of w."""

    name: str  # "conv1.weight"
    shape: tuple[int, ...]
    offset: int
    kind: str  # weight | bias
    role: str  # features | classifier
    layer: int  # its layer's place in the architecture

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def slice(self) -> slice:
        return slice(self.offset, self.offset + self.size)


@dataclass(frozen=True)
class Layout:
    """The slots of a flat model, in order and without gaps."""

    slots: tuple[Slot, ...]

    @cached_property
    def size(self) -> int:
        """P, the number of weights and biases."""
        return sum(slot.size for slot in self.slots)

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
        """Mask bool [P] of one role: features, classifier, or none (nothing is true). Shared: do not write to it."""
        if role not in self._roles:
            self._roles[role] = self.where(lambda slot: slot.role == role)
        return self._roles[role]

    @cached_property
    def _roles(self) -> dict[str, Array]:
        return {"none": np.zeros(self.size, dtype=bool)}
