"""TopK of weights and of units."""

from itertools import pairwise

import numpy as np
import pytest

from edgesim.seeds import Seeds
from fl.errors import MethodError
from fl.methods.fedmap.granularity import PerUnit, PerWeight, lengths
from fl.methods.fedmap.thinning import thin
from fl.models.architectures import build
from fl.models.layout import Layout, Slot

LENET = build("lenet5-caffe", (1, 28, 28), 10).layout


def weights(count, least=0):
    """A grain of one layer of so many weights."""
    return PerWeight(Layout((Slot("w", (count, 1), 0, "weight", "classifier", 0),)), least)


def rng(name="thin", **keys):
    return Seeds(1).stream(name, **keys)


def few_values(grain, seed=0):
    """p with massive ties, as after counts, and weights."""
    dice = np.random.default_rng(seed)
    return dice.integers(1, 9, grain.count).astype(np.float32) / 10, dice.normal(
        size=grain.layout.size
    )


SHAPES = {
    "digits-cnn": (1, 8, 8),
    "spafl-conv4": (3, 32, 32),
    "resnet18": (3, 32, 32),
    "shakespeare-lstm": (80,),
}


def test_sizes_of_topk_on_lenet_and_nested():
    """floor(gamma x 430,500) weights of LeNet."""
    grain = PerWeight(LENET)
    p, w = few_values(grain)
    assert grain.total == 430_500
    chosen = {gamma: grain.largest(p, w, gamma) for gamma in (1, 1 / 4, 1 / 16, 1 / 64, 0.3)}
    assert [int(chosen[g].sum()) for g in (1, 1 / 4, 1 / 16, 1 / 64)] == [
        430_500,
        107_625,
        26_906,
        6_726,
    ]
    for small, large in pairwise(sorted(chosen)):
        assert (chosen[small] <= chosen[large]).all()
    assert [grain.largest_of_each(p, w, 1 / 16)[piece].sum() for piece in grain.layers] == [
        31,
        1562,
        25000,
        312,
    ]


def test_ties_go_to_the_larger_weight_then_to_the_lower_index():
    p, w = np.array([0.2, 0.5, 0.5, 0.5, 0.9]), np.array([9, -1, 1, 3, 0])
    assert weights(5).largest(p, w, 0.4).tolist() == [False, False, False, True, True]
    assert weights(5).largest(p, w, 0.6).tolist() == [False, True, False, True, True]


@pytest.mark.slow
def test_topk_that_no_layer_loses():
    """And the general order is the quick one."""
    grain, loose = PerWeight(LENET, least=2), PerWeight(LENET)
    p, w = few_values(grain)
    p[grain.layers[0]] = 0.05
    assert not loose.largest(p, w, 1 / 64)[loose.layers[0]].any()
    kept = grain.largest(p, w, 1 / 64)
    assert kept[grain.layers[0]].sum() == 2
    assert kept.sum() == 6_726
    general = super(PerWeight, loose).largest(p, w, 0.1)
    assert (general == loose.largest(p, w, 0.1)).all()


def test_topk_of_every_layer_that_keeps_some_stays_within_the_budget():
    """LeNet at 1/64: 7 + 390 + 6250 + 78 of 6726; with 10 at least two go from the largest."""
    grain = PerWeight(LENET, 10)
    p, w = few_values(grain)
    chosen = grain.largest_of_each(p, w, 1 / 64)
    assert [chosen[layer].sum() for layer in grain.layers] == [10, 390, 6248, 78]
    with pytest.raises(MethodError, match=r"at least 40 of 430,500 weights, its budget is 39"):
        grain.largest_of_each(p, w, 39.5 / 430_500)


def test_a_budget_just_below_a_whole_number_is_that_number():
    assert 0.29 * 100 < 29
    assert weights(100).room(0.29) == 29


@pytest.mark.parametrize("name", SHAPES)
def test_unit_submodels_are_dense_fit_and_can_be_read_back(name):
    """E13: the size is that of the smaller dense tensors, the output layer is whole, every layer
    keeps a unit.
    """
    layout = build(name, SHAPES[name], 10).layout
    grain = PerUnit(layout)
    p = np.full(grain.count, 0.6, np.float32)
    drawn = thin(grain, p, 0.1, rng())
    kept = grain.expand(drawn.mask)
    assert all(drawn.mask[piece].any() for piece in grain.layers)
    assert (grain.choice_of(kept) == drawn.mask).all()
    assert (
        grain.size(drawn.mask)
        == sum(int(kept[slot.slice].sum()) for slot in grain.tensors)
        <= 0.1 * grain.total
    )
    output = next(slot for slot in reversed(layout.slots) if slot.kind == "weight")
    assert kept[output.slice].reshape(output.shape).any(axis=1).all()
    assert grain.total == sum(slot.size for slot in layout.slots if slot.kind == "weight")


def test_largest_units_are_the_most_that_fit():
    layout = build("digits-cnn", (1, 8, 8), 10).layout
    grain = PerUnit(layout)
    p, w = np.random.default_rng(0).permutation(grain.count) / 100, np.ones(layout.size)
    small, large = grain.largest(p, w, 0.1), grain.largest(p, w, 0.5)
    assert (small <= large).all()
    assert grain.fits(small, 0.1)
    needed = [piece.start + int(np.argmax(p[piece])) for piece in grain.layers]
    assert small[needed].all()
    left = np.setdiff1d(np.flatnonzero(~small), needed)
    more = small.copy()
    more[left[np.argmax(p[left])]] = True
    assert not grain.fits(more, 0.1)


def test_a_budget_below_one_unit_per_layer_is_refused():
    grain = PerUnit(build("digits-cnn", (1, 8, 8), 10).layout)
    with pytest.raises(MethodError, match="has at least 32 of"):
        grain.largest(np.full(grain.count, 0.5), np.ones(grain.layout.size), 0.001)


def test_lengths_of_blocks_and_repeats():
    slots = {slot.name: slot for slot in build("shakespeare-lstm", (80,), 10).layout.slots}
    recurrent = next(slot for slot in slots.values() if slot.shape == (1024, 256))
    group = recurrent.axes[0].group
    assert lengths(recurrent.shape, recurrent.axes, {group: 3})[0] == 12
