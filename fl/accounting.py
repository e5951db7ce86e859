"""Costs of training and sending: from weights to bits and to FLOPs, with all conventions.

1 multiply-add counts 2 FLOP; activations, pooling, norms and look-ups count nothing. A training
step runs the whole model forward, takes the gradient by the weights of every layer that is
trained, and the gradient by the activations of every layer behind the first trained one, but none
by the images. In a module of the user's own it takes the gradient by each factor of a product that
depends on a trained weight. No gradient comes to a layer whose output is not used, or detached.
`torch.utils.flop_counter` counts the same. Two switches follow papers: a backward pass that costs
twice the forward pass in every layer, and FLOPs of biases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING

import numpy as np

from fl.contracts import Array, Work

if TYPE_CHECKING:
    from fl.models.architectures import Architecture
    from fl.models.layers.layer import LayerTensor
    from fl.models.layout import Slot


@dataclass(frozen=True)
class StepCost:
    """Cost of one SGD step, and how much of it pruning can save.

    Args:
        weights: weights that it updates, Liu, eq. (8).
        weights_prunable: those of them that can be pruned.
        flops: floating point operations per sample.
        flops_prunable: those that pruning everything would save.
    """

    weights: float
    weights_prunable: float
    flops: float
    flops_prunable: float


@dataclass(frozen=True)
class Accounting:
    """The conventions of a run.

    Args:
        bits_per_weight: q_hat, bit.
        mask_overhead: how the mask itself is sent: none | bitmap | entropy (docs/papers/liu.md).
        sparse_efficiency: share of the pruned work that is saved, in [0, 1]; Liu, eq. (24) has 1.
        backward: cost of a backward pass: counted as above, or twice the forward pass in every
            layer, trained or not (SpaFL, eq. (50); FedLPS, released code).
        count_biases: 1 FLOP per output and bias (FedLPS, released code).
    """

    bits_per_weight: float = 32.0
    mask_overhead: str = "none"
    sparse_efficiency: float = 1.0
    backward: str = "counted"
    count_biases: bool = False

    def work(self, cost: StepCost, steps: float, batch: float, rho: float = 0.0) -> Work:
        """Work of ``steps`` steps on ``batch`` samples with pruning ratio rho."""
        saved = self.sparse_efficiency * rho
        return Work(
            weight_steps=steps * (cost.weights - saved * cost.weights_prunable),
            flops=steps * batch * (cost.flops - saved * cost.flops_prunable),
        )

    def forward(self, part: LayerTensor) -> float:
        """FLOPs of a forward pass of one sample, per coordinate of a tensor."""
        each = {"weight": 2.0, "embedding": 2.0, "bias": float(self.count_biases)}
        return part.uses * each.get(part.kind, 0.0)

    def charged(self, kept: Array) -> float:
        """Number of coordinates of a tensor that are charged where only some of them compute.

        Where whole rows and columns are left out, what remains is a smaller dense tensor and
        everything else is saved; elsewhere `sparse_efficiency` of it.

        Args:
            kept: coordinates that compute, bool in the shape of the tensor.
        """
        saved = 1.0 if self.sparse_efficiency == 1.0 or is_block(kept) else self.sparse_efficiency
        return kept.size - saved * (kept.size - float(kept.sum()))

    def weight_bits(self, weights: float, rho: float = 0.0) -> float:
        """Bits of the kept weights: q_hat (1 - rho) N_u, the numerator of Liu, eq. (25)."""
        return (1.0 - rho) * weights * self.bits_per_weight

    def mask_bits(self, weights: float, rho: float) -> float:
        """Bits of the mask of N_u weights: 0, N_u, or N_u H2(rho)."""
        return mask_bits(weights, rho, self.mask_overhead)

    def mask_bits_bound(self, weights: float) -> float:
        """Largest `mask_bits` at any rho: planned with, so that no upload is late."""
        return 0.0 if self.mask_overhead == "none" else weights


PLAIN = Accounting()


def step_cost(
    architecture: Architecture, trained: Array, prunable: Array, accounting: Accounting = PLAIN
) -> StepCost:
    """Cost of a step of the whole model.

    Masks may be longer than the architecture has weights; what lies behind these costs nothing.

    Args:
        architecture: what computes.
        trained: weights that the step updates, bool [P].
        prunable: weights that may be pruned, bool [P].
        accounting: the conventions.
    """
    size = architecture.layout.size
    flops = flops_prunable = 0.0
    for slot, forward, backward in slot_flops(architecture, trained, accounting):
        flops += slot.size * (forward + backward)
        flops_prunable += slot.size * (forward + backward) * float(prunable[slot.slice].mean())
    return StepCost(
        float(trained[:size].sum()), float((trained & prunable)[:size].sum()), flops, flops_prunable
    )


def submodel_cost(
    architecture: Architecture,
    kept: Array,
    accounting: Accounting = PLAIN,
    backward: Array | None = None,
) -> StepCost:
    """Cost of a step of a submodel, of which nothing more can be pruned.

    Masks may be longer than the architecture has weights; what lies behind these costs nothing.

    Args:
        architecture: the whole model.
        kept: weights of the submodel, bool [P].
        accounting: the conventions.
        backward: weights that compute in the backward pass and are updated, bool [P]; None: those
            that are kept.
    """
    backward = kept if backward is None else backward
    weights = flops = 0.0
    for slot, forward_flops, backward_flops in slot_flops(architecture, backward, accounting):
        ahead, back = (
            accounting.charged(mask[slot.slice].reshape(slot.shape)) for mask in (kept, backward)
        )
        flops += forward_flops * ahead + backward_flops * back
        weights += back
    return StepCost(weights, 0.0, flops, 0.0)


def forward_flops(
    architecture: Architecture, accounting: Accounting = PLAIN, kept: Array | None = None
) -> float:
    """FLOPs of a forward pass of one sample; ``kept`` bool [P]: of that submodel."""
    total = 0.0
    for slot, part in zip(architecture.layout.slots, architecture.parts, strict=True):
        own = None if kept is None else kept[slot.slice].reshape(slot.shape)
        total += accounting.forward(part) * (slot.size if own is None else accounting.charged(own))
    return total


def slot_flops(
    architecture: Architecture, trained: Array, accounting: Accounting
) -> Iterator[tuple[Slot, float, float]]:
    """FLOPs per coordinate and sample of each slot, forward and backward.

    Nothing is yielded where nothing is trained.
    """
    slots, parts = architecture.layout.slots, architecture.parts
    changes = [
        part.reached and bool(trained[slot.slice].any())
        for slot, part in zip(slots, parts, strict=True)
    ]
    first = min(
        (slot.layer for slot, changed in zip(slots, changes, strict=True) if changed), default=None
    )
    if first is None:
        return
    bits = sum(1 << i for i, changed in enumerate(changes) if changed)
    for slot, part, changed in zip(slots, parts, changes, strict=True):
        behind, reaches = slot.layer > first, slot.layer == first or part.until > first
        by_activations = 1.0 if behind else part.inner * reaches
        multiplies = part.reached and part.kind in ("weight", "embedding")
        counted = changed + (by_activations if multiplies else 0)
        if multiplies and part.factors is not None:
            counted = sum(share for share, factor in part.factors if factor & bits)
        forward = accounting.forward(part)
        yield slot, forward, forward * (2 if accounting.backward == "twice" else counted)


def is_block(mask: Array) -> bool:
    """Does a mask keep all of some rows and columns of a tensor, and nothing else?"""
    table = np.atleast_1d(mask)
    table = table.reshape(len(table), -1)
    return bool(np.array_equal(table, np.logical_and.outer(table.any(axis=1), table.any(axis=0))))


def mask_bits(places: float, share: float, coding: str) -> float:
    """Bits of a message that says which places are kept.

    Args:
        places: J, how many there are.
        share: of them that is kept, or that is not.
        coding: none; bitmap, 1 bit each; entropy, J H2(share); seed, 64 bits.
    """
    bits = {"none": 0.0, "bitmap": float(places), "seed": 64.0}
    return places * binary_entropy(share) if coding == "entropy" else bits[coding]


def binary_entropy(p: float) -> float:
    """H2(p) in bit."""
    return 0.0 if p <= 0 or p >= 1 else -p * log2(p) - (1 - p) * log2(1 - p)
