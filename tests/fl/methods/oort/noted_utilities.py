"""What Oort has noted of devices, and whom it selects by that."""

from dataclasses import replace

import numpy as np

from fl.contracts import View
from fl.method_base.state import State


def notes_of(worth, percentile=100.0):
    return {
        "tried": {str(k): [u, t, 1] for k, (u, t) in worth.items()},
        "exploited": [],
        "percentile": percentile,
    }


def selections(bench, method, notes, devices=20, rounds=300):
    task = replace(
        bench.task,
        data=replace(bench.task.data, train_index=[np.arange(5 + k) for k in range(devices)]),
    )
    method, state = replace(method, task=task), State(0, None, notes=notes)
    ones, samples = np.ones(devices), np.arange(devices) + 5
    views = [
        View(g, 0.0, np.arange(devices), ones, ones, samples, np.inf, ones, ones)
        for g in range(rounds)
    ]
    return np.array([method.select(state, view) for view in views])
