"""Thinning by hand and as properties."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.seeds import Seeds
from fl.errors import MethodError
from fl.methods.fedmap.granularity import PerUnit, PerWeight
from fl.methods.fedmap.thinning import (
    empty_layers,
    expected_draws,
    expected_holders,
    refilled,
    scale,
    thin,
    unbiased_rate,
)
from fl.models.architectures import build
from fl.models.layout import Layout, Slot

U1, U2 = [0.3, 0.7, 0.1, 0.4], [0.6, 0.2, 0.9, 0.1]


HALF = np.full(4, 0.5, dtype=np.float32)


LENET = build("lenet5-caffe", (1, 28, 28), 10).layout


class Fixed:
    """A generator whose uniforms are given."""

    def __init__(self, *draws):
        self.draws = list(draws)

    def random(self, size, dtype):
        draw = np.asarray(self.draws.pop(0), dtype=dtype)
        assert len(draw) == size
        return draw


def weights(count, least=0):
    """A grain of one layer of so many weights."""
    return PerWeight(Layout((Slot("w", (count, 1), 0, "weight", "classifier", 0),)), least)


def rng(name="thin", **keys):
    return Seeds(1).stream(name, **keys)


def test_two_draws_by_hand():
    """FedMAP, Algorithm 2 and eq. (6): a place stays where u < p = 1/2."""
    drawn = thin(weights(4), HALF, 0.5, Fixed(U1, U2))
    assert drawn.mask.tolist() == [False, False, False, True]
    assert drawn.survived.tolist() == [1, 0, 1, 2]
    assert drawn.draws == 2


def test_at_least_one_draw_unless_as_printed():
    """E1."""
    assert thin(weights(4), HALF, 1.0, Fixed(U1)).draws == 1
    printed = thin(weights(4), HALF, 1.0, Fixed(), least=0)
    assert (printed.draws, printed.survived.any(), printed.mask.all()) == (0, False, True)


@given(st.integers(0, 2**32), st.floats(0.02, 1.0), st.integers(2, 60))
def test_budget_counts_and_conservation(seed, gamma, count):
    """A place survives n draws or fails once: at most n counts, n for those that were drawn on."""
    p = np.random.default_rng(seed).uniform(0.05, 0.95, count).astype(np.float32)
    grain = weights(count)
    drawn = thin(grain, p, gamma, np.random.default_rng(seed))
    assert drawn.mask.sum() <= gamma * count
    assert ((drawn.survived == drawn.draws) == drawn.mask).all()
    failures = drawn.survived < drawn.draws
    assert (drawn.survived + failures <= drawn.draws).all()
    assert failures.sum() == count - drawn.mask.sum()
    ended = drawn.mask | (drawn.survived == drawn.draws - 1)
    assert ((drawn.survived + failures == drawn.draws) == ended).all()
    child = grain.survivors(drawn.mask, p, np.random.default_rng(seed + 1))
    assert (child <= drawn.mask).all()


def test_every_candidate_is_part_of_the_one_before():
    """The same stream ends earlier for a larger budget."""
    p = rng("p").uniform(0.3, 0.9, 300).astype(np.float32)
    chain = [thin(weights(300), p, gamma, rng()).mask for gamma in (1.0, 0.4, 0.1, 0.02)]
    assert all((later <= earlier).all() for earlier, later in pairwise(chain))
    assert chain[0].sum() > chain[-1].sum()


def test_expected_counts_leave_the_mode_at_one_half():
    """After three draws at p = 1/2: E m = 1/2 + 1/4 + 1/8, E failures = 1 - 1/8."""
    places = 40_000
    drawn = thin(weights(places), np.full(places, 0.5, np.float32), 0.2, rng())
    assert drawn.draws == 3
    for values in (drawn.survived, drawn.survived < drawn.draws):
        assert abs(values.mean() - 0.875) < 3 * values.std() / places**0.5


def test_a_submodel_that_never_fits_names_its_device():
    with pytest.raises(
        MethodError, match="still has 4 of 4 weights after 200 draws, its budget is 2"
    ):
        thin(weights(4), np.ones(4, np.float32), 0.5, rng())
    with pytest.raises(MethodError, match="the submodel of device 7 still has"):
        thin(weights(4), np.ones(4, np.float32), 0.5, rng(), owner="device 7")


@pytest.mark.parametrize(
    ("gamma", "used"), [(1, 1 / 2), (0.64, 1 / 2), (0.36, 1 / 4), (0.16, 1 / 8)]
)
def test_capacity_that_thinning_uses_at_one_half(gamma, used):
    """The density after n draws is 2^-n, with a spread of 6.6e-4 for LeNet."""
    grain = PerWeight(LENET)
    p = np.full(grain.count, 0.5, np.float32)
    drawn = thin(grain, p, gamma, rng())
    assert abs(grain.size(drawn.mask) / grain.total - used) < 5 * 6.6e-4
    assert expected_draws(p, gamma) == drawn.draws


def test_refill_takes_the_likeliest_of_the_last_drop_up_to_the_budget():
    p = np.array([0.5, 0.6, 0.9, 0.7, 0.8], np.float32)
    drawn = thin(weights(5), p, 0.6, Fixed([0.9, 0.1, 0.1, 0.1, 0.1], [0, 0.99, 0.99, 0.0, 0.99]))
    assert drawn.mask.tolist() == [False, False, False, True, False]
    assert refilled(weights(5), drawn, p, 0.6).tolist() == [False, False, True, True, True]


def test_every_layer_keeps_what_it_must():
    """With min_units no draw empties a layer."""
    grain = PerWeight(LENET, least=3)
    drawn = thin(grain, np.full(grain.count, 0.5, np.float32), 0.0005, rng())
    assert min(grain.sizes(drawn.mask)) == 3
    assert empty_layers(LENET, grain.expand(drawn.mask)) == 0
    loose = PerWeight(LENET)
    kept = loose.expand(thin(loose, np.full(loose.count, 0.5, np.float32), 1e-5, rng()).mask)
    assert empty_layers(LENET, kept) >= 2  # four weights are left at most


def test_unbiased_server_rate():
    """FedMAP, eq. (2): C(4, 2) / (C(4, 2) - C(3, 2)) = 6 / 3 for one holder of four."""
    small = unbiased_rate(np.array([0.0, 1, 2, 3, 4]), 4, 2)
    assert small.tolist() == pytest.approx([0, 2, 1.2, 1, 1])
    large = unbiased_rate(np.array([1.0, 2, 5, 10, 20, 25, 50]), 100, 10)
    assert large.tolist() == pytest.approx(
        [10, 5.2381, 2.4024, 1.4936, 1.1051, 1.0503, 1.0006], abs=5e-5
    )


def test_expected_holders():
    """p^n summed over the devices; at p = 1/2 budgets of 1, 1/4, 1/4, 1/16 take 1, 2, 2 and 4
    draws.
    """
    holders = expected_holders(np.full(8, 0.5, np.float32), [1, 0.25, 0.25, 0.0625])
    assert holders.tolist() == pytest.approx([1 / 2 + 2 / 4 + 1 / 16] * 8)


def test_scale_makes_up_for_the_share_of_a_layer():
    """H7b: 1/4 of the first convolution's weights is kept, all of the others."""
    grain = PerWeight(LENET)
    chosen = np.ones(grain.count, bool)
    chosen[grain.layers[0]] = np.arange(500) % 4 == 0
    factor = scale(grain, grain.expand(chosen))
    assert (factor[:500] == 2).all()
    assert (factor[500:] == 1).all()


def test_scale_of_unit_submodels_counts_the_inputs_that_are_left():
    """Half of conv1's units: conv2's rows lose half of their inputs, conv1's rows nothing."""
    layout = build("digits-cnn", (1, 8, 8), 10).layout
    grain = PerUnit(layout)
    chosen = np.ones(grain.count, bool)
    chosen[:4] = False
    named = layout.named(scale(grain, grain.expand(chosen)))
    assert (named["conv1.weight"] == 1).all()
    assert named["conv2.weight"] == pytest.approx(2**0.5)
    assert (named["linear1.weight"] == 1).all()
