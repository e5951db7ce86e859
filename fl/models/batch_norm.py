"""Static batch norm: batches normalise themselves while training; before a model is scored its statistics are frozen.

HeteroFL (Diao et al., ICLR 2021), fedmap.md, section 4: no running averages are kept. The training data run once
through the finished model, and the statistics that its layers saw are averaged and used in evaluation.
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
    """x [B, C] or [B, C, H, W], each channel with mean 0 and variance 1 over the batch, scaled and shifted.

    A channel with a single value becomes its shift.
    """
    return torch.batch_norm(x, scale, shift, None, None, True, 0.0, EPS, True)


class Norms(Protocol):
    """What the norm layers of a model do, in the order in which a forward pass meets them."""

    def begin(self, samples: int) -> Normalise:
        """What they call in a pass of so many samples that begins now."""
        ...


class Collected:
    """Layers normalise with the batch's statistics, which are added up: means, unbiased variances, weighted by size."""

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
        """What was added up so far: of every layer means and variances, each times the samples, [C]."""
        return [sums for pair in self._sums for sums in pair]

    def add(self, sums: Sequence[Tensor], samples: int) -> None:
        """Goes on with what another, who saw one batch of so many samples, has added up."""
        seen = list(zip(sums[::2], sums[1::2], strict=True))
        known = self._sums or [(0.0, 0.0)] * len(seen)
        self._sums = [
            (m + mean, v + variance) for (m, v), (mean, variance) in zip(known, seen, strict=True)
        ]
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
