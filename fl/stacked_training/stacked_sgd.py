"""Gradient descent of a stack of models, all of them at once in every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
import torch
from torch import Tensor

from fl.contracts import Sgd
from fl.stacked_training.convolution_gradients import ConvolutionGradients
from fl.stacked_training.perceptron_gradients import Gradient, PerceptronGradients, ProductGradient
from fl.stacked_training.stackable_phases import StackRow
from fl.stacked_training.vmapped_gradients import VmappedGradients
from fl.task import LearningTask
from fl.training.optimisers import Variable, make_optimiser
from fl.worker_threads import raise_if_stopped

SAMPLE_BYTES = 4 << 20  # the samples of as many steps as fit, at least one, are read at once

Gradients = PerceptronGradients | ConvolutionGradients | VmappedGradients


def train_stack(
    task: LearningTask, gradients: Gradients, rows: Sequence[StackRow], least: int
) -> tuple[list[Tensor], list[float], list[float]]:
    """Trains rows of one kind, sorted by steps, those with most steps first.

    Args:
        gradients: what computes their loss and gradients.
        least: number of models that compute in every step at least, idle ones included.

    Returns:
        The trained parts [p], each in memory of its own: what is kept of one must not hold all.
        Loss and accuracy of each row, means over its steps.
    """
    size, steps = max(least, len(rows)), np.array([row.steps for row in rows])
    going = np.count_nonzero(steps[:, None] > np.arange(steps[0]), axis=0).tolist()
    computing = [max(least, count) for count in going]
    with gradients.without_autograd():
        stack = Stack(task, gradients, rows, size)
        index, share = schedule(rows, size, task.train[0].device)
        loss, hits = torch.zeros_like(share[0]), torch.zeros_like(share[0])
        for t, (x, y, weight) in enumerate(batches(task, index, share, computing)):
            stack.narrow(going[t], computing[t])
            each_loss, each_hit = stack.step(x, y, weight)
            now = slice(going[t])  # what idle models show may be no number: it must not be added
            loss[now].addcmul_(each_loss[now], weight[now])
            hits[now].addcmul_(each_hit[now], weight[now])
        stack.narrow(0, 0)
    # torch's stub says that unbind_copy returns nothing.
    parts = [w for some in stack.finished[::-1] for w in torch.unbind_copy(some)]  # type: ignore[func-returns-value, attr-defined]
    means = ((each.sum(1)[: len(rows)].cpu().numpy() / steps).tolist() for each in (loss, hits))
    return parts, *means


def least_computing(row: StackRow) -> int:
    """How many small models have to compute so that no result depends on whether others do.

    A product with a single row or column is one of a matrix and a vector, and rounds differently,
    where there is only one.
    """
    kernels = [slot.shape for slot in row.part.layout.slots]
    sides = {n for shape in kernels for n in (shape[0], prod(shape[1:])) if len(shape) > 1}
    return 2 if 1 in {row.batch, *(shape[0] for shape in kernels), *sides} else 1


def schedule(rows: Sequence[StackRow], size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Which samples each of ``size`` models takes in each step.

    Returns:
        Sample indices [size, steps, B].
        Weight of each sample in its batch [steps, size, B]: 1 / n for n samples, 0 for padding.
    """
    steps, batch, dtype = rows[0].steps, rows[0].batch, rows[0].w.dtype
    if len(rows) == size and all(row.steps == steps and row.sizes is None for row in rows):
        index = np.concatenate([row.samples for row in rows]).reshape(size, steps, batch)
        share = torch.full((steps, size, batch), 1.0 / batch, dtype=dtype, device=device)
        return torch.from_numpy(index).to(device), share
    index = np.zeros((size, steps, batch), dtype=np.int64)
    weights = np.zeros(index.shape)
    for i, row in enumerate(rows):
        index[i] = row.samples[0]  # padding is a sample of its own: weight 0 does not stop nan
        counts = np.full(row.steps, batch) if row.sizes is None else np.array(row.sizes)
        real = np.arange(batch) < counts[:, None]
        index[i, : row.steps][real] = row.samples
        weights[i, : row.steps] = real / counts[:, None]
    share = torch.from_numpy(weights.swapaxes(0, 1).copy()).to(dtype)
    return torch.from_numpy(index).to(device), share.to(device)


def batches(
    task: LearningTask, index: Tensor, share: Tensor, computing: Sequence[int]
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Of every step the samples x [C, B, ...], labels [C, B] and weights [C, B] of C models."""
    images, labels = task.train
    at_once = max(1, SAMPLE_BYTES // (index[:, 0].numel() * images[0].nbytes))
    for first in range(0, len(share), at_once):
        some = index[: computing[first], first : first + at_once]
        x = images.index_select(0, some.flatten()).view(*some.shape, *images.shape[1:])
        each = some.transpose(0, 1)
        y = labels.index_select(0, each.flatten()).view(each.shape)
        for t in range(some.shape[1]):
            raise_if_stopped()
            count = computing[first + t]
            yield x[:count, t], y[t, :count], share[first + t, :count]


class Stack:
    """Models of one kind, tensor by tensor [C, ...], and their optimiser.

    ``finished`` holds the models [n, p] whose steps are done; later ones were before them in line.
    """

    def __init__(
        self, task: LearningTask, gradients: Gradients, rows: Sequence[StackRow], size: int
    ) -> None:
        part, self._gradients, self._size, self._going = rows[0].part, gradients, size, len(rows)
        self.finished: list[Tensor] = []
        self._layout, dtype = part.layout, rows[0].w.dtype
        self._rate = 0.0 if isinstance(part.rate, Tensor) else part.rate
        self._leaves = self._stacked([row.start for row in rows])
        self._factors = masks = rates = None
        if part.factor is not None:
            self._factors = self._stacked([f for row in rows if (f := row.part.factor) is not None])
        if "some" in part.extent:
            masks = self._stacked([row.part.mask.to(dtype) for row in rows])
        if isinstance(part.rate, Tensor):
            rates = self._stacked([r for row in rows if isinstance(r := row.part.rate, Tensor)])
        self._plain = part.optimiser == Sgd() and not (self._factors or masks or rates)
        moved = [
            Variable(
                leaf,
                masks[i] if masks and how == "some" else None,
                rates[i] if rates else part.rate,
            )
            for i, (leaf, how) in enumerate(zip(self._leaves, part.extent, strict=True))
            if how != "none"
        ]
        self._move = make_optimiser(part.optimiser, moved, stacked=True)

    def _stacked(self, flats: Sequence[Tensor]) -> list[Tensor]:
        """Flat tensors [p] as one per slot [C, ...]; a tensor that all share is read once."""
        if all(flat is flats[0] for flat in flats):
            stack = flats[0].expand(self._size, -1)
        else:
            stack = torch.stack([*flats, *[flats[0]] * (self._size - len(flats))])
        return [
            stack[:, slot.slice]
            .reshape(self._size, *slot.shape)
            .clone(memory_format=torch.contiguous_format)
            for slot in self._layout.slots
        ]

    def narrow(self, going: int, computing: int) -> None:
        """From now on only the first models go on; those that have ended are put away."""
        if going < self._going:
            ended = [leaf[going : self._going].flatten(1) for leaf in self._leaves]
            self.finished.append(torch.cat(ended, 1))
            self._going = going
        if computing < len(self._leaves[0]):
            self._leaves = [leaf[:computing] for leaf in self._leaves]
            self._factors = self._factors and [factor[:computing] for factor in self._factors]
            self._move.narrow(computing)

    def step(self, x: Tensor, y: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
        """Moves every model by the gradient of its batch; returns loss and hit of samples [C, B].

        Idle models move as well: what they become is never read.
        """
        weights = self._leaves
        if self._factors is not None:
            weights = [leaf * f for leaf, f in zip(weights, self._factors, strict=True)]
        loss, hits, found = self._gradients(weights, x, y, share)
        if self._plain:
            for leaf, gradient in zip(self._leaves, found, strict=True):
                if isinstance(gradient, ProductGradient):
                    gradient.subtract_from(leaf, self._rate)
                elif gradient is not None:
                    leaf.sub_(gradient, alpha=self._rate)
        else:
            self._move(list(self._values(found)))
        return loss, hits

    def _values(self, found: Sequence[Gradient]) -> Iterator[Tensor]:
        """Gradients as tensors, by the weights themselves where they compute with a factor."""
        for i, gradient in enumerate(found):
            if gradient is not None:
                value = gradient.value() if isinstance(gradient, ProductGradient) else gradient
                yield value if self._factors is None else value * self._factors[i]
