"""A structured submodel is a smaller dense model: the slices of the tensors that lie on kept units.

Without normalisation across units, the sliced model computes exactly what the masked one does, in less time. Whether a
mask is structured is found out from the mask, so that no method needs to know that its submodels are cut out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from torch import Tensor

from fl.models.layout import Layout, UnitAxis

Array = np.ndarray


@dataclass(frozen=True)
class Cut:
    """A submodel: the layout of its smaller tensors, and where its coordinates lie in the whole model, int64 [p]."""

    layout: Layout
    index: Tensor


def cut(layout: Layout, submodel: Tensor) -> Cut | None:
    """The dense submodel of a mask bool [P], or None where the mask keeps all or is not structured.

    ``submodel`` may go on behind the layout with coordinates that are no weights of the architecture.
    """
    mask = submodel[: layout.size].cpu().numpy()
    kept = kept_units(layout, mask)
    if mask.all() or not all(units.any() for units in kept.values()):
        return None
    if not np.array_equal(layout.expand(kept), mask):
        return None
    return slices(layout, kept, submodel.device)


def kept_units(layout: Layout, mask: Array) -> dict[str, Array]:
    """Units bool [units] of every group that keep a coordinate of the first tensor in which they appear: their own."""
    kept: dict[str, Array] = {}
    for slot in layout.slots:
        for place, axis in enumerate(slot.axes):
            if axis is not None and axis.group not in kept:
                table = np.moveaxis(mask[slot.slice].reshape(slot.shape), place, 0)
                lines = table.reshape(len(table), -1).any(axis=1)
                kept[axis.group] = lines.reshape(axis.blocks, -1, axis.repeat).any(axis=(0, 2))
    return kept


def slices(layout: Layout, kept: dict[str, Array], device: torch.device) -> Cut:
    """The smaller tensors, and their coordinates in the whole model."""
    slots, pieces, offset = [], [], 0
    for slot in layout.slots:
        places = [
            positions(axis, size, kept) for axis, size in zip(slot.axes, slot.shape, strict=True)
        ]
        shape = tuple(map(len, places))
        slots.append(replace(slot, shape=shape, offset=offset))
        pieces.append(slot.offset + np.ravel_multi_index(np.ix_(*places), slot.shape).ravel())
        offset += prod(shape)
    return Cut(
        Layout(tuple(slots), layout.output), torch.from_numpy(np.concatenate(pieces)).to(device)
    )


def positions(axis: UnitAxis | None, size: int, kept: dict[str, Array]) -> Array:
    """The coordinates of a dimension of so many that lie on kept units."""
    if axis is None or axis.group not in kept:
        return np.arange(size)
    return np.flatnonzero(axis.spread(kept[axis.group]))
