"""The steps of a stack, all its models at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from edgesim.contracts import Sgd
from fl.executors.pieces import Piece
from fl.executors.stacked import Arithmetic, Gradient, Product
from fl.optimisers import descent
from fl.task import Task


def take_steps(task: Task, arithmetic: type[Arithmetic], chunk: Sequence[Piece], width: int | None) -> None:
    """Trains pieces of one kind, those with most steps first, and puts the results into their models.

    width: how many models compute in every step, idle ones included; None: those that have steps left.
    """
    with arithmetic.without_autograd():
        models, loss, right = trained(task, Stack(task, arithmetic, chunk, width or len(chunk)), chunk, width)
    each = zip(chunk, models, loss.tolist(), right.tolist(), strict=False)
    for piece, part, total, hits in each:
        piece.finish(part, total / piece.steps, hits / piece.steps)


def trained(task: Task, stack: Stack, chunk: Sequence[Piece], width: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """The models after all steps [C, p], and loss and accuracy [C], summed over the steps."""
    images, labels = task.train
    index, share = schedule(chunk, stack.size, images.device)
    loss, right = torch.zeros_like(share[0]), torch.zeros_like(share[0])
    ends = np.array([piece.steps for piece in chunk])
    for t in range(chunk[0].steps):
        going = int((ends > t).sum())
        stack.narrow(going, computing=width or going)
        chosen, counts = index[t, : stack.computing], share[t, : stack.computing]
        x = images.index_select(0, chosen.flatten()).view(*chosen.shape, *images.shape[1:])
        y = labels.index_select(0, chosen.flatten()).view(chosen.shape)
        one_loss, one_right = stack.step(x, y, counts)
        loss[: stack.computing].addcmul_(one_loss, counts)
        right[: stack.computing].addcmul_(one_right, counts)
    return stack.models(), loss.sum(1), right.sum(1)


def schedule(chunk: Sequence[Piece], models: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Sample indices [steps, C, B], and the weight of each sample in its batch: 1 / n, or 0 for padding."""
    steps, batch = chunk[0].steps, chunk[0].batch
    if len(chunk) == models and all(piece.steps == steps and piece.sizes is None for piece in chunk):
        index = np.concatenate([piece.samples for piece in chunk]).reshape(models, steps, batch).swapaxes(0, 1)
        ones = torch.ones(index.shape, dtype=chunk[0].whole.dtype, device=device)
        return torch.from_numpy(np.ascontiguousarray(index)).to(device), ones / batch
    index = np.zeros((steps, models, batch), dtype=np.int64)
    share = np.zeros(index.shape)
    for i, piece in enumerate(chunk):
        if piece.sizes is None:
            index[: piece.steps, i] = piece.samples.reshape(-1, batch)
            share[: piece.steps, i] = 1.0 / batch
        else:
            counts = np.array(piece.sizes)[:, None]
            real = np.arange(batch) < counts
            index[: piece.steps, i][real] = piece.samples
            share[: piece.steps, i] = real / counts
    weights = torch.from_numpy(share).to(chunk[0].whole.dtype)
    return torch.from_numpy(index).to(device), weights.to(device)


class Stack:
    """Models of one kind, slot by slot [C, ...], with what their steps need. size: C, filled up by idle models."""

    def __init__(self, task: Task, arithmetic: type[Arithmetic], chunk: Sequence[Piece], size: int) -> None:
        first, self.size, self.computing = chunk[0], size, size
        self.layout, self.rate = first.layout, first.rate
        trained = [how != "none" for how in first.extent]
        self.arithmetic = arithmetic(task.architecture, trained)
        self.leaves = self._whole = self._slots([piece.part for piece in chunk])
        self.factors = None if first.factor is None else self._slots([piece.factor for piece in chunk])
        masks = rates = [None] * len(trained)
        if "some" in first.extent:
            masks = self._slots([piece.mask.to(first.whole.dtype) for piece in chunk])
        if isinstance(self.rate, Tensor):
            rates = self._slots([piece.rate for piece in chunk])
        self.bare = first.optimiser == Sgd() and self.factors is None and masks == rates
        moved = [
            (leaf, mask if how == "some" else None, self.rate if rate is None else rate)
            for leaf, mask, rate, how in zip(self.leaves, masks, rates, first.extent, strict=True)
            if how != "none"
        ]
        self.move = descent(first.optimiser, moved, stacked=True)

    def _slots(self, flats: Sequence[Tensor]) -> list[Tensor]:
        stack = torch.stack([*flats, *[flats[0]] * (self.size - len(flats))])
        return [stack[:, slot.slice].reshape(self.size, *slot.shape).contiguous() for slot in self.layout.slots]

    def narrow(self, going: int, computing: int) -> None:
        """From now on the first models move, ``going`` of them, and as many as ``computing`` compute."""
        self.going = going
        if going < len(self.move.trained[0][0]):
            self.move.narrow(going)
        if computing < self.computing:
            self.computing = computing
            self.leaves = [leaf[:computing] for leaf in self.leaves]
            self.factors = self.factors and [factor[:computing] for factor in self.factors]

    def step(self, x: Tensor, y: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
        """Moves every model by the gradient of its own batch; returns each sample's loss and hit [C, B]."""
        weights = self.leaves
        if self.factors is not None:
            weights = [leaf * factor for leaf, factor in zip(weights, self.factors, strict=True)]
        loss, right, found = self.arithmetic.gradients(weights, x, y, share)
        if self.bare and self.going == self.computing:
            self._descend(found)
        else:
            factors = self.factors or [None] * len(found)
            self.move([value(g, f)[: self.going] for g, f in zip(found, factors, strict=True) if g is not None])
        return loss, right

    def _descend(self, found: Sequence[Gradient]) -> None:
        """The plain step of SGD, without a tensor for the gradient of a product."""
        for leaf, gradient in zip(self.leaves, found, strict=True):
            if isinstance(gradient, Product):
                gradient.subtract_from(leaf, self.rate)
            elif gradient is not None:
                leaf.sub_(gradient, alpha=self.rate)

    def models(self) -> Tensor:
        """The flat models [C, p]."""
        return torch.cat([leaf.flatten(1) for leaf in self._whole], 1)


def value(gradient: Gradient, factor: Tensor | None) -> Tensor:
    """A gradient as a tensor, by the weights themselves where they compute with a factor."""
    gradient = gradient.value() if isinstance(gradient, Product) else gradient
    return gradient if factor is None else gradient * factor
