"""Numbers as texts."""

import pytest

from reports.styling.number_formats import MEAN_COUNT, percent_of_rare, significant


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1234.56, "1\u2009235"),
        (0.012346, "0.01235"),
        (999.96, "1\u2009000"),
        (3e-7, "3.000e-07"),
    ],
)
def test_four_significant_figures(value, text):
    assert significant(4)(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (25.0, "25"),
        (0.0, "0"),
        (12_345.0, "12\u2009345"),
        (0.1 * 3 + 0.7, "1"),
        (25 / 3, "8.3"),
        (1234.5, "1\u2009234.5"),
        (1 / 30, "0.03"),
    ],
)
def test_a_mean_of_counts_has_a_decimal_only_where_seeds_divide_it(value, text):
    assert MEAN_COUNT(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.0"),
        (3e-4, "0.03"),
        (9.4e-4, "0.09"),
        (1e-3, "0.1"),
        (0.05, "5.0"),
        (1.0, "100.0"),
        (2e-8, "2e-06"),
        (0.9994, "99.9"),
        (0.9997, "99.97"),  # nearly all are not all
        (1 - 4e-6, "99.9996"),
        (1 - 1e-15, "100.0"),
    ],
)
def test_a_rare_share_is_not_printed_as_none(share, text):
    assert percent_of_rare()(share) == text
