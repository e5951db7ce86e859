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
from torch import Tensor, nn

from fl.errors import ModelError
from fl.models.layers.layer import Normalise

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


# --- in modules of the user's own --------------------------------------------------------------


class StaticBatchNorm(nn.Module):
    """Stands for a batch norm of torch: normalises as it is told for each forward pass."""

    def __init__(self, given: nn.modules.batchnorm._BatchNorm) -> None:
        super().__init__()
        self.weight, self.bias = given.weight, given.bias
        self.normalise: Normalise | None = None

    def forward(self, x: Tensor) -> Tensor:
        assert self.normalise is not None  # set by `ModuleArchitecture.forward`
        return self.normalise(x, self.weight, self.bias)


def with_static_batch_norm(module: nn.Module, name: str) -> nn.Module:
    """The module with `StaticBatchNorm` in place of batch norm that computes as torch's does.

    The module is changed in place.

    Raises:
        ModelError: a batch norm has an eps of its own.
    """
    found = {each: static(each, name) for each in module.modules() if is_batch_norm(each)}
    for parent in list(module.modules()):
        for key, child in parent._modules.items():  # which has a child under each of its names
            if child in found:
                parent._modules[key] = found[child]
    return found.get(module, module)


def is_batch_norm(module: nn.Module) -> bool:
    """Is it a batch norm of torch, or of a class that takes over how it computes?"""
    kind = nn.modules.batchnorm._BatchNorm
    return isinstance(module, kind) and type(module).forward.__module__.startswith("torch.")


def static(module: nn.Module, name: str) -> nn.Module:
    """What stands for a batch norm; a ModelError where it has an eps of its own."""
    assert isinstance(module, nn.modules.batchnorm._BatchNorm)
    if module.eps != EPS:
        problem = f"batch norm adds {EPS:g} to the variance"
        raise ModelError(f"model {name} has a batch norm with eps {module.eps:g}; {problem}")
    return StaticBatchNorm(module)
