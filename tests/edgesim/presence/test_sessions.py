"""Devices that are on and off in turn: the stationary law, correlation in time, session laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgesim.presence.sessions import EXPONENTIAL, LOGNORMAL, WEIBULL, LengthLaw, on_off
from edgesim.presence.timeline import Timeline, TooManyEdgesError
from edgesim.seeds import Seeds

MANY = 20_000


def three_sigma(share, count=MANY):
    return 3.0 * math.sqrt(share * (1.0 - share) / count)


def chains(on_s=300.0, off_s=100.0, count=MANY, law=None, seed=0):
    return on_off(np.full(count, on_s), np.full(count, off_s), Seeds(seed), "test", law)


@pytest.mark.parametrize("time_s", [0.0, 60.0, 1000.0])
def test_the_stationary_share_is_three_quarters_at_any_time(time_s):
    assert abs(chains().at(time_s).mean() - 0.75) < three_sigma(0.75)


def test_the_state_after_a_minute_is_correlated_by_exp_of_minus_eight_tenths():
    timeline = chains()
    first, later = timeline.at(0.0), timeline.at(60.0)
    assert np.corrcoef(first, later)[0, 1] == pytest.approx(0.449329, abs=3.0 / math.sqrt(MANY))
    # P(on at t | on at 0) = pi + (1 - pi) exp(-t (1 / m1 + 1 / m0)); stays on: exp(-x / m1)
    again = 0.75 + 0.25 * math.exp(-0.8)
    assert abs(later[first].mean() - again) < three_sigma(again, first.sum())
    stayed = chains().next_edges_s(0.0)[first] > 60.0
    assert abs(stayed.mean() - math.exp(-0.2)) < three_sigma(math.exp(-0.2), first.sum())


@pytest.mark.parametrize("law", [LengthLaw("weibull", 0.6), LengthLaw("lognormal", 1.0)])
def test_other_laws_begin_in_their_stationary_law_too(law):
    timeline = chains(law=law)
    for time_s in (0.0, 50.0, 150.0, 700.0):
        assert abs(timeline.at(time_s).mean() - 0.75) < three_sigma(0.75)


@pytest.mark.parametrize("name", [EXPONENTIAL, WEIBULL, LOGNORMAL])
def test_lengths_have_mean_one_and_rests_that_of_the_inspection_paradox(name):
    law, stream = LengthLaw(name, 0.7), Seeds(1).stream("lengths")
    whole, rest = law.whole(stream, 200_000), law.rest(stream, 200_000)
    assert whole.mean() == pytest.approx(1.0, abs=0.02)
    second = {"exponential": 2.0, "lognormal": math.exp(0.49)}
    second["weibull"] = math.gamma(1.0 + 2.0 / 0.7) / math.gamma(1.0 + 1.0 / 0.7) ** 2
    assert rest.mean() == pytest.approx(second[name] / 2.0, rel=0.03)  # E[X^2] / (2 E[X])


@pytest.mark.parametrize("name", [EXPONENTIAL, WEIBULL, LOGNORMAL])
def test_a_further_device_and_the_order_of_questions_change_nothing(name):
    few, more = (chains(count=count, law=LengthLaw(name, 0.7)) for count in (5, 6))
    assert few.next_edges_s(0.0).tolist() == more.next_edges_s(0.0)[:5].tolist()
    times_s = [5000.0, 10.0, 400.0]
    assert [few.at(t).tolist() for t in times_s] == [more.at(t)[:5].tolist() for t in times_s]
    one_by_one = [[few.state_of(k, t)[0] for k in range(5)] for t in sorted(times_s)]
    assert one_by_one == [more.at(t)[:5].tolist() for t in sorted(times_s)]


def test_an_edge_belongs_to_the_state_that_it_begins():
    timeline = Timeline(np.array([False]), lambda n, before_s: before_s + 2.0)
    assert [bool(timeline.at(t)[0]) for t in (0.0, 1.999, 2.0, 3.999, 4.0)] == [0, 0, 1, 1, 0]
    assert timeline.state_of(0, 2.0) == (True, 4.0)
    assert timeline.next_edges_s(2.0) == [4.0]


def test_sessions_far_too_short_for_the_simulated_time_are_one_sentence(monkeypatch):
    monkeypatch.setattr("edgesim.presence.timeline.MAX_EDGES", 1000)
    with pytest.raises(TooManyEdgesError, match="give presence longer times"):
        chains(1e-3, 1e-3, count=10).at(10.0)
