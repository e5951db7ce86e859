"""What training and sending cost: weights -> bits, weights -> work. The one place with a convention.

1 multiply-add = 2 FLOP; activations, pooling, norms and look-ups are not counted. A training step runs the whole model
forward, takes the gradient by the weights of every layer that is trained, and the gradient by the activations of every
layer behind the first trained one; no gradient by the images. `torch.utils.flop_counter` agrees (a test holds it to
that). The papers' rule, a backward pass of twice the forward pass in every layer, and biases are switches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING

import numpy as np

from fl.contracts import Work

if TYPE_CHECKING:
    from fl.models.architectures import Architecture
    from fl.models.layers import LayerTensor
    from fl.models.layout import Slot

Array = np.ndarray


@dataclass(frozen=True)
class StepCost:
    """One SGD step: weights it updates (Liu, eq. (8)), FLOPs per sample, and how much of each pruning can save."""

    weights: float
    weights_prunable: float
    flops: float
    flops_prunable: float


@dataclass(frozen=True)
class Accounting:
    """The conventions of a run.

    Args:
        bits_per_weight: q_hat, bit. mask_overhead: how the mask itself is sent: none | bitmap | entropy (liu.md, 10).
        sparse_efficiency: share of the pruned work that is really saved, in [0, 1]; Liu, eq. (24) has 1.
        backward: what a backward pass costs: counted (above) | twice the forward pass in every layer, trained or not
            (SpaFL, eq. (50); FedLPS, released code).
        count_biases: 1 FLOP per output and bias (FedLPS, released code).
    """

    bits_per_weight: float = 32.0
    mask_overhead: str = "none"
    sparse_efficiency: float = 1.0
    backward: str = "counted"
    count_biases: bool = False

    def work(self, cost: StepCost, steps: int, batch: float, rho: float = 0.0) -> Work:
        """Work of ``steps`` steps on ``batch`` samples where the share rho of the prunable weights is pruned."""
        saved = self.sparse_efficiency * rho
        return Work(
            weight_steps=steps * (cost.weights - saved * cost.weights_prunable),
            flops=steps * batch * (cost.flops - saved * cost.flops_prunable),
        )

    def forward(self, part: LayerTensor) -> float:
        """FLOPs of a forward pass of one sample, per coordinate of a tensor."""
        return part.uses * {"weight": 2.0, "bias": float(self.count_biases)}.get(part.kind, 0.0)

    def charged(self, kept: Array, of: Array | None = None) -> float:
        """How many coordinates of a tensor are charged where only ``kept`` (bool, its shape) of them compute.

        Where whole rows and columns are left out, what is left is a smaller dense tensor and everything is saved;
        elsewhere `sparse_efficiency` of it. ``of``: count only these; None: all.
        """
        everything = kept.size if of is None else float(of.sum())
        left = float(kept.sum() if of is None else (kept & of).sum())
        saved = 1.0 if self.sparse_efficiency == 1.0 or is_block(kept) else self.sparse_efficiency
        return everything - saved * (everything - left)

    def weight_bits(self, weights: float, rho: float = 0.0) -> float:
        """Bits of the kept weights: q_hat (1 - rho) N_u, the numerator of Liu, eq. (25)."""
        return (1.0 - rho) * weights * self.bits_per_weight

    def mask_bits(self, weights: float, rho: float) -> float:
        """Bits that say which of N_u weights were kept: nothing, N_u, or N_u H2(rho)."""
        return {"none": 0.0, "bitmap": weights, "entropy": weights * binary_entropy(rho)}[
            self.mask_overhead
        ]

    def mask_bits_bound(self, weights: float) -> float:
        """The most that `mask_bits` can be at any rho: what an allocation plans with, so that no upload is late."""
        return 0.0 if self.mask_overhead == "none" else weights


PLAIN = Accounting()


def step_cost(
    architecture: Architecture, trained: Array, prunable: Array, accounting: Accounting = PLAIN
) -> StepCost:
    """Cost of a step that updates the weights ``trained`` bool [P], of which ``prunable`` bool [P] may be pruned.

    Masks may go on behind the weights of the architecture; what lies there costs nothing.
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
    trained: Array | None = None,
    backward: Array | None = None,
) -> StepCost:
    """Cost of a step of the submodel ``kept`` bool [P]; nothing more of it can be pruned.

    Args:
        trained: weights bool [P] that the step updates, where they are kept; None: all.
        backward: weights bool [P] that compute in the backward pass; None: those that are kept.

    Masks may go on behind the weights of the architecture; what lies there costs nothing.
    """
    trained = np.ones_like(kept) if trained is None else trained
    backward = kept if backward is None else backward
    weights = flops = 0.0
    for slot, forward_flops, backward_flops in slot_flops(
        architecture, trained & backward, accounting
    ):
        ahead, back, moved = (
            mask[slot.slice].reshape(slot.shape) for mask in (kept, backward, trained)
        )
        flops += forward_flops * accounting.charged(ahead) + backward_flops * accounting.charged(
            back
        )
        weights += accounting.charged(back, moved)
    return StepCost(weights, 0.0, flops, 0.0)


def slot_flops(
    architecture: Architecture, trained: Array, accounting: Accounting
) -> Iterator[tuple[Slot, float, float]]:
    """Of each slot the FLOPs per coordinate and sample, forward and backward; of none where nothing is trained."""
    slots = architecture.layout.slots
    changes = [bool(trained[slot.slice].any()) for slot in slots]
    first = min(
        (slot.layer for slot, changed in zip(slots, changes, strict=True) if changed), default=None
    )
    if first is None:
        return
    for slot, part, changed in zip(slots, architecture.parts, changes, strict=True):
        by_activations = slot.layer > first or (slot.layer == first and part.inner)
        counted = changed + (by_activations if part.kind == "weight" else 0)
        forward = accounting.forward(part)
        yield slot, forward, forward * (2 if accounting.backward == "twice" else counted)


def is_block(mask: Array) -> bool:
    """Is it all of some rows and columns of a tensor, and nothing else?"""
    table = mask.reshape(len(mask), -1)
    return bool(np.array_equal(table, np.logical_and.outer(table.any(axis=1), table.any(axis=0))))


def binary_entropy(p: float) -> float:
    """H2(p) in bit."""
    return 0.0 if p <= 0 or p >= 1 else -p * log2(p) - (1 - p) * log2(1 - p)
