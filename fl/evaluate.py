"""Loss and accuracy of every device's personalised model on that device's own test data (liu.md, open choice 13).

A model with batch norm first sees the training data of the devices that use it, which freezes its statistics; a method
may name further models, its probes, which are tested on the whole test set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from edgesim.contracts import Scores
from fl.norms import Collected, Frozen
from fl.task import Task

if TYPE_CHECKING:
    from fl.method import Method

BATCH = 125  # samples at a time: bounds the memory of activations, and keeps them in the cache


def evaluate(task: Task, method: Method, state: Any) -> Scores:
    """Scores [K] of the models that ``method`` personalises from ``state``; nan for a device without test data.

    The loss of a model that diverged to numbers that are none is inf.

    Neighbouring devices that use one and the same tensor are evaluated in one pass, with the same numbers.
    """
    parts = [score(task, w, devices) for w, devices in models(task, method, state)]
    loss, accuracy = (np.concatenate(column) for column in zip(*parts, strict=True))
    probed = {f"accuracy {name}": accuracy_of(task, w) for name, w in method.probes(state).items()}
    return Scores(loss, accuracy, probed | method.measures(state))


def models(task: Task, method: Method, state: Any) -> Iterator[tuple[Tensor, list[int]]]:
    """Each model w [P] with the consecutive devices that use it; one model at a time is held."""
    current, devices = method.personalise(state, 0), [0]
    for k in range(1, task.devices):
        w = method.personalise(state, k)
        if w is not current:
            yield current, devices
            current, devices = w, []
        devices.append(k)
    yield current, devices


def score(task: Task, w: Tensor, devices: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Mean loss and accuracy of one model w [P] on the test data of each of ``devices``."""
    indices = [task.data.test_index[k] for k in devices]
    losses, hits = each_sample(task, w, np.concatenate(indices), statistics(task, w, devices))
    ends = np.cumsum([len(index) for index in indices])[:-1]
    return by_device(losses, ends), by_device(hits, ends)


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


def by_device(values: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Means of consecutive pieces of ``values``; nan of an empty piece."""
    return np.array([part.mean() if len(part) else np.nan for part in np.split(values, ends)])


@torch.inference_mode()
def each_sample(task: Task, w: Tensor, index: np.ndarray, norms: Frozen | None) -> tuple[np.ndarray, np.ndarray]:
    """Loss and hit (0 or 1) of every test sample in ``index`` [N]; with the statistics ``norms`` where it has some."""
    images, labels = task.test
    losses, hits = [], []
    for chosen in torch.from_numpy(index).to(w.device).split(BATCH):
        logits, y = task.architecture.logits(w, images[chosen], norms), labels[chosen]
        losses.append(cross_entropy(logits, y, reduction="none").double().nan_to_num(nan=torch.inf))
        hits.append((logits.argmax(dim=1) == y).double())
    if not losses:
        return np.empty(0), np.empty(0)
    return torch.cat(losses).cpu().numpy(), torch.cat(hits).cpu().numpy()
