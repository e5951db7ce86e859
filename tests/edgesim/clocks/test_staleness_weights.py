"""s(tau): constant, polynomial, hinge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.clocks.staleness_weights import constant, hinge, polynomial


def test_the_polynomial_halves_at_three_versions():
    assert [polynomial(tau) for tau in (0, 3)] == [1.0, 0.5]
    assert polynomial(8) == pytest.approx(1 / 3)


def test_the_hinge_is_flat_and_then_falls_without_a_jump_beyond_its_formula():
    assert [hinge(tau) for tau in (0, 4)] == [1.0, 1.0]
    assert [hinge(tau) for tau in (5, 8)] == pytest.approx([1 / 11, 1 / 41])


@given(st.integers(0, 10**6), st.floats(0, 10), st.floats(0, 1e3), st.integers(0, 100))
def test_fresh_updates_count_in_full_and_no_weight_rises_with_age(tau, exponent, slope, start):
    for weight in (
        constant,
        lambda t: polynomial(t, exponent),
        lambda t: hinge(t, slope, start),
    ):
        assert weight(0) == 1.0
        assert 0.0 <= weight(tau + 1) <= weight(tau) <= 1.0
