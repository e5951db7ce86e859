"""Architectures as plain data: each layer knows its tensors, its output shape, its work, and applies itself.

Torch is imported only when a layer is applied, so that costs can be asked for without it. Initial weights are those
of torch's default, U(-1/sqrt(fan_in), 1/sqrt(fan_in)) for weights and biases, drawn from a named numpy stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np

from fl.layout import Layout, Slot

Array = np.ndarray
Tensor = Any
Shape = tuple[int, ...]


class ModelError(ValueError):
    """A model that does not exist or does not fit the data: one sentence."""


class Layer(Protocol):
    """A layer: `tensors` are (kind, shape) pairs; `macs` are multiply-adds of its forward pass for one sample."""

    kind: str
    role: str
    fan_in: int

    def tensors(self) -> tuple[tuple[str, Shape], ...]: ...
    def output_shape(self, shape: Shape) -> Shape: ...
    def macs(self, shape: Shape) -> int: ...
    def apply(self, x: Tensor, *tensors: Tensor) -> Tensor: ...


class Plain:
    """What a layer without weights answers."""

    role = "none"
    fan_in = 0

    def tensors(self) -> tuple[tuple[str, Shape], ...]:
        return ()

    def macs(self, shape: Shape) -> int:
        return 0

    def output_shape(self, shape: Shape) -> Shape:
        return shape


@dataclass(frozen=True)
class Conv:
    """2-d convolution of stride 1 with bias, [inputs, H, W] -> [outputs, H', W']."""

    inputs: int
    outputs: int
    side: int
    padding: int
    role: str = "features"
    kind: str = "conv"

    @property
    def fan_in(self) -> int:
        return self.inputs * self.side**2

    def tensors(self) -> tuple[tuple[str, Shape], ...]:
        return ("weight", (self.outputs, self.inputs, self.side, self.side)), ("bias", (self.outputs,))

    def output_shape(self, shape: Shape) -> Shape:
        return (self.outputs, *(size + 2 * self.padding - self.side + 1 for size in shape[1:]))

    def macs(self, shape: Shape) -> int:
        return prod(self.output_shape(shape)) * self.fan_in

    def apply(self, x: Tensor, *tensors: Tensor) -> Tensor:
        from torch.nn.functional import conv2d

        return conv2d(x, *tensors, padding=self.padding)


@dataclass(frozen=True)
class Linear:
    """Fully connected layer with bias, [inputs] -> [outputs]."""

    inputs: int
    outputs: int
    role: str = "classifier"
    kind: str = "linear"

    @property
    def fan_in(self) -> int:
        return self.inputs

    def tensors(self) -> tuple[tuple[str, Shape], ...]:
        return ("weight", (self.outputs, self.inputs)), ("bias", (self.outputs,))

    def output_shape(self, shape: Shape) -> Shape:
        return (self.outputs,)

    def macs(self, shape: Shape) -> int:
        return self.inputs * self.outputs

    def apply(self, x: Tensor, *tensors: Tensor) -> Tensor:
        from torch.nn.functional import linear

        return linear(x, *tensors)


@dataclass(frozen=True)
class Pool(Plain):
    """Max pooling, 2 x 2, stride 2; an odd last row or column is left out."""

    kind: str = "pool"

    def output_shape(self, shape: Shape) -> Shape:
        return (shape[0], *(size // 2 for size in shape[1:]))

    def apply(self, x: Tensor, *tensors: Tensor) -> Tensor:
        from torch.nn.functional import max_pool2d

        return max_pool2d(x, 2)


@dataclass(frozen=True)
class Relu(Plain):
    kind: str = "relu"

    def apply(self, x: Tensor, *tensors: Tensor) -> Tensor:
        from torch import relu

        return relu(x)


@dataclass(frozen=True)
class Flatten(Plain):
    kind: str = "flatten"

    def output_shape(self, shape: Shape) -> Shape:
        return (prod(shape),)

    def apply(self, x: Tensor, *tensors: Tensor) -> Tensor:
        return x.flatten(1)


@dataclass(frozen=True)
class Architecture:
    """A feed-forward model, [B, *input_shape] -> logits [B, classes]."""

    name: str
    input_shape: Shape
    classes: int
    layers: tuple[Layer, ...]

    @cached_property
    def input_shapes(self) -> tuple[Shape, ...]:
        """The shape that each layer receives, without the batch; a layer with nothing to give raises ModelError."""
        shapes, shape = [], self.input_shape
        for layer in self.layers:
            shapes.append(shape)
            shape = layer.output_shape(shape)
            if min(shape) < 1:
                given = "x".join(map(str, self.input_shape))
                raise ModelError(
                    f"model {self.name} does not fit images of {given}: nothing is left behind a {layer.kind} layer; "
                    "choose a smaller model, such as mlp"
                )
        return tuple(shapes)

    @cached_property
    def layout(self) -> Layout:
        slots, offset, seen = [], 0, dict[str, int]()
        for place, layer in enumerate(self.layers):
            seen[layer.kind] = seen.get(layer.kind, 0) + 1
            for kind, shape in layer.tensors():
                name = f"{layer.kind}{seen[layer.kind]}.{kind}"
                slots.append(Slot(name, shape, offset, kind, layer.role, place))
                offset += prod(shape)
        return Layout(tuple(slots))

    def forward(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        """Logits [B, classes] of images x [B, *input_shape], with one tensor per slot."""
        rest = iter(tensors)
        for layer in self.layers:
            x = layer.apply(x, *(next(rest) for _ in layer.tensors()))
        return x

    def logits(self, w: Tensor, x: Tensor) -> Tensor:
        """Logits [B, classes] of the flat model w [P]."""
        return self.forward(self.layout.split(w), x)

    def initial(self, rng: np.random.Generator) -> Array:
        """Initial weights, float32 [P]."""
        w = np.empty(self.layout.size, dtype=np.float32)
        for slot in self.layout.slots:
            bound = self.layers[slot.layer].fan_in ** -0.5
            w[slot.slice] = rng.uniform(-bound, bound, slot.size)
        return w


def mlp(shape: Shape, classes: int) -> tuple[Layer, ...]:
    return Flatten(), Linear(prod(shape), 64, "features"), Relu(), Linear(64, classes)


def liu_cnn(shape: Shape, classes: int) -> tuple[Layer, ...]:
    flat = 64 * (shape[1] // 4) * (shape[2] // 4)
    convolutions = Conv(shape[0], 32, 5, 2), Relu(), Pool(), Conv(32, 64, 5, 2), Relu(), Pool()
    return *convolutions, Flatten(), Linear(flat, 128), Relu(), Linear(128, classes)


def lenet5_caffe(shape: Shape, classes: int) -> tuple[Layer, ...]:
    flat = 50 * prod(max(((size - 4) // 2 - 4) // 2, 0) for size in shape[1:])
    convolutions = Conv(shape[0], 20, 5, 0), Pool(), Conv(20, 50, 5, 0), Pool()
    return *convolutions, Flatten(), Linear(flat, 500), Relu(), Linear(500, classes)


def digits_cnn(shape: Shape, classes: int) -> tuple[Layer, ...]:
    flat = 16 * (shape[1] // 4) * (shape[2] // 4)
    convolutions = Conv(shape[0], 8, 3, 1), Relu(), Pool(), Conv(8, 16, 3, 1), Relu(), Pool()
    return *convolutions, Flatten(), Linear(flat, 64), Relu(), Linear(64, classes)


Builder = Callable[[Shape, int], tuple[Layer, ...]]

MODELS: dict[str, tuple[Builder, str, str]] = {
    "mlp": (mlp, "one hidden layer of 64 (features), output layer (classifier)", "our choice"),
    "liu-cnn": (liu_cnn, "5x5 conv 32, 5x5 conv 64 (features), FC 128, output (classifier)", "Liu et al., Section V"),
    "lenet5-caffe": (lenet5_caffe, "LeNet-5 as in Caffe: conv 20, conv 50, FC 500, output", "Caffe's MNIST example"),
    "digits-cnn": (digits_cnn, "3x3 conv 8, 3x3 conv 16 (features), FC 64, output (classifier)", "our choice"),
}


def build(name: str, input_shape: Shape, classes: int) -> Architecture:
    """The architecture of that name for images [channels, height, width] and so many classes."""
    if name not in MODELS:
        near = get_close_matches(name, MODELS, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise ModelError(f'there is no model "{name}" (there are {", ".join(MODELS)}){hint}')
    architecture = Architecture(name, tuple(input_shape), classes, MODELS[name][0](tuple(input_shape), classes))
    architecture.input_shapes  # noqa: B018 - raises where the images are too small
    return architecture
