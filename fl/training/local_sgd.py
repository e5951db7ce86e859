"""Local training of one device: masked steps on its flat model, phase by phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fl.contracts import Array, Job, Phase, Trained
from fl.method_base.hook_answers import values_of
from fl.models.architectures import Architecture
from fl.models.dense_submodel import dense_submodel
from fl.models.memory_format import fastest_memory_format
from fl.task import LearningTask
from fl.training.phase_hooks import with_named_failures
from fl.training.training_step import flat_step, tensor_step
from fl.worker_threads import raise_if_stopped

Effective = Callable[[Tensor], Tensor]
Batches = Tensor | Sequence[Tensor]  # sample indices of each step


@dataclass(frozen=True)
class PhaseStatistics:
    """Means over the steps of a phase, and the sum of what it collected."""

    loss: float = float("nan")
    accuracy: float = float("nan")
    collected: Tensor | None = None


def run(task: LearningTask, job: Job) -> Trained:
    """Trains the phases of a job in order. The result does not depend on who trains beside it."""
    done: list[Tensor] = []
    model = task.architecture.in_training(dropout_seeds(task, job))
    mask, statistics = None, PhaseStatistics()
    for phase in map(with_named_failures, job.phases):
        start, mask, submodel = values_of(phase, done)
        w = start.clone()
        effective = effective_weights(task, phase, job)
        index = batches(task, phase, job)
        if isinstance(submodel, tuple):  # one per step: ordered dropout
            each = [
                train(task, model, phase, w, mask & one, one, [chosen], effective)
                for one, chosen in zip(submodel, index, strict=True)
            ]
            loss, accuracy = sum(s.loss for s in each), sum(s.accuracy for s in each)
            statistics = PhaseStatistics(loss / len(each), accuracy / len(each))
        else:
            mask = mask if submodel is None else mask & submodel
            statistics = train(task, model, phase, w, mask, submodel, index, effective)
        done.append(w)
    w = job.finish(done) if job.finish else done[-1]
    return Trained(w, mask, statistics.loss, statistics.accuracy, statistics.collected)


def dropout_seeds(task: LearningTask, job: Job) -> Iterator[int]:
    """Seeds of what a model draws itself, one for each pass of a job: the stream dropout."""
    rng = job.stream(task.streams, "dropout")
    while True:
        yield int(rng.integers(2**63))


def effective_weights(task: LearningTask, phase: Phase, job: Job) -> Effective | None:
    """`Phase.effective` with its random stream, from which every step draws on."""
    effective = phase.effective
    if effective is None:
        return None
    rng = job.stream(task.streams, f"draws/{phase.batches}")
    return lambda w: effective(w, rng)


def batches(task: LearningTask, phase: Phase, job: Job) -> Batches:
    """Sample indices of each step of a phase: [steps, B], or of a ragged phase a list of [B]."""
    drawn, sizes = samples(task, phase, job)
    if sizes is not None:
        return torch.from_numpy(drawn).split(sizes)
    return torch.from_numpy(drawn.reshape(phase.steps, task.batch(job.device)))


def samples(task: LearningTask, phase: Phase, job: Job) -> tuple[Array, list[int] | None]:
    """Sample indices of all steps of a phase, one after the other.

    They are consecutive pieces of random orders of the device's own samples, from the stream
    (batches/<name>, device, round): no sample comes back before all others were used. A ragged
    phase cuts each order by itself, so that its last piece is smaller.

    Returns:
        The indices, and how many each step has; None: a full batch each.
    """
    if phase.hold > 1:
        count = -(-phase.steps // phase.hold)
        drawn, sizes = samples(task, replace(phase, steps=count, hold=1), job)
        ends = np.cumsum([task.batch(job.device)] * count if sizes is None else sizes)
        each = np.split(drawn, ends[:-1])
        held = [each[step // phase.hold] for step in range(phase.steps)]
        return np.concatenate(held), None if sizes is None else [len(one) for one in held]
    mine = task.data.train_index[job.device]
    batch = min(task.batch_size, len(mine))
    rng = job.stream(task.streams, f"batches/{phase.batches}")
    sizes, first, end = None, phase.first * batch, (phase.first + phase.steps) * batch
    if phase.ragged:
        once = [min(batch, len(mine) - start) for start in range(0, len(mine), batch)]
        every = [once[i % len(once)] for i in range(phase.first + phase.steps)]
        sizes = every[phase.first :]
        first, end = sum(every) - sum(sizes), sum(every)
    if end <= len(mine):
        order = mine.copy()
        rng.shuffle(order)  # the numbers of permutation(mine), in less time
        return order[first:end], sizes
    orders = [rng.permutation(mine) for _ in range(-(-end // len(mine)))]
    return np.concatenate(orders)[first:end], sizes


def train(
    task: LearningTask,
    model: Architecture,
    phase: Phase,
    w: Tensor,
    mask: Tensor,
    submodel: Tensor | None,
    index: Batches,
    effective: Effective | None,
) -> PhaseStatistics:
    """Takes the steps of a phase on w, in place.

    Args:
        task: the data.
        model: as it computes in training.
        phase: how a step is taken.
        w: weights [P].
        mask: coordinates that are trained, bool [P].
        submodel: coordinates that compute, bool [P]; None: all.
        index: sample indices of each step.
        effective: w [P] -> weights that compute; None: w itself.
    """
    if len(index) == 0 or not bool(mask.any()):
        return PhaseStatistics()
    if phase.criterion is None and not task.objective.plain:
        phase = replace(phase, criterion=task.objective.mean)
    if submodel is not None and bool(submodel.all()):
        submodel = None
    by_tensors, layout, where = is_plain(phase), task.layout, None
    if by_tensors and submodel is not None:
        smaller = dense_submodel(layout, submodel) if model.in_layers else None
        if smaller is None:
            by_tensors = False
        else:
            layout, where = smaller.layout, smaller.index
    images, labels = task.train
    model, arrange = fastest_memory_format(model, layout, images, len(index[0]), phase.loss is None)

    def part_of(values: Any) -> Any:
        return values if where is None or not isinstance(values, Tensor) else values[where]

    part = part_of(w)
    if by_tensors:
        alike = replace(phase, lr=part_of(phase.lr), scale=part_of(phase.scale))
        step = tensor_step(model, alike, part, part_of(mask), layout)
    else:
        step = flat_step(model, phase, w, mask, submodel, effective)
    loss, hits = torch.zeros((), device=w.device), torch.zeros((), device=w.device)
    collected = None
    for chosen in index:
        raise_if_stopped()
        if phase.collect is not None:
            seen = phase.collect(w)
            collected = seen if collected is None else collected + seen
        chosen = chosen.to(w.device)
        step_loss, step_hits = step(
            arrange(images.index_select(0, chosen)), labels.index_select(0, chosen)
        )
        loss += step_loss
        hits += step_hits / len(chosen)
    if where is not None:
        w[where] = part
    return PhaseStatistics(float(loss) / len(index), float(hits) / len(index), collected)


def is_plain(phase: Phase) -> bool:
    """Does no function of the method look at the flat model while it trains?"""
    asked = phase.loss or phase.effective or phase.penalty or phase.project or phase.collect
    return asked is None
