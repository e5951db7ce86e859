"""FedPer: the head stays at its device."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.data.datasets import load, spread
from fl.executors.deferred_training import Trainer
from fl.models.architectures import build
from fl.task import LearningTask
from tests.fl.conftest import Bench, view_of

LR = 0.05


def fedlps_task():
    digits = spread(load("digits"), 2, Seeds(0), kind="labels", labels_per_device=3)
    return LearningTask(build("fedlps-cnn", (1, 28, 28), 10), digits, 20, Seeds(0))


@pytest.mark.parametrize("name", ["fedper", "fedrep"])
def test_all_but_the_output_layer_travels(name):  # 32 * 21,330 bit on MNIST
    method = Bench(fedlps_task()).method(name)
    assert method.payload(0.0).bits_up == method.payload(0.0).bits_down == 32 * 21_330
    assert method.weights()["personal"] == 510


@pytest.mark.parametrize("name", ["fedper", "fedrep"])
def test_heads_stay_and_bodies_are_averaged(bench, name):
    method = bench.method(name, local_steps=4, lr=LR)
    state = method.start()
    updates = Trainer(bench.task).submit(bench.jobs(method, state))
    view = replace(view_of(bench.task), samples=np.array([50, 10, 20, 20]))  # weights |D_k|
    after = method.aggregate(method.retain(state, updates), view, updates)
    head = torch.from_numpy(method.personal())
    assert torch.equal(after.w[head], state.w[head])
    mean = (
        sum(n * update.result().w.double() for n, update in zip([5, 1, 2, 2], updates, strict=True))
        / 10
    )
    assert torch.allclose(after.w[~head].double(), mean[~head], atol=1e-7)
    model = method.personalise(after, 2)
    assert torch.equal(model[head], updates[2].result().w[head]) and torch.equal(
        model[~head], after.w[~head]
    )
    assert torch.equal(method.personalise(replace(after, local={}), 2)[head], state.w[head])


def test_one_device_makes_fedper_to_fedavg(digits):
    """Where nobody else's head is in the mean, keeping one's own changes nothing."""
    alone = spread(load("digits"), 1, Seeds(3))
    bench = Bench(LearningTask(build("digits-cnn", alone.input_shape, 10), alone, 16, Seeds(3)))
    _, fedavg = bench.play("fedavg", rounds=3, local_steps=3, lr=LR)
    method, fedper = bench.play("fedper", rounds=3, local_steps=3, lr=LR)
    assert torch.equal(method.personalise(fedper, 0), fedavg.w)
