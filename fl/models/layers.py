"""Layers as plain data: convolution, linear, batch norm, embedding, LSTM, residual block.

A layer knows its tensors, how often each is used, and how it is applied. It reads its sizes from
the tensors that it is given, so that the same layer runs the narrower tensors of a submodel. Torch
is imported only when a layer is applied, so that costs can be computed without it. Initial weights
are those of torch's default for each kind of layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol

import numpy as np

from fl.contracts import Array, Tensor
from fl.models.layout import UnitAxis

Shape = tuple[int, ...]
TIED_SPREAD = 0.1  # of an embedding that also decodes: larger ones make its first scores large
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
        inner: its input is computed within its own layer.
    """

    name: str
    shape: Shape
    axes: tuple[UnitAxis | None, ...]
    kind: str
    role: str
    uses: float
    spread: float | str
    inner: bool = False

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


@dataclass(frozen=True)
class Conv:
    """2-d convolution, [inputs, H, W] -> [outputs, H', W']."""

    inputs: int
    outputs: int
    side: int
    padding: int
    role: str = "features"
    bias: bool = True
    stride: int = 1
    kind: str = "conv"

    def wire(
        self, given: Signal, name: str, group: str | None = None
    ) -> tuple[tuple[LayerTensor, ...], Signal]:
        """``group``: of its outputs where they are added to others; None: one of its own."""
        out = UnitAxis(group or name)
        sides = tuple(
            (size + 2 * self.padding - self.side) // self.stride + 1 for size in given.shape[1:]
        )
        spread = (self.inputs * self.side**2) ** -0.5
        shape, axes = (
            (self.outputs, self.inputs, self.side, self.side),
            (out, given.units, None, None),
        )
        weight = LayerTensor(
            f"{name}.weight", shape, axes, "weight", self.role, prod(sides), spread
        )
        bias = LayerTensor(
            f"{name}.bias", shape[:1], (out,), "bias", self.role, prod(sides), spread
        )
        return (weight, bias)[: 1 + self.bias], Signal((self.outputs, *sides), out)

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        from torch.nn.functional import conv2d

        weight, bias = (*tensors, None)[:2]
        return conv2d(x, weight, bias, padding=self.padding, stride=self.stride)


@dataclass(frozen=True)
class Linear:
    """Fully connected layer, [inputs] -> [outputs]."""

    inputs: int
    outputs: int
    role: str = "classifier"
    bias: bool = True
    kind: str = "linear"

    def wire(self, given: Signal, name: str) -> tuple[tuple[LayerTensor, ...], Signal]:
        out, spread = UnitAxis(name), self.inputs**-0.5
        shape = (self.outputs, self.inputs)
        weight = LayerTensor(
            f"{name}.weight", shape, (out, given.units), "weight", self.role, 1, spread
        )
        bias = LayerTensor(f"{name}.bias", shape[:1], (out,), "bias", self.role, 1, spread)
        return (weight, bias)[: 1 + self.bias], Signal(shape[:1], out)

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        from torch.nn.functional import linear

        return linear(x, *tensors)


@dataclass(frozen=True)
class Norm:
    """Static batch norm (`fl.models.batch_norm`): trains with the statistics of each batch."""

    role: str = "features"
    kind: str = "norm"

    def wire(self, given: Signal, name: str) -> tuple[tuple[LayerTensor, ...], Signal]:
        shape, axes = given.shape[:1], (given.units,)
        scale = LayerTensor(f"{name}.scale", shape, axes, "norm", self.role, 0, "ones")
        shift = LayerTensor(f"{name}.shift", shape, axes, "norm", self.role, 0, "zeros")
        return (scale, shift), given

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        return normalise(x, *tensors)


@dataclass(frozen=True)
class Embedding:
    """A vector for each of ``symbols``: int [T] -> [T, size].

    tied: a decoder multiplies by it at every step (`fl.models.sequence_layers.TiedDecoder`).
    """

    symbols: int
    size: int
    role: str = "features"
    kind: str = "embedding"
    tied: bool = False

    def wire(self, given: Signal, name: str) -> tuple[tuple[LayerTensor, ...], Signal]:
        out = UnitAxis(name)
        shape = (self.symbols, self.size)
        uses, spread = (given.shape[0], TIED_SPREAD) if self.tied else (0, "normal")
        weight = LayerTensor(
            f"{name}.weight",
            shape,
            (None, out),
            "embedding",
            self.role,
            uses,
            spread,
            inner=self.tied,
        )
        return (weight,), Signal((*given.shape, self.size), out)

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        from torch.nn.functional import embedding

        return embedding(x, *tensors)


@dataclass(frozen=True)
class Lstm:
    """LSTM layer over a sequence, [T, inputs] -> [T, size]; gates in torch's order i, f, g, o.

    group: of its units where a tied decoder multiplies them; None: one of its own.
    """

    inputs: int
    size: int
    role: str = "features"
    kind: str = "lstm"
    group: str | None = None

    def wire(self, given: Signal, name: str) -> tuple[tuple[LayerTensor, ...], Signal]:
        group = self.group or name
        gates, out = UnitAxis(group, blocks=4), UnitAxis(group)
        steps, height, spread = given.shape[0], 4 * self.size, self.size**-0.5
        tensors = (
            ("weight_ih", (height, self.inputs), (gates, given.units), "weight"),
            ("weight_hh", (height, self.size), (gates, out), "weight"),
            ("bias_ih", (height,), (gates,), "bias"),
            ("bias_hh", (height,), (gates,), "bias"),
        )
        parts = (
            LayerTensor(
                f"{name}.{word}",
                shape,
                axes,
                kind,
                self.role,
                steps,
                spread,
                inner=word == "weight_hh",
            )
            for word, shape, axes, kind in tensors
        )
        return tuple(parts), Signal((steps, self.size), out)

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        import torch

        state = x.new_zeros(1, len(x), tensors[1].shape[1])
        return torch.lstm(x, (state, state), tensors, True, 1, 0.0, True, False, True)[0]


@dataclass(frozen=True)
class Residual:
    """Basic block of ResNet: conv - norm - ReLU - conv - norm, added to the input, ReLU; no biases.

    Where the shape changes, the input goes through a convolution of side 1 and a norm. What is
    added together belongs to one group of units: the input's own, or the second convolution's.
    """

    inputs: int
    outputs: int
    stride: int = 1
    role: str = "features"
    kind: str = "block"

    @property
    def convolutions(self) -> tuple[Conv, ...]:
        """The first, the second, and where the shape changes the shortcut."""
        first = Conv(self.inputs, self.outputs, 3, 1, self.role, False, self.stride)
        second = Conv(self.outputs, self.outputs, 3, 1, self.role, False)
        shortcut = Conv(self.inputs, self.outputs, 1, 0, self.role, False, self.stride)
        same = self.stride == 1 and self.inputs == self.outputs
        return (first, second) if same else (first, second, shortcut)

    def wire(self, given: Signal, name: str) -> tuple[tuple[LayerTensor, ...], Signal]:
        norm = Norm(self.role)
        first, second, *shortcut = self.convolutions
        joint = f"{name}.conv2" if shortcut or given.units is None else given.units.group
        parts, hidden = first.wire(given, f"{name}.conv1")
        parts += norm.wire(hidden, f"{name}.norm1")[0]
        for place, (conv, source) in enumerate(
            [(second, hidden), *((conv, given) for conv in shortcut)], start=2
        ):
            (weight,), out = conv.wire(source, f"{name}.conv{place}", joint)
            parts += (
                replace(weight, inner=source is hidden),
                *norm.wire(out, f"{name}.norm{place}")[0],
            )
        return parts, out

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        from torch import relu

        first, second, *shortcut = self.convolutions
        inner = relu(normalise(first.apply(x, tensors[:1], normalise), *tensors[1:3]))
        outer = normalise(second.apply(inner, tensors[3:4], normalise), *tensors[4:6])
        for conv in shortcut:
            x = normalise(conv.apply(x, tensors[6:7], normalise), *tensors[7:9])
        return relu(outer + x)
