"""The same model in less time on a CPU: the order in which numbers lie in memory, and the order of two layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import torch
from torch import Tensor

from fl.models.architectures import Architecture
from fl.models.layers import Conv, Normalise
from fl.models.layout import Layout
from fl.models.stateless_layers import Flatten, MaxPool, Plain, Relu

LANES = 16  # numbers that the blocks of oneDNN hold: channels are filled up to a multiple of them


@lru_cache
def lean(architecture: Architecture) -> Architecture:
    """The same function with less work: of ReLU and max pooling the pool first, which leaves a quarter of the values.

    Both orders give the same bits, forward and backward.
    """
    layers = list(architecture.layers)
    for i in range(len(layers) - 1):
        if isinstance(layers[i], Relu) and isinstance(layers[i + 1], MaxPool):
            layers[i : i + 2] = layers[i + 1], layers[i]
    return replace(architecture, layers=tuple(layers))


# --- the blocks of oneDNN --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Enter(Plain):
    """Dense pictures -> the order that oneDNN chooses, in which convolutions and pools then pass them on."""

    kind: str = "enter"

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        return x.to_mkldnn()


@dataclass(frozen=True)
class Leave(Plain):
    """Back to dense pictures."""

    kind: str = "leave"

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        return x.to_dense()


@lru_cache
def blocked(architecture: Architecture) -> Architecture:
    """`lean` with everything before the first dense layer in oneDNN's own order: the bits are those of torch's default.

    By default torch has every convolution sort its pictures into that order and back, and pools in another one, which
    takes four times as long.
    """
    layers = list(lean(architecture).layers)
    end = next(i for i, layer in enumerate(layers) if isinstance(layer, Flatten))
    return replace(architecture, layers=(Enter(), *layers[:end], Leave(), *layers[end:]))


def fills_blocks(architecture: Architecture, layout: Layout, x: Tensor) -> bool:
    """Is the model trained faster in blocks? Where convolutions and pools lead to them that hold no filling.

    Args:
        layout: of the (sub)model that computes.     x: pictures such as those that it computes on.
    """
    if (
        x.device.type != "cpu"
        or x.dtype != torch.float32
        or not torch.backends.mkldnn.is_available()
    ):
        return False
    kernels = [slot for slot in layout.slots if slot.kind == "weight" and len(slot.shape) == 4]
    return stacked_convolutions(architecture) and all(
        slot.shape[0] % LANES == 0 for slot in kernels
    )


@lru_cache
def stacked_convolutions(architecture: Architecture) -> bool:
    """Are there convolutions, and nothing but pools and ReLU with them, until everything is flattened?"""
    layers = architecture.layers
    end = next((i for i, layer in enumerate(layers) if isinstance(layer, Flatten)), 0)
    return end > 0 and all(isinstance(layer, Conv | MaxPool | Relu) for layer in layers[:end])


# --- channels last ---------------------------------------------------------------------------------------------------


@lru_cache
def pixelwise(architecture: Architecture, batch: int) -> bool:
    """Are batches of that size trained faster with the channels of each pixel side by side (channels_last)?

    A CPU then pools and convolves up to twice as fast; against that stand the kernels, which are put into another order
    in every step. It pays where convolutions give three values per weight of theirs (docs/performance.md).
    """
    kernels = [
        part for part in architecture.parts if part.kind == "weight" and len(part.shape) == 4
    ]
    values = batch * sum(part.uses * part.shape[0] for part in kernels)
    return bool(kernels) and values >= 3 * sum(prod(part.shape) for part in kernels)


def channels_last(x: Tensor) -> Tensor:
    """x [B, C, H, W] in that order. One channel lies in either order: only the strides tell torch which is meant."""
    if x.shape[1] > 1:
        return x.contiguous(memory_format=torch.channels_last)
    height, width = x.shape[2:]
    return x.as_strided(x.shape, (height * width, 1, width, 1))


# --- the rule --------------------------------------------------------------------------------------------------------

Order = Callable[[Tensor], Tensor]  # puts pictures into an order in memory


def as_they_are(x: Tensor) -> Tensor:
    return x


def quickest(
    architecture: Architecture, layout: Layout, images: Tensor, batch: int, blocks: bool = True
) -> tuple[Architecture, Order]:
    """The same model as it is trained fastest, and the order in which it wants its pictures.

    It follows from the shapes, never from a measurement in a run: the order decides the last bits.

    Args:
        layout: of the (sub)model that computes.     images: [N, ...].     batch: how many at a time.
        blocks: may oneDNN's order be used? Not where a method computes with the architecture itself.
    """
    if blocks and fills_blocks(architecture, layout, images):
        return blocked(architecture), as_they_are
    if images.device.type == "cpu" and pixelwise(architecture, batch):
        return lean(architecture), channels_last
    return lean(architecture), as_they_are
