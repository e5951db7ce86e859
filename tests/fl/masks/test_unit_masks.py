"""Masks of units and weights."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fl.masks import unit_masks as masks
from fl.masks.unit_masks import importance, kept_count, largest, unit_count
from fl.models.architectures import Architecture, build
from fl.models.layers.learned_layers import Conv, Linear
from fl.models.layers.weightless_layers import Flatten

ALL = torch.ones(6, dtype=torch.bool)


def bits(text):
    return torch.tensor([c == "1" for c in text])


def perceptron(*sizes):
    """Layers of these sizes; every one but the first (the input) is a group of units, the last one
    is the output.
    """
    layers = [Linear(a, b) for a, b in pairwise(sizes)]
    return Architecture("perceptron", (sizes[0],), sizes[-1], tuple(layers)).layout


FOUR = perceptron(1, 4, 2)  # one hidden group of four units


FIVE = perceptron(1, 5, 2)


def only(units):
    """The mask of the one hidden group, as text."""
    (mask,) = units.values()
    return "".join(str(int(bit)) for bit in mask)


def ranked(scores, width, layout=FOUR):
    (name,) = masks.hidden(layout)
    return only(masks.top(layout, {name: np.array(scores)}, width))


def test_of_equal_scores_the_lower_index_is_kept():
    score = torch.tensor([1.0, 3.0, 3.0, 2.0, 3.0, 0.0])
    assert torch.equal(largest(score, ALL, 2), bits("011000"))
    assert torch.equal(largest(score, ALL, 4), bits("011110"))
    assert torch.equal(largest(torch.zeros(6), ALL, 3), bits("111000"))


def test_only_the_prunable_coordinates_are_ranked():
    score = torch.tensor([9.0, 1.0, 9.0, 2.0, 3.0, 9.0])
    assert torch.equal(largest(score, bits("010110"), 2), bits("000110"))


def test_none_all_and_scores_that_are_no_numbers():
    score = torch.tensor([1.0, torch.nan, 3.0, torch.inf, 3.0, 0.0])
    assert not largest(score, ALL, 0).any()
    assert largest(score, ALL, 6).all()
    assert torch.equal(largest(score, ALL, 2), bits("010100"))


@pytest.mark.slow
@given(arrays(np.float32, st.integers(1, 40), elements=st.integers(0, 5)), st.data())
def test_largest_agrees_with_a_stable_sort(score, data):
    keep = data.draw(st.integers(0, len(score)))
    expected = np.zeros(len(score), dtype=bool)
    expected[np.argsort(-score, kind="stable")[:keep]] = True
    mask = largest(torch.from_numpy(score), torch.ones(len(score), dtype=torch.bool), keep)
    assert np.array_equal(mask.numpy(), expected)


def test_importance_is_the_change_of_the_warm_up():  # Liu (20)
    assert importance(torch.tensor([1.0, -2.0]), torch.tensor([0.5, 1.0])).tolist() == [0.5, 3.0]


def test_kept_count():
    assert [kept_count(rho, 10) for rho in (0.0, 0.26, 1.0)] == [10, 7, 0]


@pytest.mark.parametrize(
    ("width", "kept"),
    [(1, "1111"), (0.75, "1011"), (0.5, "1001"), (0.6, "1001"), (0.25, "1000"), (1 / 16, "1000")],
)
def test_the_largest_scores_are_kept(width, kept):
    assert ranked([0.9, 0.1, 0.5, 0.7], width) == kept


def test_of_equal_units_the_lower_index_is_kept():
    assert ranked([1.0, 1.0, 1.0, 1.0], 0.5) == "1100"
    assert ranked([0.0, 1.0, 1.0, 1.0], 0.5) == "0110"
    assert ranked([0.0, 1.0] * 100, 0.25, perceptron(1, 200, 2)) == "01" * 50 + "00" * 50


def test_how_many_units_a_width_keeps():
    paper = {
        1: (10, 20, 50),
        0.5: (5, 10, 25),
        0.25: (2, 5, 12),
        0.125: (1, 2, 6),
        0.0625: (1, 1, 3),
    }
    for width, counts in paper.items():
        assert tuple(unit_count(width, units) for units in (10, 20, 50)) == counts
    assert [unit_count(width, 5, "up") for width in (0.01, 0.2, 0.21, 0.4, 1.0)] == [
        1,
        1,
        2,
        2,
        5,
    ]  # HeteroFL
    assert (
        unit_count(0.07, 100) == unit_count(0.07, 100, "up") == 7
    )  # 0.07 * 100 is a little more than 7 in floats
    assert (
        unit_count(0.29, 100) == unit_count(0.29, 100, "up") == 29
    )  # and 0.29 * 100 a little less than 29


@given(st.integers(1, 60), st.floats(0.001, 1.0), st.sampled_from(["down", "up"]))
def test_the_count_is_the_rounded_width(units, width, rounding):
    count = unit_count(width, units, rounding)
    assert 1 <= count <= units
    assert -1e-6 < width * units - count < 1 or rounding == "up" or count == 1
    assert -1e-6 < count - width * units < 1 or rounding == "down"


@given(st.lists(st.floats(-2, 2), min_size=7, max_size=7), st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_larger_width_keeps_what_a_smaller_one_keeps(scores, a, b):
    layout = perceptron(2, 7, 2)
    small, large = ranked(scores, min(a, b), layout), ranked(scores, max(a, b), layout)
    assert small.count("1") == unit_count(min(a, b), 7)
    assert all(x <= y for x, y in zip(small, large, strict=True))


def test_biases_and_the_output_layer_stay_in_row_masks():
    layout = build("fedlps-cnn", (1, 28, 28), 10).layout
    units = masks.random(layout, 0.5, np.random.default_rng(1))
    named = layout.named(layout.expand(units, rows=True))
    weights = [name for name in named if name.endswith("weight")]
    assert [named[name].reshape(len(named[name]), -1).any(axis=1).sum() for name in weights] == [
        5,
        10,
        25,
        10,
    ]
    for name in weights:
        rows = named[name].reshape(len(named[name]), -1)
        assert (rows == rows[:, :1]).all()  # constant blocks per output channel
    assert all(named[name].all() for name in named if name.endswith("bias"))


def test_heterofl_keeps_a_prefix_and_fedrolex_a_rolling_window():
    assert only(masks.prefix(FOUR, 0.5, "up")) == "1100"
    windows = [only(masks.rolling(FOUR, 0.5, g)) for g in range(4)]
    assert windows == ["1100", "0110", "0011", "1001"]
    assert [sum(int(window[unit]) for window in windows) for unit in range(4)] == [2, 2, 2, 2]


def test_windows_of_fedrolex():
    windows = [only(masks.rolling(FIVE, 0.4, g)) for g in range(5)]
    assert windows == ["11000", "01100", "00110", "00011", "10001"]
    assert windows[0] == only(masks.prefix(FIVE, 0.4, "up"))
    assert only(masks.rolling(FIVE, 0.4, 7)) == windows[2]


@pytest.mark.parametrize(
    ("width", "parameters"),
    [(0.5, 109_000), (0.25, 29_000), (0.125, 8_286), (0.8, 276_400), (0.6, 156_300), (0.4, 70_200)],
)
def test_sizes_of_heterofl_on_lenet(width, parameters):
    layout = build("lenet5-caffe", (1, 28, 28), 10).layout
    assert layout.expand(masks.prefix(layout, width, "up")).sum() == parameters


def test_units_at_random_come_from_the_generator():
    layout = perceptron(2, 30, 30, 2)
    first, second = (masks.random(layout, 0.3, np.random.default_rng(seed)) for seed in (5, 6))
    assert all(mask.sum() == 9 for mask in first.values())
    a, b = first.values()
    assert (a != b).any()  # each group has its own draw
    assert any((first[name] != second[name]).any() for name in first)
    again = masks.random(layout, 0.3, np.random.default_rng(5))
    assert all(np.array_equal(first[name], again[name]) for name in first)


def test_magnitude_sums_the_weights_that_lead_into_a_unit():
    layout = perceptron(2, 3, 2)
    w = np.zeros(layout.size)
    named = layout.named(w)
    first, bias, second, _ = named.values()
    first[:] = [[1, -1], [0, -3], [0.5, 0]]
    bias[:] = [50, 0, 0]  # neither a bias
    second[:] = [[0, 0, 90], [0, 0, 9]]  # nor what leads out of a unit counts
    assert next(iter(masks.unit_sums(layout, np.abs(w)).values())).tolist() == [2.0, 3.0, 0.5]
    assert only(masks.magnitude(layout, w, 1 / 3)) == "010"
    assert only(masks.magnitude(layout, w, 2 / 3)) == "110"


def test_owners_of_a_convolution():
    layers = Conv(2, 3, 2, 0), Flatten(), Linear(3, 2)
    layout = Architecture("conv", (2, 2, 2), 2, layers).layout
    expected = np.concatenate([np.repeat([0, 1, 2], 8), [-1] * (layout.size - 24)])
    assert np.array_equal(masks.owners(layout), expected)


def test_owners_count_through_all_hidden_groups():
    layout = build("fedlps-cnn", (1, 28, 28), 10).layout
    counts = np.bincount(masks.owners(layout) + 1)
    assert counts[0] == 90 + 500  # biases and the output layer
    assert counts[1:].tolist() == [25] * 10 + [250] * 20 + [320] * 50


def test_gates_of_an_lstm_belong_to_their_unit():
    layout = build("shakespeare-lstm", (80,), 66).layout
    counts = np.bincount(masks.owners(layout)[masks.owners(layout) >= 0])
    assert layout.groups and len(counts) == sum(
        group.units for group in masks.hidden(layout).values()
    )
    assert (
        counts[-256:].tolist() == [4 * (256 + 256)] * 256
    )  # the second layer: four gates, from below and from itself
