"""Presence by the time of day, p(t) = p0 + A sin(2 pi (t - phi) / period), at every instant.

Sessions are exponential with mean m. With absences that end at the rate
(p'(t) + p(t) / m) / (1 - p(t)), the share of those who are there obeys p' = rate (1 - p) - p / m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgesim.presence.timeline import Timeline
from fl.contracts import Array, Streams

GRID = 8192  # steps of a day, over which the rate is taken as linear


@dataclass(frozen=True)
class DayCycle:
    """Who is there at which time of the day.

    Args:
        mean: p0, share of those there, over the day.
        amplitude: A >= 0, with 0 < p0 - A and p0 + A < 1.
        period_s: length of the day, s.
        session_s: m, mean length of a session, s; so short that p never falls faster than sessions
            end, `longest_session_s`.
    """

    mean: float
    amplitude: float
    period_s: float
    session_s: float

    def share(self, time_s: Array, phase_s: Array) -> Array:
        """p(t), the same shape."""
        return self.mean + self.amplitude * np.sin(self._angle(time_s, phase_s))

    def return_rate_hz(self, time_s: Array, phase_s: Array) -> Array:
        """Rate at which absences end, 1/s."""
        slope = 2.0 * math.pi / self.period_s * self.amplitude
        share = self.share(time_s, phase_s)
        gain = slope * np.cos(self._angle(time_s, phase_s)) + share / self.session_s
        return np.maximum(gain, 0.0) / (1.0 - share)

    @cached_property
    def hazard(self) -> tuple[Array, Array]:
        """(times since the phase, the rate integrated up to them) over one day, on a grid."""
        times_s = np.linspace(0.0, self.period_s, GRID + 1)
        rates_hz = self.return_rate_hz(times_s, np.zeros(1))
        steps = (rates_hz[1:] + rates_hz[:-1]) / 2.0 * (self.period_s / GRID)
        return times_s, np.concatenate([[0.0], np.cumsum(steps)])

    def returns_s(self, time_s: Array, phase_s: Array, draws: Array) -> Array:
        """When absences end that are open at ``time_s``, by exponential draws of mean 1, s."""
        times_s, hazard = self.hazard
        days, within_s = np.divmod(time_s - phase_s, self.period_s)
        more, reached = np.divmod(np.interp(within_s, times_s, hazard) + draws, hazard[-1])
        ends_s = (days + more) * self.period_s + np.interp(reached, hazard, times_s) + phase_s
        return np.maximum(ends_s, time_s)  # rounding

    @property
    def longest_session_s(self) -> float:
        """The largest m with p' + p / m >= 0 all day, s.

        m = min p / -p'; with p = p0 + A sin x and p' = A cos(x) 2 pi / period the least is where
        sin x = -A / p0: sqrt(p0^2 - A^2) / A period / (2 pi).
        """
        if self.amplitude == 0.0:
            return math.inf
        least = math.sqrt(self.mean**2 - self.amplitude**2) / self.amplitude
        return least * self.period_s / (2.0 * math.pi)

    def _angle(self, time_s: Array, phase_s: Array) -> Array:
        return 2.0 * math.pi * (time_s - phase_s) / self.period_s


def day_and_night(cycle: DayCycle, phase_s: Array, streams: Streams, purpose: str) -> Timeline:
    """Members that come and go by the time of day.

    Args:
        cycle: of the day.
        phase_s: phi [members], s: at phi the share is p0, and rises.
        streams: the random streams.
        purpose: name of the streams of these members.
    """
    count = len(phase_s)
    first = streams.stream(f"{purpose}/start").random(count)
    starts_on = first < cycle.share(np.zeros(count), phase_s)

    def edges_after(n: int, before_s: Array) -> Array:
        draws = streams.stream(purpose, round=n).standard_exponential(count)
        leaves_s, ends = before_s + cycle.session_s * draws, starts_on ^ (n % 2 == 1)
        return np.where(ends, leaves_s, cycle.returns_s(before_s, phase_s, draws))

    return Timeline(starts_on, edges_after)
