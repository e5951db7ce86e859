"""Bits and joules by the time of each version, by hand and against one version at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from edgesim.records.costs_over_time import share_until, spent_by_versions

SPAN_NAMES = ("round", "start_s", "end_s", "bits", "energy_j")


def spans_of(*rows):
    return dict(zip(SPAN_NAMES, map(np.array, zip(*rows, strict=True)), strict=True))


def test_spans_that_versions_part_count_by_their_time():
    """Versions at 1, 2 and 4 s; of 8 bits from 0.5 to 4.5 s there are 1, 3 and 7 by then."""
    spans = spans_of(
        (3, 0.5, 4.5, 8.0, 4.0),
        (0, 0.0, 1.0, 16.0, 0.0),
        (1, 1.5, 3.0, 32.0, 6.0),  # closed with version 1: all of it counts
        (2, 2.0, 2.0, 64.0, 0.0),  # a download that takes no time begins as version 1 is made
        (2, 1.5, 2.5, 0.0, 2.0),
    )
    spent = spent_by_versions(spans, np.arange(3), np.array([1.0, 2.0, 4.0]))
    assert spent[0].tolist() == [16 + 1, 16 + 3 + 32, 16 + 7 + 32 + 64]
    assert spent[1].tolist() == [0.5, 1.5 + 6 + 1, 3.5 + 6 + 2]


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 40), st.integers(0, 20), st.integers(0, 8)),
        min_size=1,
        max_size=30,
    ),
    st.lists(st.integers(0, 12), min_size=1, max_size=8),
)
def test_all_versions_in_one_pass_are_those_one_by_one(drawn, steps):
    spans = spans_of(*((g, t / 4, (t + lasts) / 4, float(b), b / 3) for g, t, lasts, b in drawn))
    values, time_s = np.stack([spans["bits"], spans["energy_j"]]), np.cumsum(steps) / 4
    spent = spent_by_versions(spans, np.arange(len(steps)), time_s)
    for g, each_s in enumerate(time_s):
        assert spent[:, g] == approx(values @ share_until(spans, g, each_s), rel=1e-12, abs=1e-12)
