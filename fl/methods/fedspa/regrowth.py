"""Sparse training in which masks move: their densities, what they drop and what they grow instead (FedSpa)."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, cos, pi, prod

import numpy as np

from fl.contracts import Tensor
from fl.masks.unit_masks import ROUNDING, largest
from fl.models.layout import Slot

Array = np.ndarray


def erk(shapes: Sequence[tuple[int, ...]], density: float) -> list[float]:
    """Densities of layers in proportion to sum(shape) / prod(shape), at most 1, that keep ``density`` of all weights.

    Erdos-Renyi-Kernel, Evci et al., ICML 2020 (RigL); spafl.md, section 10. A layer that would need more than 1 is
    dense, and the others share what is left.
    """
    sizes = np.array([prod(shape) for shape in shapes], dtype=float)
    raw = np.array([sum(shape) for shape in shapes]) / sizes
    dense = np.zeros(len(sizes), dtype=bool)
    while not dense.all():
        left = density * sizes.sum() - sizes[dense].sum()
        found = np.where(dense, 1.0, raw * left / (raw * sizes)[~dense].sum())
        if (found <= 1.0).all():
            return found.tolist()
        dense |= found == found.max()
    return [1.0] * len(sizes)


def random_mask(
    slots: Sequence[Slot], densities: Sequence[float], size: int, rng: np.random.Generator
) -> Array:
    """So many weights of each slot at random, at least one, and all outside the slots; bool [size]."""
    mask = np.ones(size, dtype=bool)
    for slot, density in zip(slots, densities, strict=True):
        kept = np.zeros(slot.size, dtype=bool)
        kept[rng.permutation(slot.size)[: max(1, round(density * slot.size))]] = True
        mask[slot.slice] = kept
    return mask


def cosine(g: int, rounds: int, first: float) -> float:
    """a_t: the share of a mask that moves in round g, first / 2 (1 + cos(pi g / rounds)); 0 afterwards."""
    return 0.5 * first * (1.0 + cos(pi * min(g, rounds) / rounds))


def regrown(
    slots: Sequence[Slot], mask: Tensor, w: Tensor, gradient: Tensor, share: float
) -> Tensor:
    """The mask [P] after every slot drops ``share`` of its weights and grows as many.

    Dropped are the smallest |w|; grown are, among all that are then left out, the largest |gradient|.
    """
    after = mask.clone()
    for slot in slots:
        held, at = mask[slot.slice], slot.slice
        count = int(held.sum())
        moved = ceil(share * count - ROUNDING)
        kept = largest(w[at].abs(), held, count - moved)
        after[at] = kept | largest(gradient[at].abs(), ~kept, moved)
    return after
