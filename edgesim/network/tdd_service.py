"""Air time of a link that a TDD pattern lets send for a part of each period.

The slots of a pattern such as DDDSU give each direction one interval [a, b) of the period P. The
air time until t is periodic and piecewise linear, so the finish of an upload has a closed form, and
no slot needs an event.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edgesim.scenario.radio.carrier_schema import CarrierSection
from edgesim.scenario.radio.numerology import SYMBOLS, slot_seconds
from fl.contracts import Array


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
        whole = max(math.ceil(target_s / self._each_s) - 1, 0)
        finish_s = whole * self.period_s + self.begin_s + (target_s - whole * self._each_s)
        return max(finish_s, start_s)


def make_services(carrier: CarrierSection | None) -> tuple[TddService | None, TddService | None]:
    """(uplink, downlink) of a scenario's carrier; None where the rate is the mean over slots."""
    if carrier is None or carrier.tdd is None or carrier.tdd_clock != "slots":
        return None, None
    slot_s = slot_seconds(carrier.scs_hz)
    down, _, up = carrier.special_symbols
    period_s = len(carrier.tdd) * slot_s
    special = carrier.tdd.count("S")
    up_s = (carrier.tdd.count("U") + special * up / SYMBOLS) * slot_s
    down_s = (carrier.tdd.count("D") + special * down / SYMBOLS) * slot_s
    return TddService(period_s, period_s - up_s, period_s), TddService(period_s, 0.0, down_s)
