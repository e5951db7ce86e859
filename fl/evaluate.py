"""Loss and accuracy of every device's personalised model on that device's own test data (liu.md, open choice 13).

A model with batch norm first sees the training data of the devices that use it, which freezes its statistics; a method
may name further models, its probes, which are tested on the whole test set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from edgesim.contracts import Scores
from fl.executors.stacked import Dense, is_dense, log_loss
from fl.lean import quickest
from fl.norms import Collected, Frozen
from fl.task import Task

if TYPE_CHECKING:
    from fl.method import Method

BATCH = 125  # samples at a time: bounds the memory of activations, and keeps them in the cache
MEMORY = 64 << 20  # bytes of the models and signals of a stack: what a step of training takes too
Model = tuple[Tensor, list[int]]  # w [P], and the consecutive devices that use it


def evaluate(task: Task, method: Method, state: Any) -> Scores:
    """Scores [K] of the models that ``method`` personalises from ``state``; nan for a device without test data.

    The loss of a model that diverged to numbers that are none is inf.

    Neighbouring devices that use one and the same tensor are evaluated in one pass, with the same numbers; perceptrons
    of different devices in stacks.
    """
    parts = [part for stack in stacks(task, models(task, method, state)) for part in score(task, stack)]
    loss, accuracy = (np.concatenate(column) for column in zip(*parts, strict=True))
    probed = {f"accuracy {name}": accuracy_of(task, w) for name, w in method.probes(state).items()}
    return Scores(loss, accuracy, probed | method.measures(state))


def models(task: Task, method: Method, state: Any) -> Iterator[Model]:
    """Each model w [P] with the consecutive devices that use it."""
    current, devices = method.personalise(state, 0), [0]
    for k in range(1, task.devices):
        w = method.personalise(state, k)
        if w is not current:
            yield current, devices
            current, devices = w, []
        devices.append(k)
    yield current, devices


def stacks(task: Task, each: Iterable[Model]) -> Iterator[list[Model]]:
    """Models that are evaluated together: perceptrons as far as ``MEMORY`` reaches, others one at a time."""
    dense, held, most = is_dense(task.architecture), [], 0
    for model in each:
        longest = max(most, samples_of(task, model[1]))
        if held and not (dense and (len(held) + 1) * stack_bytes(task, longest) <= MEMORY):
            yield held
            held, longest = [], samples_of(task, model[1])
        held, most = [*held, model], longest
    yield held


def samples_of(task: Task, devices: Sequence[int]) -> int:
    return sum(len(task.data.test_index[k]) for k in devices)


def stack_bytes(task: Task, samples: int) -> int:
    """Of one model in a stack: its weights twice, and for each sample what goes into every layer, and the logits."""
    signals = sum(prod(shape) for shape in task.architecture.input_shapes) + 4 * task.architecture.classes
    return 4 * (2 * task.layout.size + samples * signals)


Pair = tuple[np.ndarray, np.ndarray]  # mean loss and accuracy of some devices


def score(task: Task, stack: Sequence[Model]) -> list[Pair]:
    """Of each model the mean loss and accuracy on the test data of each of its devices."""
    if len(stack) > 1:
        values = each_stacked(task, stack)
    else:
        ((w, devices),) = stack
        values = [each_sample(task, w, held_by(task, devices), statistics(task, w, devices))]
    return [
        tuple(by_device(task, one, devices) for one in pair) for pair, (_, devices) in zip(values, stack, strict=True)
    ]


def held_by(task: Task, devices: Sequence[int]) -> np.ndarray:
    """The test samples of some devices, one device after the other [N]."""
    return np.concatenate([task.data.test_index[k] for k in devices])


@torch.inference_mode()
def each_stacked(task: Task, stack: Sequence[Model]) -> list[Pair]:
    """Of each model loss and hit of every test sample of its devices, all models at once; samples are filled up."""
    images, labels = task.test
    chosen = [held_by(task, devices) for _, devices in stack]
    index = np.zeros((len(stack), max(map(len, chosen))), dtype=np.int64)
    for row, own in zip(index, chosen, strict=True):
        row[: len(own)] = own
    every = torch.from_numpy(index).to(images.device)
    flat = torch.stack([w[: task.layout.size] for w, _ in stack])
    leaves = [flat[:, slot.slice].reshape(len(stack), *slot.shape) for slot in task.layout.slots]
    logits = Dense(task.architecture, [True] * len(leaves)).logits(leaves, images[every])
    losses, hits, _ = log_loss(logits, labels[every], torch.ones_like(logits[..., 0]))
    losses, hits = losses.double().nan_to_num(nan=torch.inf).cpu().numpy(), hits.double().cpu().numpy()
    return [(losses[i, : len(own)], hits[i, : len(own)]) for i, own in enumerate(chosen)]


def accuracy_of(task: Task, w: Tensor) -> float:
    """Accuracy of one model w [P] on the whole test set."""
    everything = np.arange(len(task.data.y_test))
    return float(each_sample(task, w, everything, statistics(task, w, range(task.devices)))[1].mean())


@torch.inference_mode()
def statistics(task: Task, w: Tensor, devices: Sequence[int]) -> Frozen | None:
    """The statistics of batch norm that w [P] has on the training data of ``devices``; None where it has no norm.

    A batch takes every n-th sample, so that it holds some of every device, and none is a single sample.
    """
    index = np.concatenate([task.data.train_index[k] for k in devices])
    if not task.architecture.normalises or len(index) == 0:
        return None
    norms = Collected()
    count = -(-len(index) // BATCH)
    for first in range(count):
        chosen = torch.from_numpy(index[first::count]).to(w.device)
        task.architecture.logits(w, task.train[0][chosen], norms)
    return norms.frozen()


def by_device(task: Task, values: np.ndarray, devices: Sequence[int]) -> np.ndarray:
    """Means of the values [N] of some devices' samples; nan of a device without any."""
    ends = np.cumsum([len(task.data.test_index[k]) for k in devices])[:-1]
    return np.array([part.mean() if len(part) else np.nan for part in np.split(values, ends)])


@torch.inference_mode()
def each_sample(task: Task, w: Tensor, index: np.ndarray, norms: Frozen | None) -> tuple[np.ndarray, np.ndarray]:
    """Loss and hit (0 or 1) of every test sample in ``index`` [N]; with the statistics ``norms`` where it has some."""
    images, labels = task.test
    model, order = quickest(task.architecture, task.layout, images, BATCH)
    losses, hits = [], []
    for chosen in torch.from_numpy(index).to(w.device).split(BATCH):
        logits, y = model.logits(w, order(images[chosen]), norms), labels[chosen]
        losses.append(cross_entropy(logits, y, reduction="none").double().nan_to_num(nan=torch.inf))
        hits.append((logits.argmax(dim=1) == y).double())
    if not losses:
        return np.empty(0), np.empty(0)
    return torch.cat(losses).cpu().numpy(), torch.cat(hits).cpu().numpy()
