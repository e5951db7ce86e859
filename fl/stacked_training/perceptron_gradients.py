"""Loss and gradients of a stack of multilayer perceptrons: a few batched products, no autograd.

Nothing mixes the models of a stack, so that neighbours change no result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from fl.models.architectures import Architecture
from fl.models.layers.learned_layers import Linear
from fl.models.layers.weightless_layers import Relu

VECTOR = 64  # numbers: a multiple of what any processor computes at once


class ProductGradient:
    """A gradient left^T right [C, out, in], which SGD adds to the weights without storing it.

    Args:
        left: [C, n, out].
        right: [C, n, in].
        shape: of the weights, where they are [C, out, ...] with more dimensions.
    """

    def __init__(self, left: Tensor, right: Tensor, shape: Sequence[int] | None = None) -> None:
        self.left, self.right, self._shape = left.transpose(1, 2), right, shape

    def value(self) -> Tensor:
        product = torch.bmm(self.left, self.right)
        return product if self._shape is None else product.view(*self._shape)

    def subtract_from(self, leaf: Tensor, rate: float) -> None:
        leaf.flatten(2).baddbmm_(self.left, self.right, alpha=-rate)


Gradient = Tensor | ProductGradient | None  # of one tensor of the model; None: it is not trained


class PerceptronGradients:
    """Forward and backward pass of C perceptrons, in the same memory in every step.

    Args:
        trained: of each tensor of the model, is anything of it trained?
    """

    without_autograd = torch.inference_mode

    def __init__(self, architecture: Architecture, trained: Sequence[bool]) -> None:
        self.trained = trained
        self.layers: list[tuple[int, int | None] | None] = []  # weight and bias; None: ReLU
        places = iter(range(len(architecture.layout.slots)))
        for layer in architecture.layers:
            if isinstance(layer, Linear):
                self.layers.append((next(places), next(places) if layer.bias else None))
            elif isinstance(layer, Relu):
                self.layers.append(None)
        self._first = min(  # no gradient is needed below
            i
            for i, layer in enumerate(self.layers)
            if layer and any(trained[place] for place in layer if place is not None)
        )
        self._shape: tuple[int, ...] = ()
        self._memory: dict[tuple[str, int], Tensor] = {}
        self._loss: StackedCrossEntropy | None = None

    def logits(self, leaves: Sequence[Tensor], x: Tensor) -> Tensor:
        """Logits [C, B, classes] of x [C, B, ...] under the weights ``leaves`` [C, ...]."""
        return reduce(
            lambda signal, i: self._forward(leaves, i, signal),
            range(len(self.layers)),
            x.flatten(2),
        )

    def __call__(
        self, leaves: Sequence[Tensor], x: Tensor, y: Tensor, share: Tensor
    ) -> tuple[Tensor, Tensor, list[Gradient]]:
        """Loss and gradients of one batch per model; they are good until the next call.

        Args:
            leaves: the tensors of the models, each [C, ...].
            x: samples [C, B, ...].
            y: labels, int [C, B].
            share: weight of each sample in the loss [C, B]: 1 / n for n samples, 0 for padding.

        Returns:
            Loss [C, B] and hit [C, B] of each sample, and of each tensor the gradient [C, ...].
        """
        if self._shape != x.shape[:2]:
            self._shape, self._memory, self._loss = x.shape[:2], {}, None
        signals = [x.flatten(2)]
        for i in range(len(self.layers)):
            signals.append(self._forward(leaves, i, signals[-1], reuse=True))
        self._loss = self._loss or StackedCrossEntropy(signals[-1])
        loss, hits, back = self._loss(signals[-1], y, share)
        found: list[Gradient] = [None] * len(leaves)
        for i in range(len(self.layers) - 1, self._first - 1, -1):
            layer = self.layers[i]
            if layer is None:
                relu_backward = torch.ops.aten.threshold_backward.grad_input
                back = relu_backward(back, signals[i + 1], 0, grad_input=back)
                continue
            weight, bias = layer
            if self.trained[weight]:
                found[weight] = ProductGradient(back, signals[i])
            if bias is not None and self.trained[bias]:
                out = self._memory.get(("bias", i))
                found[bias] = self._memory["bias", i] = torch.sum(back, 1, out=out)
            if i > self._first:
                out = self._memory.get(("back", i))
                back = self._memory["back", i] = torch.bmm(back, leaves[weight], out=out)
        return loss, hits, found

    def _forward(self, leaves: Sequence[Tensor], i: int, x: Tensor, reuse: bool = False) -> Tensor:
        """x [C, B, in] through layer i, in the memory of the step before where ``reuse``."""
        layer = self.layers[i]
        if layer is None:
            return x.clamp_min_(0)
        weight, bias = layer
        # What is taken anew for every product does not stay in the processor's caches.
        out = self._memory.get(("signal", i)) if reuse else None
        x = torch.bmm(x, leaves[weight].transpose(1, 2), out=out)
        if reuse:
            self._memory["signal", i] = x
        return x if bias is None else x.add_(leaves[bias].unsqueeze(1))


class StackedCrossEntropy:
    """Cross entropy of logits [C, B, classes] of one shape, in the same memory at every call.

    Class by class: along a last dimension of ten torch's softmax takes ten times as long. The
    samples are filled up to whole vectors of a processor, which rounds those at the end otherwise:
    who is there depends on neighbours.
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
        """Loss [C, B], hit [C, B], and the gradient of their sum, weighted by share [C, B]."""
        label, share = y.reshape(1, -1), share.reshape(1, -1)
        self._logits_in.copy_(logits)
        torch.log_softmax(self._logits, 0, out=self._chances)
        torch.gather(self._chances, 0, label, out=self._loss).neg_()
        self._chances.exp_()
        self._real.mul_(share).scatter_add_(0, label, torch.neg(share, out=self._minus_share))
        return self._loss_out, logits.max(2)[1] == y, self._back.copy_(self._chances_out)
