"""A small real task (the digits), and one round of a method without a network."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.accounting import Accounting
from fl.contracts import Grant, View
from fl.data.datasets import load, spread
from fl.data.samples import Federated
from fl.executors.deferred_training import Trainer
from fl.method_base.method import bind, with_length
from fl.methods import resolve
from fl.models.architectures import Architecture, build
from fl.task import LearningTask


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)


def view_of(task: LearningTask, g: int = 0) -> View:
    ones = np.ones(task.devices)
    return View(g, 0.0, np.arange(task.devices), ones, ones, task.samples, np.inf, ones, ones)


@dataclass(frozen=True)
class Bench:
    """Binds methods to a task and runs rounds in which everybody arrives."""

    task: LearningTask

    def method(self, name: str, **params):
        cls = resolve(name)
        return bind(cls, self.task, with_length(cls, params, rounds=100, devices=10))

    def jobs(self, method, state, rho=0.0, devices=None):
        view = view_of(self.task, state.g)
        devices = range(self.task.devices) if devices is None else devices
        return [method.configure(state, view, Grant(k, 0.1, rho, 1.0, 1.0)) for k in devices]

    def round(self, method, state, rho=0.0, criterion=None, devices=None):
        jobs = self.jobs(method, state, rho, devices)
        if criterion is not None:
            jobs = [
                replace(job, phases=tuple(replace(p, criterion=criterion) for p in job.phases))
                for job in jobs
            ]
        updates = Trainer(method.task).submit(jobs)
        return method.aggregate(method.retain(state, updates), view_of(self.task, state.g), updates)

    def play(self, name, rounds=2, rho=0.0, **params):
        method = self.method(name, **params)
        state = method.start()
        for _ in range(rounds):
            state = self.round(method, state, rho)
        return method, state


@pytest.fixture(scope="session")
def digits():
    return spread(load("digits"), 4, Seeds(3), kind="labels", labels_per_device=3)


@pytest.fixture(scope="session")
def bench(digits):
    return Bench(LearningTask(build("digits-cnn", digits.input_shape, 10), digits, 16, Seeds(3)))


@pytest.fixture(scope="session")
def neurons():
    """Two neurons without a bias that see the three unit vectors, in one batch of one device."""
    from fl.models.layers.learned_layers import Linear
    from tests.fl.two_neurons import bench_of

    return bench_of((Linear(3, 2, bias=False),), np.eye(3), [0, 1, 2], [[0, 1, 2]], 3, classes=3)


@pytest.fixture(scope="session")
def quadratics(tiny_bench):
    """One weight, and devices with the losses a_k (w - c_k)^2 / 2.

    Makes a function that plays a round and returns the state, and the number w of a state.
    """
    from fl.models.layers.learned_layers import Linear

    def make(name, curvatures, centres, **params):
        count = len(centres)
        bench = tiny_bench(
            [Linear(1, count, bias=False)], [[1.0]] * count, range(count), classes=count
        )
        a, c = torch.tensor(curvatures), torch.tensor(centres)

        def criterion(logits, y):  # the first weight is w, the others have no gradient
            return (0.5 * a[y] * (logits[:, 0] - c[y]) ** 2).mean()

        method = bench.method(name, **params)
        start = method.start()
        start = replace(start, w=torch.zeros_like(start.w))

        def play(state, devices=None):
            return bench.round(method, state, criterion=criterion, devices=devices)

        return start, play

    return make


@pytest.fixture(scope="session")
def tiny_bench():
    """Makes a bench on the given layers of devices with so many samples each: x [N, D], y [N]."""

    def make(layers, x, y, classes=2, accounting=None, batch_size=None, per_device=1):
        x, y = np.asarray(x, dtype=np.float32), np.asarray(y, dtype=np.int64)
        each = list(np.arange(len(y)).reshape(-1, per_device))
        data = Federated(
            y, y, lambda: (x, x), x.shape[1:], each, each, tuple(map(str, range(classes)))
        )
        architecture = Architecture("tiny", x.shape[1:], classes, tuple(layers))
        return Bench(
            LearningTask(
                architecture, data, batch_size or per_device, Seeds(0), accounting or Accounting()
            )
        )

    return make


@pytest.fixture
def ctrl_c():
    """ctrl_c() from another thread: SIGINT for the main thread, once that waits for results."""
    received = []

    def raise_once(number, frame):
        if not received:
            received.append(number)
            raise KeyboardInterrupt

    def send():
        while not main_thread_waits():
            time.sleep(1e-3)
        while not received:
            # A signal that comes just before the main thread falls asleep does not wake it.
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1e-2)

    earlier = signal.signal(signal.SIGINT, raise_once)  # a script may have it ignored
    yield send
    signal.signal(signal.SIGINT, earlier)


def main_thread_waits():
    """Is the main thread in `Future.result`, so that all threads of a pool have started?"""
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame is not None and frame.f_code.co_name != "result":
        frame = frame.f_back
    return frame is not None


@pytest.fixture(scope="session")
def lenet():
    """LeNet-5-Caffe on 100 devices of 600 pictures each, batches of 64; nobody looks at the
    pictures.
    """
    labels = np.zeros(60_000, dtype=np.int64)
    parts = list(np.arange(60_000).reshape(100, 600))
    data = Federated(
        labels, labels, lambda: (None, None), (1, 28, 28), parts, parts, tuple("0123456789")
    )
    return Bench(
        LearningTask(
            build("lenet5-caffe", (1, 28, 28), 10), data, 64, Seeds(0), Accounting(backward="twice")
        )
    )
