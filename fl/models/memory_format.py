"""Order of images in memory, and of layers, in which a model trains fastest; its results stay.

By default torch has every convolution reorder its images for oneDNN and back, and pools in another
order, which takes four times as long as staying in one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import torch
from torch import Tensor

from fl.models.architectures import Architecture
from fl.models.layers.layer import Normalise
from fl.models.layers.learned_layers import Conv
from fl.models.layers.weightless_layers import Flatten, MaxPool, Relu, StatelessLayer
from fl.models.layout import Layout

ONEDNN_BLOCK = 16  # oneDNN stores channels in blocks of 16 and fills up the last one

Arrange = Callable[[Tensor], Tensor]  # images -> the same images in another order in memory


def fastest_memory_format(
    architecture: Architecture, layout: Layout, images: Tensor, batch: int, own_forward: bool = True
) -> tuple[Architecture, Arrange]:
    """The same model as it trains fastest, and what arranges its images.

    The choice follows from shapes alone, never from a measurement: it decides the last bits.

    Args:
        architecture: the whole model.
        layout: of the (sub)model that computes.
        images: such as those that it computes on, [N, ...].
        batch: images per step.
        own_forward: only the architecture's own forward pass is used; without it, as where a
            method computes a loss of its own, oneDNN's order is not chosen.
    """
    if not architecture.in_layers:
        return architecture, unchanged
    if own_forward and suits_onednn(architecture, layout, images):
        return in_onednn_order(architecture), unchanged
    arrange: Arrange = unchanged
    if images.device.type == "cpu" and suits_channels_last(architecture, batch):
        arrange = channels_last
    return pool_before_relu(architecture), arrange


def unchanged(x: Tensor) -> Tensor:
    return x


@lru_cache
def pool_before_relu(architecture: Architecture) -> Architecture:
    """The same function with max pooling before ReLU, which then sees a quarter of the values.

    Both orders give the same bits, forward and backward.
    """
    layers = list(architecture.layers)
    for i in range(len(layers) - 1):
        if isinstance(layers[i], Relu) and isinstance(layers[i + 1], MaxPool):
            layers[i : i + 2] = layers[i + 1], layers[i]
    return replace(architecture, layers=tuple(layers))


# --- the order of oneDNN ------------------------------------------------------------------------


@dataclass(frozen=True)
class ToOnednn(StatelessLayer):
    """Dense images -> the order that oneDNN chooses, which convolutions and pools then keep."""

    kind: str = "to-onednn"

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        return x.to_mkldnn()


@dataclass(frozen=True)
class FromOnednn(StatelessLayer):
    """Back to dense images."""

    kind: str = "from-onednn"

    def apply(self, x: Tensor, tensors: tuple[Tensor, ...], normalise: Normalise) -> Tensor:
        return x.to_dense()


@lru_cache
def in_onednn_order(architecture: Architecture) -> Architecture:
    """`pool_before_relu` with everything before the first dense layer in oneDNN's order.

    The bits are those of torch's default order.
    """
    layers = pool_before_relu(architecture).layers
    end = next(i for i, layer in enumerate(layers) if isinstance(layer, Flatten))
    return replace(architecture, layers=(ToOnednn(), *layers[:end], FromOnednn(), *layers[end:]))


def suits_onednn(architecture: Architecture, layout: Layout, x: Tensor) -> bool:
    """Is oneDNN's order faster? Where only convolutions, pools and ReLU precede the dense layers,
    with numbers of channels that fill its blocks.
    """
    supported = torch.backends.mkldnn.is_available() and x.dtype == torch.float32
    if x.device.type != "cpu" or not supported or not only_convolutions(architecture):
        return False
    kernels = (slot for slot in layout.slots if slot.kind == "weight" and len(slot.shape) == 4)
    return all(slot.shape[0] % ONEDNN_BLOCK == 0 for slot in kernels)


@lru_cache
def only_convolutions(architecture: Architecture) -> bool:
    """Are there only convolutions, pools and ReLU before the images are flattened?"""
    layers = architecture.layers
    end = next((i for i, layer in enumerate(layers) if isinstance(layer, Flatten)), 0)
    return end > 0 and all(isinstance(layer, Conv | MaxPool | Relu) for layer in layers[:end])


# --- channels last ------------------------------------------------------------------------------


@lru_cache
def suits_channels_last(architecture: Architecture, batch: int) -> bool:
    """Are batches of that size trained faster with the channels of a pixel side by side?

    A CPU then pools and convolves up to twice as fast, but reorders the kernels in every step. It
    pays where convolutions give three values per weight of theirs (docs/performance.md).
    """
    kernels = [p for p in architecture.parts if p.kind == "weight" and len(p.shape) == 4]
    values = batch * sum(part.uses * part.shape[0] for part in kernels)
    return bool(kernels) and values >= 3 * sum(prod(part.shape) for part in kernels)


def channels_last(x: Tensor) -> Tensor:
    """x [B, C, H, W] in that order."""
    if x.shape[1] > 1:
        return x.contiguous(memory_format=torch.channels_last)
    # One channel lies in either order: only the strides tell torch which one is meant.
    height, width = x.shape[2:]
    return x.as_strided(x.shape, (height * width, 1, width, 1))
