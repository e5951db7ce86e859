"""eFD: random units, drawn anew for every device and round."""

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from fl.masks.unit_masks import random, unit_count
from tests.fl.conftest import view_of


def test_a_quarter_of_20_and_50_units():
    assert [unit_count(0.25, units, "up") for units in (20, 50)] == [5, 13]


def test_whole_width_is_fedavg_to_the_byte(bench):
    plain = {"local_steps": 3, "lr": 0.1}
    _, fedavg = bench.play("fedavg", rounds=2, **plain)
    _, state = bench.play("efd", rounds=2, width=1.0, **plain)
    assert torch.equal(state.w, fedavg.w)


def test_every_device_and_round_draws_anew_and_the_same_again(bench):
    method = bench.method("efd", width=0.5)
    masks = {(k, g): method.kept(None, view_of(bench.task, g), k) for k in (0, 1) for g in (0, 1)}
    assert len({mask.tobytes() for mask in masks.values()}) == 4
    assert (method.kept(None, view_of(bench.task, 1), 1) == masks[1, 1]).all()


def test_a_weight_between_two_hidden_layers_is_held_by_chance(bench):
    """Width s = 1/2 of two layers: a quarter of the weights between them, in the mean."""
    method = bench.method("efd", width=0.5)
    hidden = [name for name, group in method.layout.groups.items() if group.hidden]
    first, second = hidden[:2]
    between = method.layout.expand({first: np.zeros(method.layout.groups[first].units, bool)})
    between = ~between & ~method.layout.expand(
        {second: np.zeros(method.layout.groups[second].units, bool)}
    )
    held = np.mean(
        [method.kept(None, view_of(bench.task, g), 0)[between].mean() for g in range(300)]
    )
    assert held == pytest.approx(0.25, abs=0.01)


def test_every_unit_is_drawn_equally_often(bench):
    """Chi-square of how often each of J units is drawn, k at a time, in 400 draws.

    A count has the variance 400 k/J (1 - k/J). Draws are without replacement: the sum of squares
    over that variance, times (J - 1) / J, is chi-square with J - 1 degrees of freedom.
    """
    method = bench.method("efd", width=0.25)
    masks = [method.kept(None, view_of(bench.task, g), k) for k in range(4) for g in range(100)]
    for name, group in method.layout.groups.items():
        if not group.hidden:
            continue
        units, chosen = group.units, unit_count(0.25, group.units, "up")
        kept = np.array([method.layout.named(mask)[f"{name}.bias"] for mask in masks])
        assert (kept.sum(axis=1) == chosen).all()
        expected, share = 400 * chosen / units, chosen / units
        squares = ((kept.sum(axis=0) - expected) ** 2).sum()
        statistic = squares / (expected * (1 - share)) * (units - 1) / units
        assert 0.01 < chi2.sf(statistic, units - 1) < 0.99


def test_how_often_nobody_of_ten_holds_a_weight(bench):
    """(1 - s^2)^10 between two hidden layers: 0.52446 of them with a quarter, 0.05631 with half."""
    layout = bench.task.layout
    first, second = [name for name, group in layout.groups.items() if group.hidden][1:3]
    for width, uncovered in ((0.25, 0.52446), (0.5, 0.05631)):
        rng, missed = np.random.default_rng(0), []
        for _ in range(150):
            held = [random(layout, width, rng, "up") for _ in range(10)]
            pairs = np.any([np.outer(each[first], each[second]) for each in held], axis=0)
            missed.append(1.0 - pairs.mean())
        assert np.mean(missed) == pytest.approx(uncovered, abs=0.01)
