"""Structured submodels as smaller dense models: the slices of the tensors that lie on kept units.

Without normalisation across units the sliced model computes exactly what the masked one does, in
less time. Whether a submodel is structured follows from its mask, so that no method has to say so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from torch import Tensor

from fl.contracts import Array
from fl.models.layout import Layout, UnitAxis


@dataclass(frozen=True)
class DenseSubmodel:
    """A smaller model cut out of a larger one.

    Args:
        layout: of its smaller tensors, p coordinates in all.
        index: where these lie in the whole model, int64 [p].
    """

    layout: Layout
    index: Tensor


def dense_submodel(layout: Layout, mask: Tensor) -> DenseSubmodel | None:
    """The dense model of a mask, or None where it keeps all or is not structured.

    Args:
        layout: of the whole model.
        mask: coordinates that are kept, bool [P], and further ones that are no weights.
    """
    kept_mask = mask[: layout.size].cpu().numpy()
    kept = layout.kept_units(kept_mask)
    if kept_mask.all() or not all(units.any() for units in kept.values()):
        return None
    if not np.array_equal(layout.expand(kept), kept_mask):
        return None
    slots, pieces, offset = [], [], 0
    for slot in layout.slots:
        axes = zip(slot.axes, slot.shape, strict=True)
        places = [kept_places(axis, size, kept) for axis, size in axes]
        shape = tuple(map(len, places))
        slots.append(replace(slot, shape=shape, offset=offset))
        pieces.append(slot.offset + np.ravel_multi_index(np.ix_(*places), slot.shape).ravel())
        offset += prod(shape)
    index = torch.from_numpy(np.concatenate(pieces)).to(mask.device)
    return DenseSubmodel(Layout(tuple(slots), layout.output), index)


def kept_places(axis: UnitAxis | None, size: int, kept: dict[str, Array]) -> Array:
    """Places of a dimension of that size that lie on kept units, int."""
    if axis is None or axis.group not in kept:
        return np.arange(size)
    return np.flatnonzero(axis.spread(kept[axis.group]))
