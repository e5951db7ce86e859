"""What all layers have in common: a signal flows in and out, and some have tensors.

A layer reads its sizes from the tensors that it is given, so that the same layer runs the narrower
tensors of a submodel. Torch is imported only when a layer is applied, so that costs can be computed
without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np

from fl.contracts import Array, Tensor
from fl.models.layout import UnitAxis

Shape = tuple[int, ...]
# (x, scale, shift) -> x normalised per channel
Normalise = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Signal:
    """What flows from layer to layer.

    Args:
        shape: of one sample.
        units: of which units its first dimension is made, of a sequence [T, features] its last;
            None: the channels of images.
    """

    shape: Shape
    units: UnitAxis | None = None


@dataclass(frozen=True)
class LayerTensor:
    """One tensor of a layer.

    Args:
        name: "conv1.weight".
        shape: its dimensions.
        axes: per dimension the units that it is made of, or None.
        kind: weight | bias | norm | embedding.
        role: features | classifier.
        uses: how often a forward pass of one sample multiplies by (weights, embeddings) or adds
            (biases) each of its coordinates.
        spread: initial values are U(-spread, spread); or "ones", "zeros", "normal" (0, 1).
        inner: share of its uses whose input is computed within its own layer, or by later layers
            that use it too.
        reached: the outputs depend on it; else no backward pass comes to it.
        until: place of the last layer that uses it, where several do.
        factors: of a module of the user's own: shares of its uses, and the tensors of the model
            that a factor of the product depends on, as a set of bits (1 << i for the i-th). Where
            one of them is trained, a backward pass takes the gradient by that factor.
    """

    name: str
    shape: Shape
    axes: tuple[UnitAxis | None, ...]
    kind: str
    role: str
    uses: float
    spread: float | str
    inner: float = 0.0
    reached: bool = True
    until: int = 0
    factors: tuple[tuple[float, int], ...] | None = None

    def initial(self, rng: np.random.Generator) -> Array:
        """Initial values [size]."""
        if isinstance(self.spread, float):
            return rng.uniform(-self.spread, self.spread, prod(self.shape))
        if self.spread == "normal":
            return rng.standard_normal(prod(self.shape))
        return np.full(prod(self.shape), {"ones": 1.0, "zeros": 0.0}[self.spread])


class Layer(Protocol):
    """``wire`` gives the tensors of the layer and its output for an input; ``apply`` computes."""

    @property
    def kind(self) -> str: ...
    def wire(self, given: Signal, name: str) -> tuple[tuple[LayerTensor, ...], Signal]: ...
    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor: ...
