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
        self._sums: list[tuple[Tensor, Tensor]] = []
        self._samples = 0

    def begin(self, samples: int) -> Normalise:
        self._samples += samples
        return partial(self._collect, count())

    def _collect(self, layers: count, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        place, dims = next(layers), [0, *range(2, x.dim())]
        several = x.numel() > x.shape[1]  # the variance of a single value per channel is 0
        values = x.detach()
        seen = len(x) * values.mean(dims), len(x) * values.var(dims, correction=int(several))
        if place == len(self._sums):
            self._sums.append(seen)
        else:
            self._sums[place] = tuple(
                total + more for total, more in zip(self._sums[place], seen, strict=True)
            )
        return batch_norm(x, scale, shift)

    def sums(self) -> list[Tensor]:
        """Sums of every layer so far: means and variances, each times the samples, [C]."""
        return [sums for pair in self._sums for sums in pair]

    def add(self, sums: Sequence[Tensor], samples: int) -> None:
        """Adds the sums that were collected elsewhere from so many samples."""
        before = self.sums() or [torch.zeros_like(each) for each in sums]
        total = [one + other for one, other in zip(before, sums, strict=True)]
        self._sums = list(zip(total[::2], total[1::2], strict=True))
        self._samples += samples

    def frozen(self) -> Frozen:
        """The averages over all samples so far."""
        return Frozen(
            tuple((mean / self._samples, variance / self._samples) for mean, variance in self._sums)
        )


@dataclass(frozen=True)
class Frozen:
    """Layers normalise with the given mean and variance, one pair of [C] per layer."""

    statistics: tuple[tuple[Tensor, Tensor], ...]

    def begin(self, samples: int) -> Normalise:
        each = iter(self.statistics)
        return lambda x, scale, shift: torch.batch_norm(
            x, scale, shift, *next(each), False, 0.0, EPS, True
        )
