"""Methods ask a module of the user's own for its output layer, classifier, rows and units."""

import re
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from edgesim.seeds import Seeds
from fl.errors import MethodError
from fl.masks.unit_masks import hidden, unit_sums
from fl.models.own_modules.module_making import maker
from fl.models.own_modules.own_module import ModuleArchitecture
from fl.task import LearningTask
from tests.fl.conftest import Bench

GUIDE = Path(__file__).parents[3] / "docs/guide/own-data-and-model.md"


def pooled():
    """Convolutions alone: 8 channels of 9 weights, then a channel for each of 10 classes."""
    last = nn.Conv2d(8, 10, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), *last)


def deep():
    """64 -> 6 -> 5 -> 10, modules 1, 3 and 5."""
    dense = nn.Linear(64, 6), nn.ReLU(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 10)
    return nn.Sequential(nn.Flatten(), *dense)


def normed():
    """64 -> 6, and a layer norm, which mixes its units; -> 5 -> 10, modules 1, 4 and 6."""
    front = nn.Flatten(), nn.Linear(64, 6), nn.LayerNorm(6), nn.ReLU()
    return nn.Sequential(*front, nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 10))


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


@pytest.mark.parametrize(
    ("module", "rows"), [(deep, [6, 5, 10]), (normed, [6, 5, 10]), (pooled, [8, 10])]
)
def test_every_row_has_a_threshold_whatever_is_known_of_its_units(bench_of, module, rows):
    """Also where the outputs of a layer are mixed, and where the last layer is a convolution."""
    bench = bench_of(module)
    assert bench.method("spafl").rows.counts == rows
    assert bench.method("spafl", prune_output=False).rows.counts == rows[:-1]
    _, state = bench.play("spafl", rounds=1)
    assert len(state.w) == bench.task.layout.size + sum(rows)


def test_weights_belong_to_the_unit_that_they_lead_into(bench_of):
    """64 -> 6 -> 5 and a layer norm: a unit of the 6 owns its 64 weights, not the 5 that it feeds.

    Those into the 5, which the norm mixes, belong to no unit.
    """
    front = nn.Flatten(), nn.Linear(64, 6), nn.ReLU(), nn.Linear(6, 5), nn.LayerNorm(5)
    layout = bench_of(lambda: nn.Sequential(*front, nn.Linear(5, 10))).task.layout
    assert [group.units for group in hidden(layout).values()] == [6]
    (sums,) = unit_sums(layout, np.ones(layout.size)).values()
    assert sums.tolist() == [64] * 6


def test_the_scaler_divides_what_is_narrower(bench_of):
    """64 -> 6 and a layer norm stays whole; 6 -> 5 -> 10 has half of the 5: 5 (6 + 1) weights."""
    method = bench_of(normed).method("heterofl", width=0.5)
    (phase,) = bench_of(normed).jobs(method, method.start(), devices=[0])[0].phases
    assert phase.scale.unique().tolist() == [1, 2] and int((phase.scale == 2).sum()) == 35


@pytest.mark.parametrize(
    ("name", "params"), [("apfl", {}), ("fjord", {"distillation": True}), ("per-fedavg", {})]
)
def test_a_loss_of_the_methods_own_is_without_dropout_as_the_guide_says(bench_of, name, params):
    front = nn.Flatten(), nn.Linear(64, 6), nn.ReLU()
    plain = bench_of(lambda: nn.Sequential(*front, nn.Identity(), nn.Linear(6, 10)))
    dropping = bench_of(lambda: nn.Sequential(*front, nn.Dropout(0.9), nn.Linear(6, 10)))
    states = [each.play(name, rounds=1, **params)[1] for each in (plain, dropping)]
    assert states[0].w.equal(states[1].w)
    others = [each.play("fedavg", rounds=1)[1] for each in (plain, dropping)]
    assert not others[0].w.equal(others[1].w)
    (row,) = re.findall(r"^\| methods with a loss of their own.*", GUIDE.read_text(), re.MULTILINE)
    assert name in row
