"""Loss and accuracy of every device's personalised model on that device's own test data.

A model with batch norm first sees the training data of the devices that use it, which freezes its
statistics; a method may name further models, its probes, which are tested on the whole test set.
Samples that devices hold out for validation are scored in the same way, as measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from fl.contracts import METRIC, VALIDATION_MEASURES, Array, Scores, State
from fl.evaluation.threaded_scoring import (
    ScoredModel,
    batch_norm_statistics,
    sample_scores,
)
from fl.method_base.hook_answers import measures_of
from fl.stacked_training.stackable_models import is_perceptron
from fl.task import LearningTask
from fl.worker_threads import one_torch_thread

if TYPE_CHECKING:
    from fl.method_base.method import Method

STACK_BYTES = 64 << 20  # of the models and signals of a stack
HELD_BYTES = 512 << 20  # of the models that threads share at a time


def evaluate(task: LearningTask, method: Method, state: State, threads: int = 1) -> Scores:
    """Scores [K] of the models that ``method`` personalises from ``state``.

    Devices that use one model are evaluated in one pass, perceptrons of different devices in
    stacks. Statistics of batch norm are taken on the training data of all devices whose models are
    equal.

    Args:
        threads: among which evaluation is divided, which moves no bit.

    Returns:
        Loss and accuracy, nan for a device without test data. The loss of a model that diverged to
        numbers that are none is inf. With validation data the measures validation_loss and
        validation_accuracy are means over the devices that have any.
    """
    probes = method.probes(state)
    probed = ([on_whole_test_set(task, w)] for w in probes.values())
    with one_torch_thread():
        loss, accuracy, *metric = personal_scores(task, method, state, threads)
        what, row = ("accuracy", 1) if task.objective.labels else ("loss", 0)
        shares = {
            f"{what} {name}": float(np.average(values[row], weights=task.data.test_weights))
            for name, (_, values) in zip(probes, scored(task, probed, threads), strict=True)
        }
        measures = shares | measures_of(method.measures(state))
        if task.validation is not None:
            held_out = personal_scores(task.validation, method, state, threads)[: row + 1]
            means = np.nanmean(held_out, axis=1).tolist()
            measures |= dict(zip(VALIDATION_MEASURES, means, strict=False))
        for values in metric:
            tested = values[~np.isnan(loss)]
            mean = float(tested.mean()) if tested.size else np.nan
            measures[f"{METRIC}{task.objective.metric_name}"] = mean
    return Scores(loss, accuracy, measures)


def personal_scores(task: LearningTask, method: Method, state: State, threads: int) -> Array:
    """Loss, accuracy and metric of every device's model on its test samples [2 or 3, K]."""
    models = stacks(task, personal_models(task, method, state))
    scores = np.empty((task.objective.rows, task.devices))
    for model, values in scored(task, models, threads):
        scores[:, model.devices] = by_device(task, values, model.devices)
    return scores


def by_device(task: LearningTask, values: Array, devices: Sequence[int]) -> Array:
    """Means [.., devices] of the values [.., N] of some devices' samples; nan of one without."""
    ends = np.cumsum([len(task.data.test_index[k]) for k in devices])[:-1]
    weights: list[Array | None] = [None] * len(devices)
    if task.data.test_weights is not None:
        weights = [task.data.test_weights[task.data.test_index[k]] for k in devices]
    return np.array(
        [
            [
                np.average(part, weights=weight) if len(part) else np.nan
                for part, weight in zip(np.split(row, ends), weights, strict=True)
            ]
            for row in values
        ]
    )


def personal_models(task: LearningTask, method: Method, state: State) -> Iterator[ScoredModel]:
    """Each model w [P] with the test samples of the devices that use it."""
    grouped = equal_models if task.architecture.normalises else shared_tensors
    for w, devices in grouped(method, state, task.devices):
        yield ScoredModel(w, of_devices(task.data.test_index, devices), devices)


def shared_tensors(method: Method, state: State, count: int) -> Iterator[tuple[Tensor, list[int]]]:
    """The models w [P] of ``count`` devices, of neighbours with one and the same tensor once."""
    w, devices = method.personalise(state, 0), [0]
    for k in range(1, count):
        following = method.personalise(state, k)
        if following is not w:
            yield w, devices
            w, devices = following, []
        devices.append(k)
    yield w, devices


def equal_models(method: Method, state: State, count: int) -> Iterator[tuple[Tensor, list[int]]]:
    """The models w [P] of ``count`` devices, each with all devices whose weights are equal to it.

    Models are personalised twice, so that no more than one has to be held.
    """
    users: dict[bytes, list[int]] = {}
    for k in range(count):
        w = method.personalise(state, k).detach().cpu().contiguous()
        users.setdefault(blake2b(w.numpy().tobytes()).digest(), []).append(k)
    for devices in users.values():
        yield method.personalise(state, devices[0]), devices


def on_whole_test_set(task: LearningTask, w: Tensor) -> ScoredModel:
    return ScoredModel(w, np.arange(len(task.data.y_test)), range(task.devices))


def of_devices(index: Sequence[Array], devices: Sequence[int]) -> Array:
    """The samples of some devices, one device after the other [N]."""
    return np.concatenate([index[k] for k in devices])


def stacks(task: LearningTask, models: Iterable[ScoredModel]) -> Iterator[list[ScoredModel]]:
    """Models that are evaluated together: perceptrons up to ``STACK_BYTES``, others one by one."""
    stack: list[ScoredModel] = []
    objective, most = task.objective, 0
    perceptron = is_perceptron(task.architecture) and objective.plain and objective.metric is None
    for model in models:
        longest = max(most, len(model.samples))
        fits = (len(stack) + 1) * stack_bytes(task, longest) <= STACK_BYTES
        if stack and not (perceptron and fits):
            yield stack
            stack, longest = [], len(model.samples)
        stack, most = [*stack, model], longest
    yield stack


def stack_bytes(task: LearningTask, samples: int) -> int:
    """Of one model in a stack: its weights twice, and the signals of each sample."""
    architecture = task.architecture
    signals = sum(prod(shape) for shape in architecture.input_shapes) + 4 * architecture.classes
    return 4 * (2 * task.layout.size + samples * signals)


def scored(
    task: LearningTask, each: Iterable[list[ScoredModel]], threads: int = 1
) -> Iterator[tuple[ScoredModel, Array]]:
    """Every model of the stacks, with loss, hit and metric of its samples [2 or 3, N]."""
    for window in windows(each, threads):
        statistics = iter(
            batch_norm_statistics(task, [model for stack in window for model in stack], threads)
        )
        paired = [[(model, next(statistics)) for model in stack] for stack in window]
        yield from sample_scores(task, paired, threads)


def windows(each: Iterable[list[ScoredModel]], threads: int) -> Iterator[list[list[ScoredModel]]]:
    """The stacks that are held at a time: one, or as far as ``HELD_BYTES`` for several threads."""
    held, size = [], 0
    for stack in each:
        held.append(stack)
        size += sum(model.w.nbytes for model in stack)
        if threads < 2 or size >= HELD_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held
