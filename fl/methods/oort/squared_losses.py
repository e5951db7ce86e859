"""A cross entropy that notes the squared losses of the samples it saw."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


class SquaredLosses:
    """The criterion of one job, whose last coordinate of the model takes the mean squared loss."""

    def begin(self, start: Tensor) -> Tensor:
        """A job may run twice: the sum then begins anew."""
        self.total, self.samples = start.new_zeros(()), 0
        return start

    def __call__(self, logits: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            self.total += cross_entropy(logits, y, reduction="none").square().sum()
        self.samples += len(y)
        return cross_entropy(logits, y)

    def finish(self, done: list[Tensor]) -> Tensor:
        w = done[-1].clone()
        w[-1] = self.total / self.samples
        return w
