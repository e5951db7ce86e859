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
        changing = {i: leaf for i, leaf in enumerate(leaves) if self.trained[i]}
        frozen = {i: leaf for i, leaf in enumerate(leaves) if not self.trained[i]}
        gradients, (loss, hits) = self._gradients(changing, frozen, x, y, share)
        return loss, hits, [gradients.get(i) for i in range(len(leaves))]

    def _loss(self, changing: dict, frozen: dict, x: Tensor, y: Tensor, share: Tensor) -> tuple:
        """Of one model: the weighted loss, and the loss and hit of every sample [B]."""
        leaves = changing | frozen
        logits = self._forward([leaves[i] for i in range(len(leaves))], x)
        loss = cross_entropy(logits, y, reduction="none")
        return (loss * share).sum(), (loss, logits.argmax(1) == y)
