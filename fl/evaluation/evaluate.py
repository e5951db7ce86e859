"""Loss and accuracy of every device's personalised model on that device's own test data (liu.md, open choice 13).

A model with batch norm first sees the training data of the devices that use it, which freezes its statistics; a method
may name further models, its probes, which are tested on the whole test set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fl.contracts import Scores
from fl.evaluation.evaluation_batches import (
    BATCH,
    Look,
    batches,
    computed,
    on_device,
    sums,
    units_of,
)
from fl.executors.crew import Crew
from fl.executors.fallbacks import IN_EVALUATION, Notes
from fl.executors.processes import one_thread
from fl.executors.stacked import is_dense
from fl.models.batch_norm import Collected, Frozen
from fl.task import LearningTask

if TYPE_CHECKING:
    from fl.method_base.method import Method

Array = np.ndarray
MEMORY = 64 << 20  # bytes of the models and signals of a stack: what a step of training takes too
HELD = 512 << 20  # bytes of the models that processes share at a time


def evaluate(task: LearningTask, method: Method, state: Any, executor: Any = None) -> Scores:
    """Scores [K] of the models that ``method`` personalises from ``state``; nan for a device without test data.

    The loss of a model that diverged to numbers that are none is inf.

    Neighbouring devices that use one and the same tensor are evaluated in one pass, with the same numbers; perceptrons
    of different devices in stacks.

    Args:
        executor: that of the training: as many processes divide the evaluation, which moves no bit, and what goes
            wrong is said in its notes. None: this process alone.
    """
    workers, notes = getattr(executor, "workers", 1), executor.notes if executor else Notes()
    crew = Crew(task, workers, notes, IN_EVALUATION, "evaluated")
    probes = method.probes(state)
    probing = [probe(task, w) for w in probes.values()]
    with one_thread():
        own = stacks(task, looks(task, method, state))
        found = list(answered(task, chain(own, ([one] for one in probing)), crew))
    personal, probed = found[: len(found) - len(probes)], found[len(found) - len(probes) :]
    loss, accuracy = np.concatenate(
        [by_device(task, values, devices) for devices, values in personal], axis=1
    )
    shares = {
        f"accuracy {name}": float(hits.mean())
        for name, (_, (_, hits)) in zip(probes, probed, strict=True)
    }
    return Scores(loss, accuracy, shares | method.measures(state))


def accuracy_of(task: LearningTask, w: Tensor) -> float:
    """Accuracy of one model w [P] on the whole test set."""
    ((_, (_, hits)),) = answered(task, [[probe(task, w)]], Crew(task, 1, Notes()))
    return float(hits.mean())


def by_device(task: LearningTask, values: Array, devices: Sequence[int]) -> Array:
    """Means [2, devices] of the values [2, N] of some devices' samples; nan of a device without any."""
    ends = np.cumsum([len(task.data.test_index[k]) for k in devices])[:-1]
    return np.array(
        [[part.mean() if len(part) else np.nan for part in np.split(row, ends)] for row in values]
    )


# --- what is looked at -----------------------------------------------------------------------------------------------


def looks(task: LearningTask, method: Method, state: Any) -> Iterator[Look]:
    """Each model w [P] on the test samples of the consecutive devices that use it."""
    current, devices = method.personalise(state, 0), [0]
    for k in range(1, task.devices):
        w = method.personalise(state, k)
        if w is not current:
            yield Look(current, held_by(task.data.test_index, devices), devices)
            current, devices = w, []
        devices.append(k)
    yield Look(current, held_by(task.data.test_index, devices), devices)


def probe(task: LearningTask, w: Tensor) -> Look:
    """A model w [P] on the whole test set."""
    return Look(w, np.arange(len(task.data.y_test)), range(task.devices))


def held_by(index: Sequence[Array], devices: Sequence[int]) -> Array:
    """The samples of some devices, one device after the other [N]."""
    return np.concatenate([index[k] for k in devices])


def stacks(task: LearningTask, each: Iterable[Look]) -> Iterator[list[Look]]:
    """Models that are evaluated together: perceptrons as far as ``MEMORY`` reaches, others one at a time."""
    dense, held, most = is_dense(task.architecture), [], 0
    for look in each:
        longest = max(most, len(look.samples))
        if held and not (dense and (len(held) + 1) * stack_bytes(task, longest) <= MEMORY):
            yield held
            held, longest = [], len(look.samples)
        held, most = [*held, look], longest
    yield held


def stack_bytes(task: LearningTask, samples: int) -> int:
    """Of one model in a stack: its weights twice, and for each sample what goes into every layer, and the logits."""
    signals = (
        sum(prod(shape) for shape in task.architecture.input_shapes) + 4 * task.architecture.classes
    )
    return 4 * (2 * task.layout.size + samples * signals)


def windows(each: Iterable[list[Look]], crew: Crew) -> Iterator[list[list[Look]]]:
    """The stacks whose models are there at a time: one, or, where processes share them, as many as ``HELD`` allows."""
    held, size = [], 0
    for stack in each:
        held.append(stack)
        size += sum(look.w.nbytes for look in stack)
        if crew.workers < 2 or size >= HELD:
            yield held
            held, size = [], 0
    if held:
        yield held


# --- what they answer -------------------------------------------------------------------------------------------------


def answered(
    task: LearningTask, each: Iterable[list[Look]], crew: Crew
) -> Iterator[tuple[Sequence[int], Array]]:
    """Of every look its devices, and loss and hit (0 or 1) of its samples [2, N]."""
    for window in windows(each, crew):
        norms = iter(statistics(task, [look for stack in window for look in stack], crew))
        units = [units_of(task, stack, [next(norms) for _ in stack]) for stack in window]
        for stack, parts in zip(window, computed(task, units, crew), strict=True):
            values = (
                torch.cat([part for (part,) in parts], dim=2) if parts else torch.empty(1, 2, 0)
            )
            for look, own in zip(stack, values.cpu().numpy(), strict=True):
                yield look.devices, own[:, : len(look.samples)]


def statistics(task: LearningTask, each: Sequence[Look], crew: Crew) -> list[Frozen | None]:
    """The statistics of batch norm that each model has on the training data of its devices; None where it has no norm.

    A batch takes every n-th sample, so that it holds some of every device, and none is a single sample.
    """
    if not task.architecture.normalises:
        return [None] * len(each)
    held = [training_batches(task, look) for look in each]
    units = [
        batches(task, partial(sums, task, look.w), some)
        for look, some in zip(each, held, strict=True)
    ]
    return [
        averages(some, found) for some, found in zip(held, computed(task, units, crew), strict=True)
    ]


def training_batches(task: LearningTask, look: Look) -> list[Tensor]:
    index = on_device(held_by(task.data.train_index, look.devices), look.w)
    count = -(-len(index) // BATCH)
    return [index[first::count] for first in range(count)]


def averages(some: Sequence[Tensor], found: Sequence[Sequence[Tensor]]) -> Frozen | None:
    """What the norm layers saw of some batches, in their order; None where there are none."""
    norms = Collected()
    for batch, seen in zip(some, found, strict=True):
        norms.add(seen, len(batch))
    return norms.frozen() if len(some) else None
