"""What training and sending cost: weights -> bits, weights -> work. The one place with a convention.

1 multiply-add = 2 FLOP; biases, activations and pooling are not counted. A training step runs the whole model forward,
takes the gradient by the weights of every layer that is trained, and the gradient by the activations of every layer
behind the first trained one; no gradient by the images. `torch.utils.flop_counter` agrees (a test holds it to that).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING

import numpy as np

from edgesim.contracts import Work

if TYPE_CHECKING:
    from fl.models import Architecture

Array = np.ndarray


@dataclass(frozen=True)
class StepCost:
    """One SGD step: weights it updates (Liu, eq. (8)), FLOPs per sample, and how much of each pruning can save."""

    weights: float
    weights_prunable: float
    flops: float
    flops_prunable: float


def step_cost(architecture: Architecture, trained: Array, prunable: Array) -> StepCost:
    """Cost of a step that updates the weights ``trained`` bool [P], of which ``prunable`` bool [P] may be pruned."""
    if not trained.any():
        return StepCost(0.0, 0.0, 0.0, 0.0)
    flops = flops_prunable = 0.0
    behind_trained = False
    for place, (layer, shape) in enumerate(zip(architecture.layers, architecture.input_shapes, strict=True)):
        slots = [slot for slot in architecture.layout.slots if slot.layer == place]
        for slot in slots:
            if slot.kind == "weight":
                passes = 1 + bool(trained[slot.slice].any()) + behind_trained
                layer_flops = 2.0 * layer.macs(shape) * passes
                flops += layer_flops
                flops_prunable += layer_flops * float(prunable[slot.slice].mean())
        behind_trained = behind_trained or any(trained[slot.slice].any() for slot in slots)
    return StepCost(float(trained.sum()), float((trained & prunable).sum()), flops, flops_prunable)


def binary_entropy(p: float) -> float:
    """H2(p) in bit."""
    return 0.0 if p <= 0 or p >= 1 else -p * log2(p) - (1 - p) * log2(1 - p)


@dataclass(frozen=True)
class Accounting:
    """The conventions of a run.

    Args:
        bits_per_weight: q_hat, bit. mask_overhead: how the mask itself is sent: none | bitmap | entropy (liu.md, 10).
        sparse_efficiency: share of the pruned work that is really saved, in [0, 1]; Liu, eq. (24) has 1.
    """

    bits_per_weight: float = 32.0
    mask_overhead: str = "none"
    sparse_efficiency: float = 1.0

    def work(self, cost: StepCost, steps: int, batch: int, rho: float = 0.0) -> Work:
        """Work of ``steps`` steps on ``batch`` samples where the share rho of the prunable weights is pruned."""
        saved = self.sparse_efficiency * rho
        return Work(
            weight_steps=steps * (cost.weights - saved * cost.weights_prunable),
            flops=steps * batch * (cost.flops - saved * cost.flops_prunable),
        )

    def weight_bits(self, weights: float, rho: float = 0.0) -> float:
        """Bits of the kept weights: q_hat (1 - rho) N_u, the numerator of Liu, eq. (25)."""
        return (1.0 - rho) * weights * self.bits_per_weight

    def mask_bits(self, weights: float, rho: float) -> float:
        """Bits that say which of N_u weights were kept: nothing, N_u, or N_u H2(rho)."""
        return {"none": 0.0, "bitmap": weights, "entropy": weights * binary_entropy(rho)}[self.mask_overhead]

    def mask_bits_bound(self, weights: float) -> float:
        """The most that `mask_bits` can be at any rho: what an allocation plans with, so that no upload is late."""
        return 0.0 if self.mask_overhead == "none" else weights
