"""Which sector serves each device that moves, over time.

Handovers follow from the positions alone: reference signals are measured without fast fading and
without interference. So who is served where is a pure function of (seed, time), whatever is sent
meanwhile, and a resumed run measures again from the start.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgesim.network.channel import start_of, step_of
from edgesim.network.layout.coupling import SectorLinks
from edgesim.network.mobility.a3_event import A3Event, A3Rule
from fl.contracts import Array

LEAST_DB = -200.0  # that is measured: of 46 dBm, 33 dB below the noise of one resource block
ROUNDING = 1e-15  # relative, of a product of a whole number and a step
KEPT = 3  # refreshes whose links are kept: samples are taken ahead of the present


class Handover(NamedTuple):
    """One device goes to another sector, or loses its link and finds another."""

    time_s: float
    device: int
    sector: int
    lost: bool = False


@dataclass(frozen=True)
class LossRule:
    """When a link fails, and the device looks for the strongest sector.

    Args:
        below_db: signal of the serving sector over that of all others, dB.
        after_s: for how long it must be below, s.
    """

    below_db: float = -8.0
    after_s: float = 1.0


class ServingSectors:
    """Gains at all sectors and handovers, in the order of time.

    Gains are taken at whole multiples of a refresh time and held in between; samples are taken at
    whole multiples of the rule's step, and see the gains that are held.

    Args:
        links_at: the links of all devices at an instant, s.
        rule: when a device is handed over.
        refresh_s: time for which gains are held, s; inf: for ever.
        loss: when a link fails; None: never.
    """

    _asked_s: float

    def __init__(
        self,
        links_at: Callable[[float], SectorLinks],
        rule: A3Rule,
        refresh_s: float,
        loss: LossRule | None = None,
    ) -> None:
        self.links_at, self.rule, self.refresh_s, self.loss = links_at, rule, refresh_s, loss
        self._restart()

    def gain(self, time_s: float) -> Array:
        """Coupling gains [K, S] that are held at an instant, linear."""
        return self.links(time_s).coupling

    def links(self, time_s: float) -> SectorLinks:
        """The links that are held at an instant."""
        step = step_of(time_s, self.refresh_s)
        if step not in self._links:
            while len(self._links) >= KEPT:
                del self._links[min(self._links)]
            self._links[step] = self.links_at(start_of(step, self.refresh_s))
        return self._links[step]

    def until(self, time_s: float) -> list[Handover]:
        """The handovers after those of the call before, until an instant, itself included.

        An earlier instant than that of the call before starts over.
        """
        if time_s < self._asked_s:
            self._restart()
        self._asked_s = time_s
        self._look_ahead(time_s)
        found = []
        while self._coming and self._coming[0].time_s <= time_s:
            found.append(self._coming.popleft())
        return found

    def next_change_s(self, time_s: float) -> float:
        """The first instant after that of `until` at which gains or a serving sector change, s."""
        edge_s = (step_of(time_s, self.refresh_s) + 1) * self.refresh_s
        if math.isinf(edge_s):
            return max(edge_s, math.nextafter(time_s, math.inf))
        # A sample at the edge itself needs places that nobody may have: it is taken when due.
        self._look_ahead(math.nextafter(edge_s, 0.0))
        first_s = self._coming[0].time_s if self._coming else edge_s
        return max(min(first_s, edge_s), math.nextafter(time_s, math.inf))

    def _restart(self) -> None:
        """Back to time 0, at which the strongest sector serves."""
        self._asked_s, self._samples = 0.0, 0
        self._links: dict[int, SectorLinks] = {}  # by the number of their refresh
        self.at_start: Array = self.gain(0.0).argmax(axis=1)
        self._event = A3Event(self.rule, self.at_start)
        self._coming: deque[Handover] = deque()
        self._below = np.zeros(len(self.at_start), dtype=int)  # samples in a row

    def _look_ahead(self, time_s: float) -> None:
        """Take the samples until an instant, itself included."""
        if math.isinf(self.refresh_s):
            return  # where nobody moves, nobody is handed over
        sample_s, measured, step = self.rule.sample_s, None, -1
        while (now_s := self._sampled_s(self._samples * sample_s)) <= time_s:
            if step_of(now_s, self.refresh_s) != step or measured is None:
                step, gain = step_of(now_s, self.refresh_s), self.gain(now_s)
                measured = decibel(gain)
                in_all_db = decibel(gain.sum(axis=1))
            if self.loss:
                self._lose(self.loss, now_s, measured, in_all_db)
            devices, sectors = self._event.sample(np.maximum(measured, LEAST_DB))
            self._below[devices] = 0  # another sector serves them: T310 stops
            self._coming += [
                Handover(now_s, k, s)
                for k, s in zip(devices.tolist(), sectors.tolist(), strict=True)
            ]
            self._samples += 1

    def _sampled_s(self, time_s: float) -> float:
        """When a sample is taken, s: where it meets a refresh, after that.

        Products round: 265 x 40 ms is before 106 x 100 ms, and would see the gains before it.
        """
        edge_s = (step_of(time_s, self.refresh_s) + 1) * self.refresh_s
        return edge_s if edge_s - time_s <= ROUNDING * edge_s else time_s

    def _lose(self, rule: LossRule, now_s: float, gain_db: Array, in_all_db: Array) -> None:
        """Devices whose links fail at a sample go on with the strongest sector."""
        serving = self._event.serving
        own_db = gain_db[np.arange(len(serving)), serving]
        # S / (T - S) < g is S / T < g / (1 + g)
        ratio = 10.0 ** (rule.below_db / 10.0)
        bad = own_db - in_all_db < 10.0 * math.log10(ratio / (1.0 + ratio))
        self._below = np.where(bad, self._below + 1, 0)
        lost = np.flatnonzero((self._below - 1) * self.rule.sample_s >= rule.after_s - 1e-9)
        for k in lost.tolist():
            sector = int(gain_db[k].argmax())
            self._event.serve(k, sector)
            self._below[k] = 0
            self._coming.append(Handover(now_s, k, sector, lost=True))


def decibel(gain: Array) -> Array:
    """Gains in dB; -inf becomes a value that can be filtered."""
    return 10.0 * np.log10(np.maximum(gain, 1e-100))
