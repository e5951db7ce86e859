"""Means over seeds and their intervals, against numbers made by hand."""

import math

import numpy as np
import pytest
from pytest import approx

from reports.run_data.statistics.seed_intervals import estimate, half_width, overlap

NAN = float("nan")


def test_interval_over_two_seeds():
    assert half_width(np.array([0.8, 0.9])) == approx(
        12.7062 * 0.05, rel=1e-5
    )  # t(1 degree) s / sqrt(2)


def test_no_interval_of_a_loss_that_is_no_finite_number():
    """Without a warning, too: a RuntimeWarning fails a test."""
    half = half_width(np.array([[math.inf, 0.8], [1.0, 0.9], [1.0, 1.0]]))
    assert math.isnan(half[0]) and half[1] == approx(4.30265 * 0.1 / math.sqrt(3), rel=1e-5)


def test_estimate_of_one_seed_has_no_interval(scheme_of):
    found = estimate(scheme_of(), lambda run: 2.0)
    assert (found.mean, found.n) == (2.0, 1) and math.isnan(found.half)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((0.5, 0.1), (0.65, 0.1), True),
        ((0.5, 0.1), (0.75, 0.1), False),
        ((0.5, 0.0), (0.5, 0.0), True),
        ((0.0, 0.0), (0.0, 0.0), True),
        ((0.5, 0.0), (0.5 + 1e-14, 0.0), True),  # what rounding leaves of equal means
        ((0.5, 0.0), (0.5 + 1e-9, 0.0), False),
        ((0.5, NAN), (0.5, 0.1), False),
    ],
)
def test_intervals_overlap_also_where_equal_means_have_none(one, other, expected):
    assert overlap(*one, *other) is overlap(*other, *one) is expected
