"""Loss and gradients of a stack of models of any architecture by `torch.func.vmap`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.functional import cross_entropy

from fl.models.architectures import Architecture
from fl.models.memory_format import pool_before_relu


class VmappedGradients:
    """As `PerceptronGradients`, with a backward pass that torch derives: mainly for accelerators.

    Operations such as grouped convolutions choose their algorithm by the number of models, so that
    results are the same only in stacks of the same number.
    """

    without_autograd = torch.no_grad  # `grad` turns it on again

    def __init__(self, architecture: Architecture, trained: Sequence[bool]) -> None:
        self.trained, self._forward = trained, pool_before_relu(architecture).forward
        self._gradients = vmap(grad(self._loss, has_aux=True))

    def __call__(
        self, leaves: Sequence[Tensor], x: Tensor, y: Tensor, share: Tensor
    ) -> tuple[Tensor, Tensor, list[Tensor | None]]:
        """Loss [C, B], hit [C, B] and gradients: as `PerceptronGradients.__call__`."""
        pairs = list(zip(leaves, self.trained, strict=True))
        changing = tuple(leaf for leaf, trained in pairs if trained)
        frozen = tuple(leaf for leaf, trained in pairs if not trained)
        gradients, (loss, hits) = self._gradients(changing, frozen, x, y, share)
        each = iter(gradients)
        return loss, hits, [next(each) if trained else None for trained in self.trained]

    def _loss(
        self,
        changing: tuple[Tensor, ...],
        frozen: tuple[Tensor, ...],
        x: Tensor,
        y: Tensor,
        share: Tensor,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Of one model: the weighted loss, and the loss and hit of every sample [B]."""
        trained, fixed = iter(changing), iter(frozen)
        leaves = [next(trained if changes else fixed) for changes in self.trained]
        logits = self._forward(leaves, x)
        loss = cross_entropy(logits, y, reduction="none")
        return (loss * share).sum(), (loss, logits.argmax(1) == y)
