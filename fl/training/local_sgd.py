"""The one training loop: masked steps on the flat model of one device, phase by phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fl.contracts import Job, Phase, Trained
from fl.models.dense_submodel import cut
from fl.models.memory_format import Order, quickest
from fl.task import LearningTask
from fl.training.training_step import Step, flat_step, slot_step

Array = np.ndarray


@dataclass(frozen=True)
class Fit:
    """What a phase showed while it trained: means over its steps, and the sum of what it collected."""

    loss: float = float("nan")
    accuracy: float = float("nan")
    collected: Tensor | None = None


def run(task: LearningTask, job: Job) -> Trained:
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
    return Trained(
        job.finish(done) if job.finish else done[-1], mask, fit.loss, fit.accuracy, fit.collected
    )


def train_each(
    task: LearningTask,
    phase: Phase,
    w: Tensor,
    mask: Tensor,
    submodels: tuple[Tensor, ...],
    index,
    draws,
) -> Fit:
    """Every step with a submodel of its own: ordered dropout. The optimiser starts anew in every step."""
    steps = zip(submodels, index, strict=True)
    fits = [train(task, phase, w, mask & one, one, chosen[None], draws) for one, chosen in steps]
    return Fit(
        sum(fit.loss for fit in fits) / len(fits), sum(fit.accuracy for fit in fits) / len(fits)
    )


def value_of(tensor: Any, done: list[Tensor]) -> Any:
    """A start, mask or submodel of a phase, given the results of the phases before."""
    return tensor(done) if callable(tensor) else tensor


def draws_of(task: LearningTask, phase: Phase, job: Job) -> np.random.Generator | None:
    """What the weights that compute are drawn from, step by step; None where nothing is drawn."""
    if phase.effective is None:
        return None
    return task.streams.stream(f"draws/{phase.batches}", device=job.device, round=job.g)


def batches(task: LearningTask, phase: Phase, job: Job) -> Sequence[Tensor]:
    """Sample indices of each step of a phase: [steps, B], or where the phase is ragged a list of them."""
    drawn, sizes = samples(task, phase, job)
    if sizes is not None:
        return torch.from_numpy(drawn).split(sizes)
    return torch.from_numpy(drawn.reshape(phase.steps, task.batch(job.device)))


def samples(task: LearningTask, phase: Phase, job: Job) -> tuple[Array, list[int] | None]:
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
    if end <= len(mine):
        order = mine.copy()
        rng.shuffle(order)  # what permutation(mine) gives
        return order[first:end], sizes
    orders = [rng.permutation(mine) for _ in range(-(-end // len(mine)))]
    return np.concatenate(orders)[first:end], sizes


def train(
    task: LearningTask,
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
    smaller = cut(task.layout, submodel) if submodel is not None and is_plain(phase) else None
    layout = task.layout if smaller is None else smaller.layout
    model, order = quickest(
        task.architecture, layout, task.train[0], len(index[0]), phase.loss is None
    )
    if not is_plain(phase) or (submodel is not None and smaller is None):
        return follow(
            task, phase, flat_step(model, phase, w, mask, submodel, draws), index, w, order
        )
    if smaller is None:
        return follow(task, phase, slot_step(model, phase, w, mask, layout), index, w, order)
    where = smaller.index
    part = w[where]
    fit = follow(
        task, phase, slot_step(model, phase, part, mask[where], layout, where), index, part, order
    )
    w[where] = part
    return fit


def is_plain(phase: Phase) -> bool:
    """Nothing looks at the flat model while it trains."""
    asked = phase.loss or phase.effective or phase.penalty or phase.project or phase.collect
    return asked is None


def follow(
    task: LearningTask, phase: Phase, step: Step, index: Sequence[Tensor], w: Tensor, order: Order
) -> Fit:
    """One step per batch, and what they showed. order: how its pictures should lie in memory."""
    images, labels = task.train
    loss, hits = torch.zeros((), device=w.device), torch.zeros((), device=w.device)
    collected = None
    for chosen in index:
        if phase.collect is not None:
            seen = phase.collect(w)
            collected = seen if collected is None else collected + seen
        chosen = chosen.to(w.device)
        one_loss, one_hits = step(
            order(images.index_select(0, chosen)), labels.index_select(0, chosen)
        )
        loss += one_loss
        hits += one_hits / len(chosen)
    return Fit(float(loss) / len(index), float(hits) / len(index), collected)
