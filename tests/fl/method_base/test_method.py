"""Selection and weights of the mean."""

import numpy as np
import torch

from fl.contracts import View
from fl.executors.deferred_training import Trainer

FEDAVG = {"local_steps": 3, "lr": 0.1}


def test_selection_is_uniform_keyed_and_of_idle_devices(bench):
    method = bench.method("fedavg", participants=2)
    idle = np.array([3, 0, 1])

    def chosen(g):
        return method.select(
            None, View(g, 0.0, idle, None, None, bench.task.samples, 1.0, None, None)
        ).tolist()

    rounds = [chosen(g) for g in range(300)]
    assert rounds == [chosen(g) for g in range(300)]
    assert {tuple(r) for r in rounds} == {(0, 1), (0, 3), (1, 3)}
    assert (
        min(rounds.count(pair) for pair in ([0, 1], [0, 3], [1, 3])) > 60
    )  # 100 expected, 8 deviation
    everybody = bench.method("fedavg").select(
        None, View(0, 0.0, idle, None, None, None, 1.0, None, None)
    )
    assert everybody.tolist() == [0, 1, 3]


def test_weighting_by_samples(bench):
    method = bench.method("fedavg", weighting="samples", **FEDAVG)
    state = method.start()
    view = View(0, 0.0, np.arange(4), None, None, np.array([1, 0, 3, 0]), 1.0, None, None)
    updates = Trainer(bench.task).submit(bench.jobs(method, state, devices=[0, 2]))
    expected = (updates[0].result().w.double() + 3 * updates[1].result().w.double()) / 4
    assert torch.allclose(method.aggregate(state, view, updates).w.double(), expected, atol=1e-7)
