"""Layers with weights: convolution, linear, batch norm, embedding, LSTM.

Initial weights are those of torch's default for each kind of layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from fl.contracts import Tensor
from fl.models.layers.layer import LayerTensor, Normalise, Signal
from fl.models.layout import UnitAxis

TIED_SPREAD = 0.1  # of an embedding that also decodes: larger ones make its first scores large


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

    tied: a decoder multiplies by it at every step (`fl.models.layers.sequence_layers.TiedDecoder`).
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
            inner=float(self.tied),
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
                inner=float(word == "weight_hh"),
            )
            for word, shape, axes, kind in tensors
        )
        return tuple(parts), Signal((steps, self.size), out)

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        import torch

        state = x.new_zeros(1, len(x), tensors[1].shape[1])
        return torch.lstm(x, (state, state), tensors, True, 1, 0.0, True, False, True)[0]
