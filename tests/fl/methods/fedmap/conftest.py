"""Rounds of FedMAP without a network, and the task that its tests share."""

import numpy as np
import pytest

from fl.contracts import Grant, View
from fl.executors.deferred_training import Trainer
from fl.method_base.method import bind
from fl.methods import resolve

SIZES = np.array([1, 1 / 4, 1 / 16, 1 / 64])
QUICK = {"phase_rounds": 2, "local_steps": 3, "lr": 0.05}
P, J = 6058, 5960  # digits-cnn


class Play:
    """Rounds of FedMAP on devices of given budgets."""

    def __init__(self, task, budgets=SIZES, **params):
        self.task, self.budgets = task, np.asarray(budgets, dtype=float)
        self.method = bind(resolve("fedmap"), task, QUICK | params)

    def view(self, g):
        ones = np.ones(self.task.devices)
        everybody = np.arange(self.task.devices)
        return View(g, 0.0, everybody, ones, ones, self.task.samples, np.inf, ones, self.budgets)

    def updates(self, state, devices=None, g=None):
        view = self.view(state.g)
        devices = range(self.task.devices) if devices is None else devices
        jobs = [self.method.configure(state, view, Grant(k, 0.1, 0.0, 1.0, 1.0)) for k in devices]
        return Trainer(self.task, encode=self.method.encode, charged=self.method.charged).submit(
            jobs
        )

    def round(self, state, devices=None):
        updates = self.updates(state, devices)
        return self.method.aggregate(
            self.method.retain(state, updates), self.view(state.g), updates
        )

    def rounds(self, count, state=None):
        state = self.method.start() if state is None else state
        for _ in range(count):
            state = self.round(state)
        return state


@pytest.fixture(scope="module")
def task(bench):
    return bench.task
