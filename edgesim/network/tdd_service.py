"""Air time of a link that a TDD pattern lets send for a part of each period.

The slots of a pattern such as DDDSU give each direction one interval [a, b) of the period P. The
air time until t is periodic and piecewise linear, so the finish of an upload has a closed form, and
no slot needs an event of its own. At the mean rate a direction has its share of every stretch of
time instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from edgesim.scenario.radio.carrier_schema import CarrierSection
from edgesim.scenario.radio.numerology import SYMBOLS, slot_seconds
from fl.contracts import Array

ROUNDING = 1e-9  # of the air time of a period
STEPS = 4  # of the clock, whose sums are rounded to a few, late in a run


class AirTime(Protocol):
    """The time in which a direction of the radio is on the air while it carries bits."""

    @property
    def share(self) -> float:
        """Its part of all time."""

    def air_s(self, start_s: Any, end_s: Any) -> Any:
        """Time on the air from start to end, s, at most end - start."""

    def share_at(self, time_s: float) -> float:
        """Part of the time until `next_edge_s`."""

    def next_edge_s(self, time_s: float) -> float:
        """When `share_at` changes next, s; inf: never."""


@dataclass(frozen=True)
class MeanAirTime:
    """The same share of every stretch of time.

    Args:
        share: in (0, 1].
    """

    share: float = 1.0

    def air_s(self, start_s: Any, end_s: Any) -> Any:
        return self.share * (end_s - start_s)

    def share_at(self, time_s: float) -> float:
        return self.share

    def next_edge_s(self, time_s: float) -> float:
        return math.inf


ALWAYS = MeanAirTime()
AirTimes = tuple[AirTime, AirTime]  # of uplink and downlink


@dataclass(frozen=True)
class TddService:
    """A link that sends from a to b of every period.

    Times are counted in seconds at the mean rate: the air time over its share of the period.

    Args:
        period_s: P, s.
        begin_s: a, s.
        end_s: b, s.
    """

    period_s: float
    begin_s: float
    end_s: float

    @property
    def share(self) -> float:
        """Of the time in which the link sends."""
        return (self.end_s - self.begin_s) / self.period_s

    @property
    def longest_gap_s(self) -> float:
        """By how much an upload can end later than at the mean rate, at most, s."""
        return self.period_s - (self.end_s - self.begin_s)

    def air_s(self, start_s: float, end_s: float) -> float:
        """Time on the air from start to end, s."""
        air_s = self._air_s(end_s) - self._air_s(start_s)
        return min(max(air_s, 0.0), end_s - start_s)  # differences round

    def share_at(self, time_s: float) -> float:
        """1 in the slots of its direction, 0 in the others."""
        return float([begins for edge_s, begins in self._edges(time_s) if edge_s <= time_s][-1])

    def next_edge_s(self, time_s: float) -> float:
        """When its slots begin or end next, s, always later than ``time_s``."""
        return next(edge_s for edge_s, _ in self._edges(time_s) if edge_s > time_s)

    def _edges(self, time_s: float) -> list[tuple[float, bool]]:
        """(instant, its slots begin there) around an instant, in order of time."""
        # Dividing rounds, so the period of ``time_s`` can be one of two.
        n = math.floor(time_s / self.period_s)
        edges = ((self.begin_s, True), (self.end_s, False))
        periods = range(n - 2, n + 3)
        return [(each * self.period_s + edge_s, on) for each in periods for edge_s, on in edges]

    def _air_s(self, time_s: float) -> float:
        """Air time from 0 to ``time_s``, s."""
        whole = math.floor(time_s / self.period_s)
        inside = min(max(time_s - whole * self.period_s - self.begin_s, 0.0), self._each_s)
        return whole * self._each_s + inside

    @property
    def _each_s(self) -> float:
        return self.end_s - self.begin_s

    def served_s(self, start_s: float, end_s: float) -> float:
        """What is served from start to end, in seconds at the mean rate."""
        return max(self._air_s(end_s) - self._air_s(start_s), 0.0) / self.share

    def served_each_s(self, start_s: Array, end_s: float) -> Array:
        """`served_s` from several starts [N] on."""
        air = [self._air_s(each) for each in start_s.tolist()]
        return np.maximum(self._air_s(end_s) - np.array(air), 0.0) / self.share

    def finishes_s(self, start_s: float, needed_s: Array) -> Array:
        """`finish_s` of several needs [N]."""
        return np.array([self.finish_s(start_s, each) for each in needed_s.tolist()])

    def finish_s(self, start_s: float, needed_s: float) -> float:
        """When so many seconds at the mean rate are served from ``start_s`` on; inf for inf."""
        if math.isinf(needed_s):
            return math.inf
        target_s = self._air_s(start_s) + needed_s * self.share
        # Sums round: what just fills the slots of a period ends there, and not behind the gap.
        least_s = max(ROUNDING * self._each_s, STEPS * math.ulp(start_s + needed_s))
        whole = max(math.ceil((target_s - least_s) / self._each_s) - 1, 0)
        finish_s = whole * self.period_s + self.begin_s + (target_s - whole * self._each_s)
        return max(finish_s, start_s)


def make_air_times(carrier: CarrierSection | None) -> AirTimes:
    """(uplink, downlink) of a scenario's carrier."""
    if carrier is None or carrier.tdd is None:
        return ALWAYS, ALWAYS
    if carrier.tdd_clock != "slots":
        up_share, down_share = carrier.air_shares
        return MeanAirTime(up_share), MeanAirTime(down_share)
    slot_s = slot_seconds(carrier.scs_hz)
    down, _, up = carrier.special_symbols
    period_s = len(carrier.tdd) * slot_s
    special = carrier.tdd.count("S")
    up_s = (carrier.tdd.count("U") + special * up / SYMBOLS) * slot_s
    down_s = (carrier.tdd.count("D") + special * down / SYMBOLS) * slot_s
    return TddService(period_s, period_s - up_s, period_s), TddService(period_s, 0.0, down_s)
