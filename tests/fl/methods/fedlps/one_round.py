"""One round of FedLPS without a network: orders, outcomes, what bandits learn."""

from dataclasses import replace

import numpy as np

from fl.contracts import Grant, Outcome, Report
from fl.executors.deferred_training import Trainer
from tests.fl.conftest import view_of


def sized(view, capability, g=0):
    return replace(view, capability=np.asarray(capability, dtype=float), g=g)


def jobs(method, state, view, devices):
    return [method.configure(state, view, Grant(int(k), 0.1, 0.0, 1.0, 1.0)) for k in devices]


def outcome(update, finish_s, status="arrived", received=True):
    grant = Grant(update.job.device, 0.1, 0.0, 1.0, 1.0)
    return Outcome(grant, update, status, received, trained=True, finish_s=finish_s)


def played(bench, method, state, capability, finish=lambda job: 1.0):
    """One round with everybody who is selected in time."""
    view = sized(view_of(bench.task, state.g), capability, state.g)
    chosen = method.select(state, view)
    updates = Trainer(bench.task).submit(jobs(method, state, view, chosen))
    outcomes = tuple(outcome(update, finish(update.job)) for update in updates)
    state = method.aggregate(method.retain(state, updates), view, updates)
    return method.observe(state, Report(view.g, 2.0, outcomes))
