"""Accuracy on held-out training samples: of the models that devices use, beside the test scores."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from edgesim.seeds import Seeds
from fl.data.datasets import load, spread
from fl.evaluation.evaluate import evaluate
from fl.method_base.method import bind
from fl.methods.fedsim import FedSim
from fl.task import LearningTask
from tests.fl.conftest import Bench

PARTS = {"kind": "labels", "labels_per_device": 3}


@pytest.fixture(scope="module")
def held_out(cnn_task):
    """A task in which four devices hold a fifth of their digits out."""
    data = spread(load("digits"), 4, Seeds(3), validation=0.2, **PARTS)
    return replace(cnn_task, data=data)


@pytest.fixture(scope="module")
def cnn_task():
    from fl.models.architectures import build

    data = spread(load("digits"), 4, Seeds(3), **PARTS)
    return LearningTask(build("mlp", data.input_shape, 10), data, 20, Seeds(3))


def trained(task):
    steps = {"personal_steps": 10, "global_steps": 10, "personal_lr": 0.2, "global_lr": 0.2}
    method, bench = bind(FedSim, task, steps), Bench(task)
    state = method.start()
    for _ in range(5):
        state = bench.round(method, state)
    return method, state


@pytest.mark.slow
def test_held_out_samples_are_scored_with_the_model_of_their_device(held_out):
    method, state = trained(held_out)
    scores, data = evaluate(held_out, method, state), held_out.data
    each = []
    for k, index in enumerate(data.validation_index):
        x, y = torch.from_numpy(data.x_train[index]), torch.from_numpy(data.y_train[index])
        logits = held_out.architecture.logits(method.personalise(state, k), x)
        each.append((logits.argmax(1) == y).double().mean().item())
    assert scores.measures["validation_accuracy"] == pytest.approx(np.mean(each))
    assert 0.3 < np.mean(each) < 1 and np.std(each) > 0
    assert scores.measures["validation_loss"] > 0
    # the test scores are those of the same models without validation
    whole = replace(held_out, data=replace(data, validation_index=()))
    plain = evaluate(whole, method, state)
    assert plain.accuracy.tobytes() == scores.accuracy.tobytes() and plain.measures == {}


def test_nobody_trains_on_what_is_held_out(held_out, cnn_task):
    for k, mine in enumerate(held_out.data.validation_index):
        assert not set(mine) & set(held_out.data.train_index[k]) and len(mine)
    assert (held_out.samples < cnn_task.samples).all()
    assert held_out.data.test_index[0].tolist() == cnn_task.data.test_index[0].tolist()
