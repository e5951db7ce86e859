"""Earliest deadline first: examples by hand, all intervals by brute force, and static shares."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import PruningProblem
from solvers.allocators.min_max_latency import latency
from solvers.band_over_time.earliest_deadline import earliest_deadline, least_common_deadline

THREE = ([0.0, 1.0, 2.0], [4.0, 3.0, 6.0], [2.0, 1.5, 1.0])


def test_three_uploads_that_fit():
    table = earliest_deadline(*THREE)
    assert table.finish_s.tolist() == [3.5, 2.5, 4.5]
    assert table.turns == ((0, 0.0, 1.0), (1, 1.0, 2.5), (0, 2.5, 3.5), (2, 3.5, 4.5))
    assert table.lateness_s == -0.5 and table.feasible


def test_a_fourth_that_does_not_fit_is_proved_by_an_interval():
    release, deadline, band = (
        [*column, more] for column, more in zip(THREE, (2, 5, 1.6), strict=True)
    )
    table = earliest_deadline(release, deadline, band)
    assert table.lateness_s == pytest.approx(0.1) and not table.feasible
    assert table.interval_s == (0.0, 5.0) and table.members.tolist() == [0, 1, 3]
    assert table.finish_s[3] == pytest.approx(5.1)


def test_one_common_deadline_against_static_shares():
    release, band = [0.5, 1.0, 2.5], [1.0, 1.0, 1.2]
    assert least_common_deadline(release, band) == pytest.approx(3.7)
    assert static_deadline(release, band) == pytest.approx(4.850781, abs=1e-6)
    together = [1.0, 1.0, 1.0]
    assert static_deadline(together, band) == pytest.approx(least_common_deadline(together, band))


def static_deadline(release, band):
    """Least T with one share for the whole round, by the solver latency."""
    zeros, ones = np.zeros(len(band)), np.ones(len(band))
    problem = PruningProblem(
        bits=zeros,
        compute_s=zeros,
        slack_s=np.full(len(band), np.inf),
        rate_bps=ones,
        weight=ones,
        rho_min=zeros,
        rho_max=zeros,
        bits_fixed=np.array(band),
        before_s=np.array(release),
    )
    answer = latency(problem)
    return float((release + np.array(band) / answer.share).max())


uploads = st.lists(
    st.tuples(*(st.floats(0.0, 10.0).map(lambda x: round(x, 2)) for _ in range(3))),
    min_size=1,
    max_size=7,
)


@pytest.mark.slow
@settings(max_examples=150)
@given(uploads)
def test_it_is_late_by_the_worst_of_all_intervals(drawn):
    release, length, band = np.array(drawn).T
    deadline = release + length
    excess = max(
        (s - e + band[(release >= s) & (deadline <= e)].sum())
        for s, e in product(release, deadline)
        if ((release >= s) & (deadline <= e)).any()
    )
    table = earliest_deadline(release, deadline, band)
    assert table.lateness_s == pytest.approx(excess, abs=1e-9)
    sent = np.zeros(len(band))
    for k, start_s, end_s in table.turns:
        assert start_s >= release[k] and end_s <= table.finish_s[k]
        sent[k] += end_s - start_s
    assert sent == pytest.approx(band, abs=1e-9)
    ends = [end_s for _, _, end_s in table.turns]
    assert all(b[1] >= a for a, b in zip(ends, table.turns[1:], strict=False))


@settings(max_examples=40)
@given(uploads)
def test_static_shares_never_need_less_time(drawn):
    release, _, band = np.array(drawn).T
    band = band + 0.01
    assert static_deadline(release, band) >= least_common_deadline(release, band) - 1e-6


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [(0, np.inf, "a is finite"), (1, np.nan, "d a number"), (2, -1.0, "c finite and >= 0")],
)
def test_what_no_upload_can_have_is_refused(column, value, said):
    columns = [list(each) for each in THREE]
    columns[column][1] = value
    with pytest.raises(ValueError, match=f"upload 1 has .*{said}"):
        earliest_deadline(*columns)
