"""Loss and gradients of a stack of small convolutional networks as batched products, no autograd.

The samples of a batch lie side by side in memory, signals are [C, channels, H, W, B]: a convolution
of C models is one batched product with the patches of their images, and neither weights nor signals
are ever reordered. Nothing mixes the models of a stack, so that neighbours change no result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor

from fl.models.architectures import Architecture
from fl.models.layers.learned_layers import Conv, Linear
from fl.models.layers.weightless_layers import Flatten, MaxPool
from fl.models.memory_format import pool_before_relu
from fl.stacked_training.perceptron_gradients import Gradient, ProductGradient, StackedCrossEntropy


def patch_values(architecture: Architecture) -> int:
    """Numbers in the patches of all convolutions of one sample."""
    return sum(
        prod(shape) * layer.side**2
        for layer, shape in zip(architecture.layers, architecture.input_shapes, strict=True)
        if isinstance(layer, Conv)
    )


class ConvolutionGradients:
    """Forward and backward pass of C small networks, in the same memory in every step.

    Args:
        trained: of each tensor of the model, is anything of it trained?
    """

    without_autograd = torch.inference_mode

    def __init__(self, architecture: Architecture, trained: Sequence[bool]) -> None:
        self._slots, places = len(architecture.layout.slots), iter(range(len(trained)))
        self._layers: list[StackedLayer] = []
        for layer in pool_before_relu(architecture).layers:
            if isinstance(layer, Conv | Linear):
                weight, bias = next(places), next(places) if layer.bias else None
                kind = StackedConv(layer.padding) if isinstance(layer, Conv) else StackedLinear()
                kind.weight, kind.bias = weight, bias
                kind.trains = trained[weight], bias is not None and trained[bias]
                self._layers.append(kind)
            elif not isinstance(layer, Flatten):  # flat signals are the same numbers
                self._layers.append(
                    StackedMaxPool() if isinstance(layer, MaxPool) else StackedRelu()
                )
        self._first = min(i for i, layer in enumerate(self._layers) if any(layer.trains))
        self._shape: tuple[int, ...] = ()
        self._loss: StackedCrossEntropy | None = None

    def __call__(
        self, leaves: Sequence[Tensor], x: Tensor, y: Tensor, share: Tensor
    ) -> tuple[Tensor, Tensor, list[Gradient]]:
        """Loss [C, B], hit [C, B] and gradients: as `PerceptronGradients.__call__`."""
        if self._shape != x.shape[:2]:
            self._shape, self._loss = x.shape[:2], None
            for layer in self._layers:
                layer.memory = {}
        signal = x.movedim(1, -1)
        for layer in self._layers:
            signal = layer.forward(leaves, signal)
        logits = signal.transpose(1, 2)
        self._loss = self._loss or StackedCrossEntropy(logits)
        loss, hits, back = self._loss(logits, y, share)
        found: list[Gradient] = [None] * self._slots
        back = back.transpose(1, 2)
        for i in range(len(self._layers) - 1, self._first - 1, -1):
            back = self._layers[i].backward(leaves, back, found, i > self._first)
        return loss, hits, found


class StackedLayer:
    """A layer of C models; ``memory`` keeps what a step needs, and serves the next one."""

    weight: int = -1  # place among the tensors of the model
    bias: int | None = None
    trains: tuple[bool, bool] = (False, False)  # weight, bias

    def __init__(self) -> None:
        self.memory: dict[str, Tensor] = {}

    def forward(self, leaves: Sequence[Tensor], x: Tensor) -> Tensor:
        raise NotImplementedError

    def backward(
        self, leaves: Sequence[Tensor], back: Tensor, found: list[Gradient], further: bool
    ) -> Tensor:
        """Gradient by the input where ``further``; those by the tensors go to ``found``."""
        raise NotImplementedError

    def kept(self, name: str, make: Callable[[], Tensor]) -> Tensor:
        """Memory of that name, made at the first step of a shape."""
        value = self.memory.get(name)
        if value is None:
            value = self.memory[name] = make()
        return value

    def product(self, name: str, one: Tensor, other: Tensor) -> Tensor:
        """A batched product in the memory of that name."""
        out = self.memory[name] = torch.bmm(one, other, out=self.memory.get(name))
        return out


class StackedLinear(StackedLayer):
    """Dense layer, [C, in, B] -> [C, out, B]."""

    def forward(self, leaves: Sequence[Tensor], x: Tensor) -> Tensor:
        x = self.columns(x, leaves[self.weight])
        self.memory["input"] = x
        out = self.product("output", leaves[self.weight].flatten(2), x)
        return out if self.bias is None else out.add_(leaves[self.bias].unsqueeze(2))

    def columns(self, x: Tensor, weight: Tensor) -> Tensor:
        """What the weights [C, out, in] are multiplied with [C, in, columns]."""
        return x.flatten(1, -2)

    def backward(
        self, leaves: Sequence[Tensor], back: Tensor, found: list[Gradient], further: bool
    ) -> Tensor:
        back = back.flatten(2)
        if self.trains[0]:
            inputs = self.memory["input"].transpose(1, 2)
            shape = leaves[self.weight].shape
            found[self.weight] = ProductGradient(back.transpose(1, 2), inputs, shape)
        if self.bias is not None and self.trains[1]:
            out = self.memory.get("bias")
            found[self.bias] = self.memory["bias"] = torch.sum(back, 2, out=out)
        if not further:
            return back
        return self.product("back", leaves[self.weight].flatten(2).transpose(1, 2), back)


class StackedConv(StackedLinear):
    """Convolution of stride 1, [C, inputs, H, W, B] -> [C, outputs, H', W', B]."""

    def __init__(self, padding: int) -> None:
        super().__init__()
        self.padding = padding

    def forward(self, leaves: Sequence[Tensor], x: Tensor) -> Tensor:
        self.shape = x.shape
        out = super().forward(leaves, x)
        side = leaves[self.weight].shape[-1]
        height, width = (size + 2 * self.padding - side + 1 for size in x.shape[2:4])
        return out.unflatten(2, (height, width, x.shape[-1]))

    def columns(self, x: Tensor, weight: Tensor) -> Tensor:
        """The patches of the images [C, inputs side side, H' W' B]."""
        side, pad, (models, inputs, height, width, batch) = weight.shape[-1], self.padding, x.shape
        if pad or not x.is_contiguous():
            sizes = models, inputs, height + 2 * pad, width + 2 * pad, batch
            padded = self.kept("padded", lambda: x.new_zeros(sizes))
            padded[:, :, pad : pad + height, pad : pad + width] = x
            x = padded
        patches = windows(x, side)
        columns = self.kept(
            "columns", lambda: torch.empty_like(patches, memory_format=torch.contiguous_format)
        )
        columns.copy_(patches)
        return columns.view(models, inputs * side * side, -1)

    def backward(
        self, leaves: Sequence[Tensor], back: Tensor, found: list[Gradient], further: bool
    ) -> Tensor:
        patches = super().backward(leaves, back, found, further)
        if not further:
            return patches
        side, pad, (models, inputs, height, width, batch) = (
            leaves[self.weight].shape[-1],
            self.padding,
            self.shape,
        )
        sizes = models, inputs, height + 2 * pad, width + 2 * pad, batch
        image = self.kept("image", lambda: patches.new_empty(sizes)).zero_()
        patches = patches.view(models, inputs, side, side, height + 2 * pad - side + 1, -1, batch)
        for i in range(side):
            for j in range(side):
                to = image[:, :, i : i + patches.shape[4], j : j + patches.shape[5]]
                to.add_(patches[:, :, i, j])
        return image[:, :, pad : pad + height, pad : pad + width]


def windows(x: Tensor, side: int) -> Tensor:
    """A view [C, channels, side, side, H', W', B] of images [C, channels, H, W, B]."""
    (c, i, h, w, b), (one, two, three, four, five) = x.shape, x.stride()
    shape = c, i, side, side, h - side + 1, w - side + 1, b
    return x.as_strided(shape, (one, two, three, four, three, four, five))


class StackedRelu(StackedLayer):
    """ReLU, in the memory of its input."""

    def forward(self, leaves: Sequence[Tensor], x: Tensor) -> Tensor:
        self.memory["output"] = x.clamp_min_(0)
        return x

    def backward(
        self, leaves: Sequence[Tensor], back: Tensor, found: list[Gradient], further: bool
    ) -> Tensor:
        output = self.memory["output"]
        return torch.ops.aten.threshold_backward(back.reshape(output.shape), output, 0)


class StackedMaxPool(StackedLayer):
    """2 x 2 max pooling; the samples of a batch take the place of torch's channels."""

    def forward(self, leaves: Sequence[Tensor], x: Tensor) -> Tensor:
        images = x.flatten(0, 1).permute(0, 3, 1, 2)
        self.memory["input"] = images
        pooled, self.memory["index"] = torch.ops.aten.max_pool2d_with_indices(
            images, [2, 2], [2, 2]
        )
        return pooled.permute(0, 2, 3, 1).unflatten(0, x.shape[:2])

    def backward(
        self, leaves: Sequence[Tensor], back: Tensor, found: list[Gradient], further: bool
    ) -> Tensor:
        images, index = self.memory["input"], self.memory["index"]
        models = len(leaves[0])
        back = back.reshape(len(index), index.shape[2], index.shape[3], -1).permute(0, 3, 1, 2)
        out = torch.ops.aten.max_pool2d_with_indices_backward(
            back, images, [2, 2], [2, 2], [0, 0], [1, 1], False, index
        )
        return out.permute(0, 2, 3, 1).unflatten(0, (models, -1))
