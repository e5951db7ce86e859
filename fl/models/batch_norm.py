"""Static batch norm of HeteroFL (Diao et al., ICLR 2021): no running averages are kept.

Batches normalise themselves while training. Before a model is scored, the training data run once
through it, and the statistics that its layers saw are averaged and used in evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Protocol

import torch
from torch import Tensor

from fl.models.layers import Normalise

EPS = 1e-5  # torch's default


def batch_norm(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Each channel with mean 0 and variance 1 over the batch, scaled and shifted.

    Args:
        x: [B, C] or [B, C, H, W]; a channel with a single value becomes its shift.
        scale: [C].
        shift: [C].
    """
    return torch.batch_norm(x, scale, shift, None, None, True, 0.0, EPS, True)


class Norms(Protocol):
    """Statistics of the norm layers of a model, in the order in which a forward pass meets them."""

    def begin(self, samples: int) -> Normalise:
        """The function that they call in a forward pass of so many samples, which begins now."""
        ...


class Collected:
    """Layers use the batch's statistics, which are added up, weighted by the number of samples.

    They are means and unbiased variances.
    """

    def __init__(self) -> None:
        self._sums: list[Tensor] = []  # of every layer mean and variance, each times the samples
        self._samples = 0

    def begin(self, samples: int) -> Normalise:
        self._samples += samples
        return partial(self._collect, count())

    def _collect(self, layers: count, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        place, dims, values = 2 * next(layers), [0, *range(2, x.dim())], x.detach()
        several = x.numel() > x.shape[1]  # the variance of a single value per channel is 0
        mean, variance = values.mean(dims), values.var(dims, correction=int(several))
        before = self._sums[place : place + 2] or [torch.zeros_like(mean)] * 2
        sums = zip(before, (len(x) * mean, len(x) * variance), strict=True)
        self._sums[place : place + 2] = [total + more for total, more in sums]
        return batch_norm(x, scale, shift)

    def sums(self) -> list[Tensor]:
        """Of every layer mean and variance over the samples so far, times their number, [C]."""
        return list(self._sums)

    def add(self, sums: Sequence[Tensor], samples: int) -> None:
        """Adds the sums that were collected elsewhere from so many samples."""
        before = self._sums or [torch.zeros_like(each) for each in sums]
        self._sums = [total + more for total, more in zip(before, sums, strict=True)]
        self._samples += samples

    def frozen(self) -> Frozen:
        """The averages over all samples so far."""
        averages = [each / self._samples for each in self._sums]
        return Frozen(tuple(zip(averages[::2], averages[1::2], strict=True)))


@dataclass(frozen=True)
class Frozen:
    """Layers normalise with the given mean and variance, one pair of [C] per layer."""

    statistics: tuple[tuple[Tensor, Tensor], ...]

    def begin(self, samples: int) -> Normalise:
        each = iter(self.statistics)
        return lambda x, scale, shift: torch.batch_norm(
            x, scale, shift, *next(each), False, 0.0, EPS, True
        )
