"""Models of equal shape stacked slot by slot, [C, ...], and the loss and gradients of all of them at once.

`Dense` writes the backward pass of multilayer perceptrons down, `Vmapped` has that of any architecture derived. Both
treat every model by itself: what becomes of one does not depend on which others are in the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.functional import cross_entropy

from fl.models.architectures import Architecture
from fl.models.layers import Linear
from fl.models.memory_format import pool_before_relu
from fl.models.stateless_layers import Flatten, Relu

VECTOR = 64  # numbers: a multiple of what any processor computes at once

threshold_backward = torch.ops.aten.threshold_backward.grad_input


class Product:
    """A gradient left^T right [C, out, in], multiplied out when it is asked for, or added to a tensor in one go."""

    def __init__(self, left: Tensor, right: Tensor) -> None:
        self.left, self.right = left.transpose(1, 2), right

    def value(self) -> Tensor:
        return torch.bmm(self.left, self.right)

    def subtract_from(self, leaf: Tensor, rate: float) -> None:
        leaf.baddbmm_(self.left, self.right, alpha=-rate)


Gradient = Tensor | Product | None  # of one slot; None: not trained
Found = tuple[
    Tensor, Tensor, list[Gradient]
]  # of every sample loss and hit [C, B], of every slot the gradient


class Arithmetic(Protocol):
    """How a stack of models computes. without_autograd: the context in which it does."""

    without_autograd: ClassVar[Callable]

    def __init__(self, architecture: Architecture, trained: Sequence[bool]) -> None:
        """trained: is anything trained in that slot."""

    def gradients(self, leaves: Sequence[Tensor], x: Tensor, y: Tensor, share: Tensor) -> Found:
        """Of x [C, B, ...], y int [C, B]; share [C, B]: weight of a sample, 1 / n for n samples, 0 for padding."""


def is_dense(architecture: Architecture) -> bool:
    """Is it a multilayer perceptron?"""
    return all(isinstance(layer, Flatten | Linear | Relu) for layer in architecture.layers)


class Dense:
    """Multilayer perceptrons: a few products of stacks per step, no autograd, in the same memory in every step.

    The memory stays for the next stack of that size.
    """

    without_autograd = torch.inference_mode

    def __init__(self, architecture: Architecture, trained: Sequence[bool]) -> None:
        self.trained, self.layers = trained, []
        places = iter(range(len(architecture.layout.slots)))
        for layer in architecture.layers:
            if isinstance(layer, Linear):
                self.layers.append((next(places), next(places) if layer.bias else None))
            elif isinstance(layer, Relu):
                self.layers.append(None)
        used = [
            i
            for i, layer in enumerate(self.layers)
            if layer and any(trained[p] for p in layer if p is not None)
        ]
        self.first = used[0]  # no gradient is needed below
        self.room: Room | None = None

    def logits(self, leaves: Sequence[Tensor], x: Tensor) -> Tensor:
        """Logits [C, B, classes] of x [C, B, ...]."""
        return reduce(
            lambda signal, layer: forward(leaves, layer, signal), self.layers, x.flatten(2)
        )

    def gradients(self, leaves: Sequence[Tensor], x: Tensor, y: Tensor, share: Tensor) -> Found:
        """As `Arithmetic.gradients`; what it gives is good until the next step."""
        if self.room is None or not self.room.fits(leaves, x):
            self.room = Room(self.layers, self.first, leaves, x)
        room, signals = self.room, [x.flatten(2)]
        for layer, out in zip(self.layers, room.signals, strict=True):
            signals.append(forward(leaves, layer, signals[-1], out))
        loss, right, back = room.loss(signals[-1], y, share)
        found: list[Gradient] = [None] * len(leaves)
        for i in range(len(self.layers) - 1, self.first - 1, -1):
            if self.layers[i] is None:
                back = threshold_backward(back, signals[i + 1], 0, grad_input=back)
                continue
            weight, bias = self.layers[i]
            if self.trained[weight]:
                found[weight] = Product(back, signals[i])
            if bias is not None and self.trained[bias]:
                found[bias] = torch.sum(back, 1, out=room.biases[i])
            if i > self.first:
                back = torch.bmm(back, leaves[weight], out=room.backs[i])
        return loss, right, found


class Room:
    """Memory for the steps of perceptrons: what is taken anew for every product does not stay in the caches.

    Layer by layer: the signal behind it, the gradient by the signal before it (None up to the first that is trained),
    that by its bias; None for ReLU.
    """

    def __init__(
        self,
        layers: Sequence[tuple[int, int | None] | None],
        first: int,
        leaves: Sequence[Tensor],
        x: Tensor,
    ) -> None:
        self._made_for, (models, batch) = made_for(leaves, x), x.shape[:2]
        shapes = [
            None if layer is None else leaves[layer[0]].shape for layer in layers
        ]  # [C, out, in]
        self.signals = [shape and x.new_empty(models, batch, shape[1]) for shape in shapes]
        self.backs = [
            x.new_empty(models, batch, shape[2]) if shape and i > first else None
            for i, shape in enumerate(shapes)
        ]
        self.biases = [shape and x.new_empty(models, shape[1]) for shape in shapes]
        self.loss = LogLoss(next(signal for signal in reversed(self.signals) if signal is not None))

    def fits(self, leaves: Sequence[Tensor], x: Tensor) -> bool:
        """Is it the memory for such models and samples?"""
        return self._made_for == made_for(leaves, x)


def made_for(leaves: Sequence[Tensor], x: Tensor) -> tuple:
    return x.dtype, x.shape[:2], [leaf.shape for leaf in leaves]


def forward(
    leaves: Sequence[Tensor],
    layer: tuple[int, int | None] | None,
    x: Tensor,
    out: Tensor | None = None,
) -> Tensor:
    """x [C, B, in] through a linear layer, given by the places of its weight and bias, or (None) ReLU, in place."""
    if layer is None:
        return x.clamp_min_(0)
    weight, bias = layer
    x = torch.bmm(x, leaves[weight].transpose(1, 2), out=out)
    return x if bias is None else x.add_(leaves[bias].unsqueeze(1))


class LogLoss:
    """Cross entropy of logits [C, B, classes] such as the given ones, in the same memory at every call.

    Class by class: along a last dimension of ten torch's softmax takes ten times as long. The samples are filled up
    to whole vectors of a processor: it rounds those at the end in another way, and who is there depends on neighbours.
    """

    def __init__(self, logits: Tensor) -> None:
        (*samples, classes), count = logits.shape, logits[..., 0].numel()
        self._logits = logits.new_zeros(classes, -(-count // VECTOR) * VECTOR)
        self._chances = torch.empty_like(self._logits)
        self._back, self._loss = torch.empty_like(logits), logits.new_empty(1, count)
        self._minus_share = torch.empty_like(self._loss)
        self._real = self._chances[:, :count]
        self._logits_in, self._chances_out = (  # the same numbers as [C, B, classes]
            each[:, :count].t().unflatten(0, samples) for each in (self._logits, self._chances)
        )
        self._loss_out = self._loss.view(samples)

    def __call__(self, logits: Tensor, y: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Loss and hit of every sample [C, B], and the gradient of their weighted sum by the logits."""
        label, share = y.reshape(1, -1), share.reshape(1, -1)
        self._logits_in.copy_(logits)
        torch.log_softmax(self._logits, 0, out=self._chances)
        torch.gather(self._chances, 0, label, out=self._loss).neg_()
        self._chances.exp_()
        self._real.mul_(share).scatter_add_(0, label, torch.neg(share, out=self._minus_share))
        return self._loss_out, logits.max(2)[1] == y, self._back.copy_(self._chances_out)


def log_loss(logits: Tensor, y: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same once."""
    return LogLoss(logits)(logits, y, share)


class Vmapped:
    """Any architecture whose operations `torch.func.vmap` knows: mainly for accelerators."""

    without_autograd = torch.no_grad  # `grad` turns it on again

    def __init__(self, architecture: Architecture, trained: Sequence[bool]) -> None:
        self.trained, self.forward = trained, pool_before_relu(architecture).forward
        self._each = vmap(grad(self._loss, has_aux=True))

    def gradients(self, leaves: Sequence[Tensor], x: Tensor, y: Tensor, share: Tensor) -> Found:
        changing = tuple(
            leaf for leaf, trained in zip(leaves, self.trained, strict=True) if trained
        )
        frozen = tuple(
            leaf for leaf, trained in zip(leaves, self.trained, strict=True) if not trained
        )
        gradients, (loss, right) = self._each(changing, frozen, x, y, share)
        each = iter(gradients)
        return loss, right, [next(each) if trained else None for trained in self.trained]

    def _loss(
        self,
        changing: tuple[Tensor, ...],
        frozen: tuple[Tensor, ...],
        x: Tensor,
        y: Tensor,
        share: Tensor,
    ):
        """Of one model: the weighted loss, and to be shown the loss and hit of every sample."""
        trained, fixed = iter(changing), iter(frozen)
        logits = self.forward([next(trained if changes else fixed) for changes in self.trained], x)
        loss = cross_entropy(logits, y, reduction="none")
        return (loss * share).sum(), (loss, logits.argmax(1) == y)
