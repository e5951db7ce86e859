"""The one training loop: masked steps on the flat model of one device, phase by phase."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from edgesim.contracts import Job, Phase, Trained
from fl.cut import cut
from fl.layout import Layout
from fl.models import Architecture
from fl.optimisers import descent
from fl.plain import Pool, Relu
from fl.task import Task

Array = np.ndarray
Step = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # images, labels -> loss, hits


@dataclass(frozen=True)
class Fit:
    """What a phase showed while it trained: means over its steps, and the sum of what it collected."""

    loss: float = float("nan")
    accuracy: float = float("nan")
    collected: Tensor | None = None


def run(task: Task, job: Job) -> Trained:
    """Trains the phases of a job in order. The result depends on the job alone, not on who trains beside it."""
    done: list[Tensor] = []
    mask, fit = None, Fit()
    for phase in job.phases:
        w = value_of(phase.start, done).clone()
        mask, submodel = value_of(phase.mask, done), value_of(phase.submodel, done)
        draws = draws_of(task, phase, job)
        index = batches(task, phase, job)
        if isinstance(submodel, tuple):
            fit = train_each(task, phase, w, mask, submodel, index, draws)
        else:
            mask = mask if submodel is None else mask & submodel
            fit = train(task, phase, w, mask, submodel, index, draws)
        done.append(w)
    return Trained(job.finish(done) if job.finish else done[-1], mask, fit.loss, fit.accuracy, fit.collected)


def train_each(task: Task, phase: Phase, w: Tensor, mask: Tensor, submodels: tuple[Tensor, ...], index, draws) -> Fit:
    """Every step with a submodel of its own: ordered dropout. The optimiser starts anew in every step."""
    steps = zip(submodels, index, strict=True)
    fits = [train(task, phase, w, mask & one, one, chosen[None], draws) for one, chosen in steps]
    return Fit(sum(fit.loss for fit in fits) / len(fits), sum(fit.accuracy for fit in fits) / len(fits))


def value_of(tensor: Any, done: list[Tensor]) -> Any:
    """A start, mask or submodel of a phase, given the results of the phases before."""
    return tensor(done) if callable(tensor) else tensor


def draws_of(task: Task, phase: Phase, job: Job) -> np.random.Generator | None:
    """What the weights that compute are drawn from, step by step; None where nothing is drawn."""
    if phase.effective is None:
        return None
    return task.streams.stream(f"draws/{phase.batches}", device=job.device, round=job.g)


def batches(task: Task, phase: Phase, job: Job) -> Sequence[Tensor]:
    """Sample indices of each step of a phase: [steps, B], or where the phase is ragged a list of them."""
    drawn, sizes = samples(task, phase, job)
    if sizes is not None:
        return torch.from_numpy(drawn).split(sizes)
    return torch.from_numpy(drawn.reshape(phase.steps, task.batch(job.device)))


def samples(task: Task, phase: Phase, job: Job) -> tuple[Array, list[int] | None]:
    """Sample indices of all steps of a phase, one after the other, and how many each step has; None: a full batch.

    Consecutive pieces of random orders of the device's own samples, one order after the other, from the stream
    (batches/<name>, device, round): a sample comes back only when all the others have been used. A ragged phase cuts
    each order by itself, so that its last piece is smaller.
    """
    mine = task.data.train_index[job.device]
    batch = min(task.batch_size, len(mine))
    rng = task.streams.stream(f"batches/{phase.batches}", device=job.device, round=job.g)
    sizes, first, end = None, phase.first * batch, (phase.first + phase.steps) * batch
    if phase.ragged:
        once = [min(batch, len(mine) - start) for start in range(0, len(mine), batch)]
        every = [once[i % len(once)] for i in range(phase.first + phase.steps)]
        sizes = every[phase.first :]
        first, end = sum(every) - sum(sizes), sum(every)
    orders = [rng.permutation(mine) for _ in range(-(-end // len(mine)))]
    if len(orders) == 1:
        return orders[0][first:end], sizes
    return (np.concatenate(orders) if orders else np.empty(0, dtype=np.int64))[first:end], sizes


def train(
    task: Task,
    phase: Phase,
    w: Tensor,
    mask: Tensor,
    submodel: Tensor | None,
    index: Sequence[Tensor],
    draws: np.random.Generator | None,
) -> Fit:
    """Takes the steps of a phase on w [P], in place, one per batch; only where ``mask`` is true."""
    if len(index) == 0 or not bool(mask.any()):
        return Fit()
    if submodel is not None and bool(submodel.all()):
        submodel = None
    if not is_plain(phase):
        return follow(task, phase, flat_step(task, phase, w, mask, submodel, draws), index, w)
    if submodel is None:
        return follow(task, phase, slot_step(task, phase, w, mask, task.layout), index, w)
    smaller = cut(task.layout, submodel)
    if smaller is None:
        return follow(task, phase, flat_step(task, phase, w, mask, submodel, draws), index, w)
    where = smaller.index
    part = w[where]
    fit = follow(task, phase, slot_step(task, phase, part, mask[where], smaller.layout, where), index, part)
    w[where] = part
    return fit


def is_plain(phase: Phase) -> bool:
    """Nothing looks at the flat model while it trains."""
    asked = phase.loss or phase.effective or phase.penalty or phase.project or phase.collect
    return asked is None


def follow(task: Task, phase: Phase, step: Step, index: Sequence[Tensor], w: Tensor) -> Fit:
    """One step per batch, and what they showed."""
    images, labels = task.train
    loss, hits = torch.zeros((), device=w.device), torch.zeros((), device=w.device)
    collected = None
    pixels = w.device.type == "cpu" and pixelwise(task.architecture, len(index[0]))
    for chosen in index:
        if phase.collect is not None:
            seen = phase.collect(w)
            collected = seen if collected is None else collected + seen
        chosen = chosen.to(w.device)
        x = images.index_select(0, chosen)
        one_loss, one_hits = step(channels_last(x) if pixels else x, labels.index_select(0, chosen))
        loss += one_loss
        hits += one_hits / len(chosen)
    return Fit(float(loss) / len(index), float(hits) / len(index), collected)


@lru_cache
def pixelwise(architecture: Architecture, batch: int) -> bool:
    """Does a CPU take batches of that size faster with the channels of each pixel side by side (channels_last)?

    It pools ten times and convolves up to twice as fast; against that stands a copy of the kernels in every step. It
    pays where convolutions give at least three values per weight of theirs (docs/performance.md).
    """
    kernels = [part for part in architecture.parts if part.kind == "weight" and len(part.shape) == 4]
    values = batch * sum(part.uses * part.shape[0] for part in kernels)
    return bool(kernels) and values >= 3 * sum(prod(part.shape) for part in kernels)


def channels_last(x: Tensor) -> Tensor:
    """x [B, C, H, W] in that order. One channel lies in either order: only the strides tell torch which is meant."""
    if x.shape[1] > 1:
        return x.contiguous(memory_format=torch.channels_last)
    height, width = x.shape[2:]
    return x.as_strided(x.shape, (height * width, 1, width, 1))


@lru_cache
def lean(architecture: Architecture) -> Architecture:
    """The same function with less work: of ReLU and max pooling the pool first, which leaves a quarter of the values.

    Both orders give the same bits, forward and backward.
    """
    layers = list(architecture.layers)
    for i in range(len(layers) - 1):
        if isinstance(layers[i], Relu) and isinstance(layers[i + 1], Pool):
            layers[i : i + 2] = layers[i + 1], layers[i]
    return replace(architecture, layers=tuple(layers))


def slot_step(task: Task, phase: Phase, w: Tensor, mask: Tensor, layout: Layout, where: Tensor | None = None) -> Step:
    """A step that differentiates only by the slots in which something is trained.

    The leaves are views into w, so the update is written into the flat model directly. Slots that are frozen are no
    variables of autograd: where only the classifier trains, nothing is kept of the convolutions and no backward pass
    goes through them. ``where`` tells which coordinates of the whole model the w of a submodel are.
    """
    lr = phase.lr[where] if isinstance(phase.lr, Tensor) and where is not None else phase.lr
    masks = layout.split(mask)
    leaves = [view.detach().requires_grad_(bool(m.any())) for view, m in zip(layout.split(w), masks, strict=True)]
    rates = [slot_rate(lr, slot.slice, slot.shape) for slot in layout.slots]
    trained = [
        (leaf, None if bool(m.all()) else m.to(w.dtype), rate)
        for leaf, m, rate in zip(leaves, masks, rates, strict=True)
        if leaf.requires_grad
    ]
    variables = [leaf for leaf, _, _ in trained]
    move = descent(phase.optimiser, trained)
    criterion, forward = phase.criterion or cross_entropy, lean(task.architecture).forward
    scale = None if phase.scale is None else phase.scale if where is None else phase.scale[where]
    factors = None if scale is None else [slot_rate(scale, slot.slice, slot.shape) for slot in layout.slots]

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        tensors = leaves if factors is None else [w * f for w, f in zip(leaves, factors, strict=True)]
        logits = forward(tensors, x)
        loss = criterion(logits, y)
        move(torch.autograd.grad(loss, variables))
        return loss.detach(), hits_of(logits, y)

    return step


def flat_step(
    task: Task, phase: Phase, w: Tensor, mask: Tensor, submodel: Tensor | None, draws: np.random.Generator | None
) -> Step:
    """A step that differentiates by the flat model, for phases that have hooks of their own."""
    leaf = w.detach().requires_grad_(True)
    move = descent(
        phase.optimiser,
        [(leaf, None if bool(mask.all()) else mask.to(w.dtype), slot_rate(phase.lr, slice(None), w.shape))],
    )
    if phase.project is not None:
        phase.project(w, None)
    shapes, sizes = [slot.shape for slot in task.layout.slots], [slot.size for slot in task.layout.slots]
    sizes.append(len(w) - sum(sizes))  # coordinates that are no weights of the architecture
    forward = lean(task.architecture).forward

    def model(x: Tensor) -> Tensor:
        weights = leaf if phase.effective is None else phase.effective(leaf, draws)
        weights = weights if submodel is None else weights * submodel[: len(weights)]
        weights = weights if phase.scale is None else weights * phase.scale[: len(weights)]
        pieces = weights.split(sizes if len(weights) == len(w) else sizes[:-1])
        return forward([p.view(s) for p, s in zip(pieces, shapes, strict=False)], x)

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if phase.loss is not None:
            loss, hits = phase.loss(leaf, x, y), torch.tensor(torch.nan, device=w.device)
        else:
            logits = model(x)
            loss, hits = (phase.criterion or cross_entropy)(logits, y), hits_of(logits, y)
        if phase.penalty is not None:
            loss = loss + phase.penalty(leaf)
        move(torch.autograd.grad(loss, [leaf]))
        if phase.project is not None:
            phase.project(w, move.velocity(0))
        return loss.detach(), hits

    return step


@torch.no_grad()
def hits_of(logits: Tensor, y: Tensor) -> Tensor:
    """How many of the batch are right."""
    return (logits.argmax(dim=1) == y).sum()


def slot_rate(lr: float | Tensor, where: slice, shape: tuple[int, ...]) -> float | Tensor:
    """The learning rate (or scale) of one slot: a number wherever it is the same for the whole slot."""
    if not isinstance(lr, Tensor):
        return lr
    part = lr[where]
    return float(part[0]) if bool((part == part[0]).all()) else part.reshape(shape)
