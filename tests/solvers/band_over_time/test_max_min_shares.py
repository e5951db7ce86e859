"""Max-min fair shares with caps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.band_over_time.max_min_shares import max_min_shares


def test_who_is_capped_leaves_the_rest_to_the_others():
    share, theta = max_min_shares([1, 1, 2], [0.1, 1, 1])
    assert share == pytest.approx([0.1, 0.3, 0.6]) and theta == pytest.approx(0.3)
    share, theta = max_min_shares([1, 1, 2], [0.1, 1, 0.5])
    assert share == pytest.approx([0.1, 0.4, 0.5]) and theta == pytest.approx(0.4)


def test_caps_that_leave_band_over_are_all_reached():
    share, theta = max_min_shares([1.0, 5.0], [0.2, 0.3])
    assert share.tolist() == [0.2, 0.3] and theta == np.inf


def test_caps_that_are_above_the_band_by_rounding_are_all_reached():
    """They sum to 1 + 2e-16, and with rounding even the largest seems to be above its cap."""
    cap = np.array([0.2, 0.4, 0.04, 0.28 - 5e-17, 0.08])
    share, theta = max_min_shares([0.1, 0.3, 1e-6, 0.3, 1.0], cap)
    assert cap.sum() > 1.0 and share == pytest.approx(cap) and np.isfinite(theta)


def test_without_caps_shares_are_the_weights():
    share, _ = max_min_shares([1.0, 3.0])
    assert share.tolist() == [0.25, 0.75]


positive = st.floats(1e-3, 1.0)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=9))
def test_a_larger_level_would_not_fit_and_a_smaller_one_leaves_band(drawn):
    weight, cap = np.array(drawn).T
    share, theta = max_min_shares(weight, cap)
    assert (share <= cap).all()
    if cap.sum() <= 1:
        assert (share == cap).all()
        return
    assert share.sum() == pytest.approx(1.0)
    for factor, sign in ((0.99, -1), (1.01, 1)):
        other = np.minimum(cap, factor * theta * weight).sum()
        assert sign * (other - 1.0) >= -1e-12


@pytest.mark.parametrize("given_", [([0.0, 1.0], 1.0), ([1.0, 1.0], [1.0, 0.0])])
def test_nothing_but_positive_numbers(given_):
    with pytest.raises(ValueError, match="must be positive"):
        max_min_shares(*given_)
