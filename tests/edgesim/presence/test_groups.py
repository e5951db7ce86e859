"""Devices of a group are away together: shared outages, beta-binomial blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgesim.presence.group_blocks import beta_blocks
from edgesim.presence.presence import Part, Presence
from edgesim.presence.sessions import on_off
from edgesim.presence.trace_file import traced
from edgesim.seeds import Seeds


@pytest.mark.slow
def test_of_two_devices_zero_one_or_two_are_there_alike_often():
    """Beta(1, 1): P(0, 1, 2 on) = 1 / 3 each; correlated by 1 / 3."""
    timeline = beta_blocks(1.0, 1.0, 60.0, 2, Seeds(0), "group", "own")
    blocks = 3000
    states = np.array([timeline.at(60.0 * block) for block in range(blocks)])
    shares = np.bincount(states.sum(axis=1), minlength=3) / blocks
    assert np.abs(shares - 1.0 / 3.0).max() < 3.0 * math.sqrt(2.0 / 9.0 / blocks)
    assert np.corrcoef(states.T)[0, 1] == pytest.approx(1.0 / 3.0, abs=0.05)


def test_blocks_change_at_their_edges_alone():
    timeline = beta_blocks(1.0, 1.0, 60.0, 5, Seeds(3), "group", "own")
    assert (timeline.at(1.0) == timeline.at(59.999)).all()
    edges_s = timeline.next_edges_s(0.0)
    assert np.allclose(edges_s / 60.0, np.round(edges_s / 60.0), rtol=0, atol=1e-12)
    for k in range(5):
        assert timeline.at(edges_s[k])[k] != timeline.at(edges_s[k] - 1e-6)[k]


def test_an_outage_takes_the_whole_group_away_and_nobody_else():
    one = np.array([1.0])
    outage = on_off(30.0 * one, 10.0 * one, Seeds(0), "outage")
    presence = Presence(3, [Part(outage, np.array([0, 0, -1]))])
    times_s = np.arange(0.0, 2000.0, 0.7)
    there = np.array([presence.at(time_s) for time_s in times_s])
    assert there[:, 2].all() and (there[:, 0] == there[:, 1]).all()
    assert there[:, 0].mean() == pytest.approx(0.75, abs=0.1)


def test_a_device_is_there_where_its_own_chain_and_its_groups_are_on():
    own = on_off(np.full(4, 5.0), np.full(4, 3.0), Seeds(0), "own")
    group = on_off(np.array([20.0]), np.array([4.0]), Seeds(0), "group")
    both = Presence(4, [Part(own, np.arange(4)), Part(group, np.zeros(4, dtype=int))])
    for k in range(4):
        inside = both.intervals(k, 0.0, 200.0)
        for time_s in np.arange(0.05, 200.0, 0.31):
            expected = own.at(time_s)[k] and group.at(time_s)[0]
            assert expected == any(start <= time_s < end for start, end in inside)
            assert expected == both.at(time_s)[k]
    absent_at = next(t for t in np.arange(0.0, 200.0, 0.1) if not both.at(t).all())
    returns_s = [both.until_s(k, absent_at, True) for k in range(4) if not both.at(absent_at)[k]]
    assert both.returns_s(absent_at)[~both.at(absent_at)].min() <= min(returns_s)


def test_outages_bring_nobody_back_who_is_away_for_ever(monkeypatch):
    """A trace without lines, and one whose last interval is over: nothing is drawn in search."""
    monkeypatch.setattr("edgesim.presence.timeline.MAX_EDGES", 1000)
    group = on_off(np.array([3.0]), np.array([1.0]), Seeds(0), "outage")
    own = traced([[], [(0.0, 4.0)], [(0.0, math.inf)]])
    presence = Presence(3, [Part(own, np.arange(3)), Part(group, np.zeros(3, dtype=int))])
    assert presence.until_s(0, 0.0, there=True) == math.inf == presence.until_s(1, 4.0, there=True)
    assert presence.until_s(0, 1.5, there=False) == 1.5
    assert presence.intervals(0, 0.0, 20.0) == [] and presence.intervals(1, 4.0, 20.0) == []
    assert 0 not in presence.table(20.0)["device"]
    there = [(max(start, 0.0), min(end, 4.0)) for start, end in presence.intervals(2, 0.0, 4.0)]
    assert presence.intervals(1, 0.0, 20.0) == there
