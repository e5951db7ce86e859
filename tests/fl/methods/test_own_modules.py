"""Methods ask a module of the user's own for its output layer, its classifier and its rows."""

import pytest
from torch import nn

from edgesim.seeds import Seeds
from fl.errors import MethodError
from fl.models.own_module import ModuleArchitecture, maker
from fl.task import LearningTask
from tests.fl.conftest import Bench


def pooled():
    """Convolutions alone: 8 channels of 9 weights, then a channel for each of 10 classes."""
    last = nn.Conv2d(8, 10, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), *last)


def deep():
    """64 -> 6 -> 5 -> 10, modules 1, 3 and 5."""
    dense = nn.Linear(64, 6), nn.ReLU(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 10)
    return nn.Sequential(nn.Flatten(), *dense)


@pytest.fixture
def bench_of(digits):
    def make(module, *classifier):
        made = maker(module, (1, 8, 8), 10)
        model = ModuleArchitecture(
            "./net.py:Net", (1, 8, 8), 10, (), made, classifier=classifier or None
        )
        return Bench(LearningTask(model, digits, 16, Seeds(3)))

    return make


@pytest.mark.parametrize("name", ["fedper", "fedrep"])
def test_the_head_is_the_classifier(bench_of, name):
    """10 (8 + 1) of 170 weights; 10 (5 + 1) and with the hidden layer 5 (6 + 1) more of 485."""
    kept = [bench_of(*each).method(name).weights()["personal"] for each in [(pooled,), (deep,)]]
    assert kept == [90, 60]
    assert bench_of(deep, "3", "5").method(name).weights()["personal"] == 95


def test_a_classifier_with_nothing_in_front_is_no_head(bench_of):
    with pytest.raises(MethodError, match="needs a model with weights in front of its classifier"):
        bench_of(lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 10))).method("fedper")


def test_a_last_convolution_is_an_output_layer(bench_of):
    """FedP3's head has its 90 weights, and CS prunes the 72 of the first kernel alone."""
    bench = bench_of(pooled)
    assert bench.method("fedp3").head.sum() == 90
    assert [slot.size for slot in bench.method("cs").sparse] == [72]
