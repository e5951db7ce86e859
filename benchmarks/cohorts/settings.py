"""What is trained: models, numbers of devices, steps and batches; the jobs of a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgesim.seeds import Seeds
from fl import methods
from fl.contracts import Grant, Job, View
from fl.data.samples import Federated
from fl.method_base.method import bind
from fl.models.architectures import Architecture, build
from fl.models.layers.learned_layers import Linear
from fl.models.layers.weightless_layers import Relu
from fl.task import LearningTask

LR = 0.01


@dataclass(frozen=True)
class Setting:
    """One row of the table: a model, how many devices there are and take part, and what each of
    them does.
    """

    name: str
    model: Architecture
    devices: int
    participants: int
    steps: int
    batch: int
    target: float


TINY = Architecture("64-32-10", (64,), 10, (Linear(64, 32, "features"), Relu(), Linear(32, 10)))
PICTURE = (1, 28, 28)
SMALL = build("digits-cnn", (1, 8, 8), 10)
SETTINGS = {
    "i": Setting("liu-cnn, 5 steps of 128", build("liu-cnn", PICTURE, 10), 10, 10, 5, 128, 2.7),
    "ii": Setting("liu-cnn, 27 steps of 20", build("liu-cnn", PICTURE, 10), 100, 10, 27, 20, 2.7),
    "iii": Setting(
        "lenet5-caffe, 45 steps of 64", build("lenet5-caffe", PICTURE, 10), 100, 10, 45, 64, 3.0
    ),
    "iv": Setting("64-32-10, 5 steps of 10", TINY, 1000, 100, 5, 10, 27.0),
    "v": Setting("digits-cnn, 5 steps of 10", SMALL, 1000, 100, 5, 10, 12.0),
    "vi": Setting("digits-cnn, 5 steps of 20", SMALL, 10, 10, 5, 20, 4.0),
    "vii": Setting(
        "shakespeare-lstm, 2 steps of 8", build("shakespeare-lstm", (80,), 65), 10, 4, 2, 8, 1.0
    ),
    "viii": Setting("resnet18, 2 steps of 4", build("resnet18", (3, 32, 32), 10), 4, 2, 2, 4, 1.0),
}

UNSTACKED = "vii", "viii"  # vmap has no batching rule for LSTM layers, and auto stacks neither


def task_of(setting: Setting, device: str) -> LearningTask:
    """Random pictures or texts: what they show costs no time. Every device has what its steps use
    once.
    """
    rng, size = np.random.default_rng(0), min(setting.steps * setting.batch, 600)
    shape, classes = (setting.devices * size, *setting.model.input_shape), setting.model.classes
    text = len(shape) == 2 and setting.model is not TINY
    x = rng.integers(0, classes, shape) if text else rng.random(shape, dtype=np.float32)
    y = rng.integers(0, classes, len(x))
    held = np.split(np.arange(len(x)), setting.devices)
    data = Federated(
        y, y, lambda: (x, x), setting.model.input_shape, held, held, tuple(map(str, range(classes)))
    )
    return LearningTask(setting.model, data, setting.batch, Seeds(0), device=device)


def jobs_of(task: LearningTask, setting: Setting, turn: int) -> list[Job]:
    """A round of FedAvg."""
    method = bind(methods.resolve("fedavg"), task, {"local_steps": setting.steps, "lr": LR})
    ones, everybody = np.ones(setting.devices), np.arange(setting.devices)
    view = View(turn, 0.0, everybody, ones, ones, task.samples, np.inf, ones, ones)
    chosen = np.random.default_rng(turn).choice(
        setting.devices, setting.participants, replace=False
    )
    state = method.start()
    return [
        method.configure(state, view, Grant(int(k), 0.1, 0.0, 1.0, 1.0)) for k in np.sort(chosen)
    ]


def flops_of_round(jobs: Sequence[Job]) -> float:
    return sum(float(stage.work.flops) for job in jobs for stage in job.stages or ())
