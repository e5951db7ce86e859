"""Layers without tensors: pooling, ReLU, and changes of shape."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from fl.contracts import Tensor
from fl.models.layers.layer import LayerTensor, Normalise, Signal
from fl.models.layout import UnitAxis


class StatelessLayer:
    """Base of layers without tensors."""

    def wire(self, given: Signal, name: str) -> tuple[tuple[LayerTensor, ...], Signal]:
        return (), self.output(given)

    def output(self, given: Signal) -> Signal:
        return given


@dataclass(frozen=True)
class MaxPool(StatelessLayer):
    """Max pooling, 2 x 2, stride 2; an odd last row or column is left out."""

    kind: str = "pool"

    def output(self, given: Signal) -> Signal:
        return Signal((given.shape[0], *(size // 2 for size in given.shape[1:])), given.units)

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        from torch.nn.functional import max_pool2d

        return max_pool2d(x, 2, 2)


@dataclass(frozen=True)
class MeanPool(StatelessLayer):
    """The mean of each channel over the whole picture, [C, H, W] -> [C]."""

    kind: str = "mean"

    def output(self, given: Signal) -> Signal:
        return Signal(given.shape[:1], given.units)

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        return x.mean(dim=(2, 3))


@dataclass(frozen=True)
class Relu(StatelessLayer):
    kind: str = "relu"

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        from torch import relu

        return relu(x)


@dataclass(frozen=True)
class Flatten(StatelessLayer):
    """[C, H, W] -> [C H W]: each channel becomes H W neighbours."""

    kind: str = "flatten"

    def output(self, given: Signal) -> Signal:
        axis = given.units and UnitAxis(given.units.group, prod(given.shape[1:]))
        return Signal((prod(given.shape),), axis)

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        return x.flatten(1)


@dataclass(frozen=True)
class Last(StatelessLayer):
    """The last step of a sequence, [T, features] -> [features]."""

    kind: str = "last"

    def output(self, given: Signal) -> Signal:
        return Signal(given.shape[1:], given.units)

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        return x[:, -1]
