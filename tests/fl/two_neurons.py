"""Two neurons with thresholds, on which the equations of SpaFL are worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from edgesim.seeds import Seeds
from fl.accounting import Accounting
from fl.contracts import Job, Trained
from fl.data.samples import Federated
from fl.executors.deferred_training import Trainer
from fl.masks.thresholds import ThresholdRows, carriers
from fl.models.architectures import Architecture
from fl.task import LearningTask
from fl.training import local_sgd as local
from tests.fl.conftest import Bench, view_of

ROWS = [[0.5, -0.1, 0.3], [0.05, -0.05, 0.02]]  # mu = 0.3, 0.04
TAU = [0.2, 0.05]
G = [[0.2, -0.4, 0.1], [0.3, 0.1, -0.2]]  # dF / d(masked weight)
ALPHA = 0.002
LR = 0.1
CALM = {"momentum": 0.0, "lr": LR, "threshold_penalty": ALPHA}
STEP = CALM | {"local_steps": 1}
QUICK = {"lr": 0.05, "local_epochs": 1}


def rows_of(*layers, shape=(1, 8, 8), output=True):
    layout = Architecture("tiny", shape, 2, layers).layout
    return ThresholdRows(carriers(layout, output), layout.size)


def flat(weights, tau):
    return torch.cat(
        [
            torch.tensor(weights, dtype=torch.float32).flatten(),
            torch.tensor(tau, dtype=torch.float32),
        ]
    )


def data_of(x, y, parts, classes):
    """Training and test samples x [N, ...], y [N]; device k has those of parts[k]."""
    x, y = np.asarray(x, dtype=np.float32), np.asarray(y, dtype=np.int64)
    parts = [np.asarray(part) for part in parts]
    return Federated(
        y, y, lambda: (x, x), x.shape[1:], parts, parts, tuple(map(str, range(classes)))
    )


def bench_of(layers, x, y, parts, batch_size, classes=2, accounting=None):
    data = data_of(x, y, parts, classes)
    architecture = Architecture("tiny", data.input_shape, classes, tuple(layers))
    return Bench(LearningTask(architecture, data, batch_size, Seeds(0), accounting or Accounting()))


def with_gradient(phase, g=G):
    """The phase on the loss whose gradient by the masked weights is g, whatever the weights: sum_ij
    g_ij w_ij.
    """
    columns = torch.tensor(g).T
    return replace(phase, criterion=lambda logits, y: (logits * columns[y]).sum())


def trained(bench, method, w, g=G):
    """What one round makes of w on device 0."""
    phases = method.local_update(method.start(), 0, w, None)
    job = Job(
        0, 0, tuple(with_gradient(phase, g) for phase in phases), None, method.payload(0.0), 0.0
    )
    return local.run(bench.task, job)


@dataclass(frozen=True)
class Done:
    """An update that is there already."""

    job: Any
    trained: Trained

    def result(self):
        return self.trained


def returned(method, w, k):
    mask = torch.ones(len(w), dtype=torch.bool)
    return Done(Job(k, 0, (), None, method.payload(0.0), 0.0), Trained(w, mask, 0.0))


def part_of_round(bench, method, state, devices, received=None):
    """A round of some devices, of which only ``received`` are in time."""
    updates = Trainer(bench.task).submit(bench.jobs(method, state, devices=devices))
    arrived = updates if received is None else [u for u in updates if u.job.device in received]
    return method.aggregate(method.retain(state, updates), view_of(bench.task, state.g), arrived)
