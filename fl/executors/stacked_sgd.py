"""The steps of a stack, all its models at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from fl.contracts import Sgd
from fl.executors.plan import Piece
from fl.executors.stacked import Arithmetic, Gradient, Product
from fl.task import LearningTask
from fl.training.optimisers import make_optimiser

PICTURES = (
    4 << 20
)  # bytes: as many steps of a chunk have their pictures fetched at once, at least one


def take_steps(
    task: LearningTask,
    arithmetic: Arithmetic,
    chunk: Sequence[Piece],
    width: int | None,
    parted: Callable[[Tensor], Sequence[Tensor]] = torch.unbind_copy,
) -> tuple[Tensor, Tensor]:
    """Trains pieces of one kind, those with most steps first, and puts the results into their models.

    Args:
        width: how many models compute in every step, idle ones included; None: those that have steps left, and never
            fewer than `fewest`.
        parted: models from a stack, as a rule in memory of their own: what is kept of one must not hold all of them.

    Returns:
        Loss and accuracy [C or more], summed over the steps. They stay where they were computed: to look at them now
        would be to wait for an accelerator.
    """
    least = width or fewest(chunk)
    with arithmetic.without_autograd():
        models, loss, right = trained(
            task, Stack(task, arithmetic, chunk, max(least, len(chunk))), chunk, least
        )
    each = [
        piece.model(part) for piece, part in zip(chunk, parted(models[: len(chunk)]), strict=True)
    ]
    for piece, w in zip(chunk, each, strict=True):  # all or, where the memory is full, none
        piece.finish(w)
    return loss, right


def fewest(chunk: Sequence[Piece]) -> int:
    """How many models have to compute so that no result depends on whether others do.

    A product with a single row or column is one of a matrix and a vector, and rounds differently, where there is only
    one.
    """
    sizes = {chunk[0].batch, *(n for slot in chunk[0].form.layout.slots for n in slot.shape)}
    return 2 if 1 in sizes else 1


def trained(
    task: LearningTask, stack: Stack, chunk: Sequence[Piece], least: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The models after all steps [C, p], and loss and accuracy [C], summed over the steps."""
    images, _ = task.train
    index, share = schedule(chunk, stack.size, images.device)
    loss, right = torch.zeros_like(share[0]), torch.zeros_like(share[0])
    going = going_on(chunk)
    at_once = max(1, PICTURES // (stack.size * chunk[0].batch * images[0].nbytes))
    for first in range(0, chunk[0].steps, at_once):
        stack.narrow(going[first], computing=max(least, going[first]))
        fetch = fetched(task, index[: stack.computing, first : first + at_once])
        for t, (x, y, counts) in enumerate(
            zip(*fetch, share[first : first + at_once].unbind(), strict=True), first
        ):
            if going[t] < stack.going:
                stack.narrow(going[t], computing=max(least, going[t]))
            if stack.computing < len(counts):
                x, y, counts = x[: stack.computing], y[: stack.computing], counts[: stack.computing]
            one_loss, one_right = stack.step(x, y, counts)
            now = going[
                t
            ]  # what others show, who have no steps left, counts for nothing, even if it is no number
            loss[:now].addcmul_(one_loss[:now], counts[:now])
            right[:now].addcmul_(one_right[:now], counts[:now])
    return stack.models(), loss.sum(1), right.sum(1)


def going_on(chunk: Sequence[Piece]) -> list[int]:
    """How many models take each step."""
    ends = np.array([piece.steps for piece in chunk])
    return np.count_nonzero(ends[:, None] > np.arange(chunk[0].steps), axis=0).tolist()


def fetched(task: LearningTask, index: Tensor) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    """Of every step pictures [C, B, ...], where a model's own lie together: read fastest so; and labels [C, B]."""
    images, labels = task.train
    pictures = images.index_select(0, index.flatten()).view(*index.shape, *images.shape[1:])
    each = index.transpose(0, 1)
    return pictures.unbind(1), labels.index_select(0, each.flatten()).view(each.shape).unbind()


def schedule(chunk: Sequence[Piece], models: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Sample indices [C, steps, B]; the weight of each in its batch [steps, C, B]: 1 / n, or 0 for padding."""
    steps, batch, dtype = chunk[0].steps, chunk[0].batch, chunk[0].whole.dtype
    if len(chunk) == models and all(
        piece.steps == steps and piece.sizes is None for piece in chunk
    ):
        index = torch.from_numpy(np.concatenate([piece.samples for piece in chunk])).view(
            models, steps, batch
        )
        return sent(index, device), torch.full(
            (steps, models, batch), 1.0 / batch, dtype=dtype, device=device
        )
    index = np.zeros((models, steps, batch), dtype=np.int64)
    share = np.zeros(index.shape)
    for i, piece in enumerate(chunk):
        index[i] = piece.samples[
            0
        ]  # filled up with a sample of its own: weight zero is no remedy for nan
        if piece.sizes is None:
            index[i, : piece.steps] = piece.samples.reshape(-1, batch)
            share[i, : piece.steps] = 1.0 / batch
        else:
            counts = np.array(piece.sizes)[:, None]
            real = np.arange(batch) < counts
            index[i, : piece.steps][real] = piece.samples
            share[i, : piece.steps] = real / counts
    weights = torch.from_numpy(share.swapaxes(0, 1).copy()).to(dtype)
    return sent(torch.from_numpy(index), device), sent(weights, device)


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor where it is needed, without waiting for what an accelerator is at."""
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


class Stack:
    """Models of one kind, slot by slot [C, ...], with what their steps need. size: C, filled up by idle models."""

    def __init__(
        self, task: LearningTask, arithmetic: Arithmetic, chunk: Sequence[Piece], size: int
    ) -> None:
        first, self.size, self.computing = chunk[0].form, size, size
        self.layout, self.rate, self.arithmetic = first.layout, first.rate, arithmetic
        self.leaves = self._whole = self._slots([piece.part for piece in chunk])
        self.factors = (
            None if first.factor is None else self._slots([piece.form.factor for piece in chunk])
        )
        masks = rates = [None] * len(first.extent)
        if "some" in first.extent:
            masks = self._slots([piece.form.mask.to(chunk[0].whole.dtype) for piece in chunk])
        if isinstance(self.rate, Tensor):
            rates = self._slots([piece.form.rate for piece in chunk])
        some = "some" in first.extent or isinstance(self.rate, Tensor)
        self.bare = first.optimiser == Sgd() and self.factors is None and not some
        moved = [
            (leaf, mask if how == "some" else None, self.rate if rate is None else rate)
            for leaf, mask, rate, how in zip(self.leaves, masks, rates, first.extent, strict=True)
            if how != "none"
        ]
        self.move = make_optimiser(first.optimiser, moved, stacked=True)

    def _slots(self, flats: Sequence[Tensor]) -> list[Tensor]:
        """The flat tensors [p] slot by slot; what is the same tensor for all, a common start, is read once."""
        if all(flat is flats[0] for flat in flats):
            stack = flats[0].expand(self.size, -1)
        else:
            stack = torch.stack([*flats, *[flats[0]] * (self.size - len(flats))])
        parts = [stack[:, slot.slice].reshape(self.size, *slot.shape) for slot in self.layout.slots]
        return [part.clone(memory_format=torch.contiguous_format) for part in parts]

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
        if self.bare:
            self._descend(found)
        else:
            factors = self.factors or [None] * len(found)
            self.move(
                [
                    value(g, f)[: self.going]
                    for g, f in zip(found, factors, strict=True)
                    if g is not None
                ]
            )
        return loss, right

    def _descend(self, found: Sequence[Gradient]) -> None:
        """The plain step of SGD, without a tensor for the gradient of a product."""
        going, others = (
            self.going,
            self.going < self.computing,
        )  # who has no steps left stays as it is
        for leaf, gradient in zip(self.leaves, found, strict=True):
            if isinstance(gradient, Product):
                idle = leaf[going:].clone() if others else None
                gradient.subtract_from(leaf, self.rate)
                if others:
                    leaf[going:] = idle
            elif gradient is not None and others:
                leaf[:going].sub_(gradient[:going], alpha=self.rate)
            elif gradient is not None:
                leaf.sub_(gradient, alpha=self.rate)

    def models(self) -> Tensor:
        """The flat models [C, p]."""
        return torch.cat([leaf.flatten(1) for leaf in self._whole], 1)


def value(gradient: Gradient, factor: Tensor | None) -> Tensor:
    """A gradient as a tensor, by the weights themselves where they compute with a factor."""
    gradient = gradient.value() if isinstance(gradient, Product) else gradient
    return gradient if factor is None else gradient * factor
