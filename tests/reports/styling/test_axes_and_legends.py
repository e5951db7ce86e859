"""Markers that look out from behind others."""

from matplotlib import rcParams
from pytest import approx

from reports.styling.axes_and_legends import staggered


def test_markers_of_few_rounds_are_at_most_1_6_times_as_large_as_the_last():
    """Of eight lines the first was drawn 3.1 times as large: over the curves around it."""
    sizes = [staggered(i, 8, 5)["ms"] / rcParams["lines.markersize"] for i in range(8)]
    assert (sizes[0], sizes[-1]) == (approx(1.6), 1.0) and sizes == sorted(sizes, reverse=True)
    assert staggered(0, 1, 5)["ms"] == staggered(0, 8, 7)["ms"] == rcParams["lines.markersize"]
