"""Other programs on the processor: a two-state Markov chain that leaves a share while it is busy.

Work that is done in t seconds from the stationary state, at clock f, with a = lambda + mu:

    mean      f t (mu + s lambda) / a
    variance  2 f^2 (1 - s)^2 lambda mu / a^3 (t - (1 - exp(-a t)) / a)
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fl.contracts import Streams

DRAWN_AT_ONCE = 64  # intervals; drawn one by one they are the same


@dataclass(frozen=True, eq=False)
class BackgroundLoad:
    """The load of one device, a pure function of time: a resumed run draws it again.

    Args:
        to_busy_hz: lambda, rate of becoming busy.
        to_idle_hz: mu, rate of becoming free again.
        busy_share: s, share of the processor that is left while it is busy.
        streams: random streams.
        device: k.
    """

    to_busy_hz: float
    to_idle_hz: float
    busy_share: float
    streams: Streams
    device: int

    @property
    def mean_share(self) -> float:
        """Share that is left in the long run: (mu + s lambda) / (lambda + mu)."""
        total = self.to_busy_hz + self.to_idle_hz
        return (self.to_idle_hz + self.busy_share * self.to_busy_hz) / total

    @property
    def switches_per_s(self) -> float:
        """Changes per second in the long run: 2 lambda mu / (lambda + mu)."""
        return 2.0 * self.to_busy_hz * self.to_idle_hz / (self.to_busy_hz + self.to_idle_hz)

    def share(self, time_s: float) -> float:
        """Share of the processor that is left at an instant."""
        past = self._switches_until(time_s)
        return self.busy_share if self._starts_busy != past % 2 else 1.0

    def next_switch_s(self, time_s: float) -> float:
        """The first change after an instant, s."""
        return self._switch_s[self._switches_until(time_s)]

    def _switches_until(self, time_s: float) -> int:
        while self._switch_s[-1] <= time_s:
            self._extend()
        return bisect_right(self._switch_s, time_s)

    @cached_property
    def _stream(self) -> np.random.Generator:
        return self.streams.stream("background", device=self.device)

    @cached_property
    def _starts_busy(self) -> int:
        busy = self.to_busy_hz / (self.to_busy_hz + self.to_idle_hz)
        return int(self._stream.random() < busy)

    @cached_property
    def _switch_s(self) -> list[float]:
        """Instants of the changes that are drawn so far."""
        first = self.to_idle_hz if self._starts_busy else self.to_busy_hz
        return [self._stream.standard_exponential() / first]

    def _extend(self) -> None:
        for wait in self._stream.standard_exponential(DRAWN_AT_ONCE).tolist():
            busy = self._starts_busy != len(self._switch_s) % 2
            rate_hz = self.to_idle_hz if busy else self.to_busy_hz
            # Even an interval that rounds to nothing ends after it has begun.
            later_s = self._switch_s[-1] + wait / rate_hz
            self._switch_s.append(max(later_s, math.nextafter(self._switch_s[-1], math.inf)))
