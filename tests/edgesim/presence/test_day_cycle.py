"""Presence by the time of day has the share that its law says, at every hour."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgesim.presence.day_cycle import DayCycle, day_and_night
from edgesim.seeds import Seeds

MANY, DAY = 5_000, 86400.0


@pytest.mark.slow
def test_the_share_follows_the_sine_and_its_mean_over_a_day_is_p0():
    cycle = DayCycle(0.5, 0.3, DAY, session_s=600.0)
    timeline = day_and_night(cycle, np.zeros(MANY), Seeds(0), "test")
    hours, shares = np.arange(0.0, 24.0, 3.0), []
    for hour in hours:
        shares.append(timeline.at(hour * 3600.0).mean())
        expected = 0.5 + 0.3 * math.sin(2.0 * math.pi * hour / 24.0)
        assert abs(shares[-1] - expected) < 3.5 * math.sqrt(expected * (1.0 - expected) / MANY)
    assert np.mean(shares) == pytest.approx(0.5, abs=0.02)


def test_time_zones_shift_the_day():
    cycle = DayCycle(0.5, 0.4, DAY, session_s=300.0)
    phase_s = np.repeat([0.0, DAY / 2.0], MANY // 2)
    there = day_and_night(cycle, phase_s, Seeds(1), "test").at(DAY / 4.0)
    assert there[: MANY // 2].mean() == pytest.approx(0.9, abs=0.02)
    assert there[MANY // 2 :].mean() == pytest.approx(0.1, abs=0.02)


def test_the_rate_is_never_negative_up_to_the_longest_session():
    """m = sqrt(p0^2 - A^2) / A period / (2 pi): 4 / 3 of 13750.99 s for p0 .5 and A .3."""
    cycle = DayCycle(0.5, 0.3, DAY, 600.0)
    assert cycle.longest_session_s == pytest.approx(4.0 / 3.0 * DAY / (2.0 * math.pi))
    times_s, longest = np.linspace(0.0, DAY, 20_001), cycle.longest_session_s
    at_most = DayCycle(0.5, 0.3, DAY, longest)
    slope = 0.3 * 2.0 * math.pi / DAY * np.cos(2.0 * math.pi * times_s / DAY)
    gain = slope + at_most.share(times_s, 0.0) / longest
    assert gain.min() == pytest.approx(0.0, abs=1e-9)


def test_an_absence_ends_where_its_hazard_reaches_the_draw():
    """Without amplitude the rate is p0 / (m (1 - p0)): 1 / m for p0 1 / 2."""
    steady = DayCycle(0.5, 0.0, DAY, session_s=600.0)
    draws = np.array([0.1, 2.0, 300.0])
    ends_s = steady.returns_s(np.full(3, 1e5), np.zeros(3), draws)
    assert ends_s == pytest.approx(1e5 + 600.0 * draws, rel=1e-12)
    cycle, ends_s = DayCycle(0.5, 0.3, DAY, 600.0), 0.0
    for draw in (0.5, 40.0):  # within a day, and over several
        (ends_s,) = cycle.returns_s(np.array([7000.0]), np.array([5000.0]), np.array([draw]))
        times_s = np.linspace(7000.0, ends_s, 200_001)
        rates_hz = cycle.return_rate_hz(times_s, 5000.0)
        assert np.trapezoid(rates_hz, times_s) == pytest.approx(draw, rel=1e-5)
