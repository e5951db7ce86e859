"""Bits that flow at rates which all change together: integrated exactly from change to change."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from edgesim.network.flows.link import SegmentObserver
from edgesim.network.tdd_service import TddService
from fl.contracts import Array

Rates = Callable[[Array, float], tuple[Array, Array, Array]]
# (who sends, bool [K]; time, s) -> (rate, bit/s [K]; log2(1 + SINR) [K]; share of the band [K])


class FlowTable:
    """The flows of K devices, each of at most one; arrays [K].

    A flow is known by the bits that were left when its rate last changed: between changes they fall
    on a straight line, and when it ends is computed once.

    Args:
        count: K.
        rates: of those that send, at an instant.
        service: when the links may send; None: always, at the mean rate.
        on_segment: see `Link`.
    """

    def __init__(
        self,
        count: int,
        rates: Rates,
        service: TddService | None = None,
        on_segment: SegmentObserver | None = None,
    ) -> None:
        self.rates, self.service, self.on_segment = rates, service, on_segment
        self.active = np.zeros(count, dtype=bool)
        self.left, self.since_s = np.zeros(count), np.zeros(count)  # bit, and since when, s
        self.rate_bps, self.efficiency = np.zeros(count), np.zeros(count)
        self.share = np.zeros(count)
        self.finish_s = np.full(count, math.inf)
        self.served_s = np.zeros(count)  # time for which each flow was served in a band, s
        self.carried = np.zeros(count)  # its spectral efficiency integrated over that time, bit/Hz
        self.waited_s = np.zeros(count)  # time for which each flow had no band, s
        self.waited_air_s = np.zeros(count)  # of it in the link's slots, with a service

    def begin(self, device: int, bits: float, now_s: float) -> None:
        """A flow starts; its rate is known after `settle`."""
        self.active[device], self.left[device], self.since_s[device] = True, bits, now_s
        self.rate_bps[device] = self.efficiency[device] = self.share[device] = 0.0
        self.served_s[device] = self.carried[device] = 0.0
        self.waited_s[device] = self.waited_air_s[device] = 0.0
        self.finish_s[device] = math.inf

    def end(self, device: int, now_s: float) -> float:
        """A flow ends; the bits that are left of it."""
        self._count(np.array([device]), now_s)
        self.active[device] = False
        self.rate_bps[device] = self.efficiency[device] = 0.0
        self.finish_s[device] = math.inf
        return float(self.left[device])

    def mean_ratio(self, device: int) -> float:
        """Ratio of signal to interference and noise of a flow that has ended; nan: none.

        Linear, that of the mean spectral efficiency: 2^E[log2(1 + SINR)] - 1.
        """
        served_s = float(self.served_s[device])
        mean = float(self.carried[device]) / served_s if served_s > 0.0 else math.nan
        return math.expm1(mean * math.log(2.0))

    def settle(self, now_s: float) -> None:
        """Take the rates that hold from now on, for whoever sends now."""
        rate_bps, efficiency, share = self.rates(self.active, now_s)
        other = (rate_bps != self.rate_bps) | (efficiency != self.efficiency)
        # Who has a band over which nothing gets through does not wait for one.
        other |= (share > 0.0) != (self.share > 0.0)
        changed = np.flatnonzero(self.active & other)
        self._count(changed, now_s)
        self.rate_bps[changed] = rate_bps[changed]
        self.efficiency[changed], self.share[changed] = efficiency[changed], share[changed]
        with np.errstate(divide="ignore", invalid="ignore"):
            needed_s = self.left[changed] / self.rate_bps[changed]
        needed_s[self.left[changed] <= 0.0] = 0.0
        if self.service is not None:
            self.finish_s[changed] = self.service.finishes_s(now_s, needed_s)
        else:
            self.finish_s[changed] = now_s + needed_s

    def _count(self, flows: Array, now_s: float) -> None:
        """Count what these flows carried since their rates changed last."""
        if self.on_segment is not None:
            self._report(flows, now_s, self.on_segment)
        spent_s = now_s - self.since_s[flows]
        self.waited_s[flows] += np.where(self.share[flows] > 0.0, 0.0, spent_s)
        if self.service is not None:
            for k in flows[self.share[flows] <= 0.0].tolist():
                self.waited_air_s[k] += self.service.air_s(float(self.since_s[k]), now_s)
            spent_s = self.service.served_each_s(self.since_s[flows], now_s)
        # Rate x time rounds: a flow ends when its time has come, not where it reaches 0.
        self.left[flows] = np.maximum(self.left[flows] - self.rate_bps[flows] * spent_s, 0.0)
        self.served_s[flows] += np.where(self.share[flows] > 0.0, spent_s, 0.0)
        self.carried[flows] += self.efficiency[flows] * spent_s
        self.since_s[flows] = now_s

    def _report(self, flows: Array, now_s: float, on_segment: SegmentObserver) -> None:
        """Report the stretches of some flows that end now."""
        for k in flows.tolist():
            start_s, rate_bps = float(self.since_s[k]), float(self.rate_bps[k])
            spent_s = now_s - start_s
            if self.service is not None:
                spent_s = self.service.served_s(start_s, now_s)
            if now_s > start_s:
                sent = min(rate_bps * spent_s, float(self.left[k]))
                on_segment(k, start_s, now_s, float(self.share[k]), rate_bps, sent)

    def next_finish(self) -> tuple[float, Array]:
        """(when flows finish next at these rates, s; which do, in device order); inf: none."""
        least_s = float(self.finish_s.min(initial=math.inf))
        if math.isinf(least_s):
            return math.inf, np.empty(0, dtype=int)
        return least_s, np.flatnonzero(self.finish_s <= least_s)

    def stalled(self) -> Array:
        """Devices whose bits wait for a rate of 0."""
        return np.flatnonzero(self.active & (self.rate_bps <= 0.0) & (self.left > 0.0))
