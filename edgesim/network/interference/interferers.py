"""Interferers of the uploads of a network: those that send, or others that are held."""

from __future__ import annotations

import math

import numpy as np

from edgesim.network.channel import step_of
from edgesim.network.interference.uplink_rates import UplinkRates
from edgesim.scenario.cells.interference_schema import (
    EVENTS,
    FULL,
    LOAD,
    NONE,
    REFRESH,
    RESOLVED,
)
from fl.contracts import Array

MODES = (NONE, FULL, LOAD, REFRESH, EVENTS, RESOLVED)


class Interferers:
    """Holds the interference of rates where it is not that of the devices which send.

    Args:
        mode: ``none``: nobody interferes. ``full``: everybody with a grant, all the time. ``load``:
            what the plan of the round expects. ``refresh``: who was sending at the last multiple of
            ``refresh_s``. ``events``: who is sending. ``resolved``: who is sending in the same
            resource blocks.
        refresh_s: of ``refresh``, s.
        rates: of the uploads.

    Attributes:
        expected: mean powers of all devices that the plan of the round expects [K], W; None: none.

    Raises:
        ValueError: another word for ``mode``.
    """

    def __init__(self, mode: str, refresh_s: float, rates: UplinkRates) -> None:
        if mode not in MODES:
            raise ValueError(f"interference is {mode}; allowed are {', '.join(MODES)}")
        self.mode, self.refresh_s, self.rates = mode, refresh_s, rates
        self.expected: Array | None = None
        self._looked = -1  # number of the last multiple of refresh_s that was looked at
        self._was_sending = False  # anybody, when rates were taken last

    def begin_round(self, asked: Array, time_s: float, others_go_on: bool) -> None:
        """Hold who interferes from the start of a round, but where others go on with theirs.

        Args:
            asked: who has a grant, bool [K].
            time_s: simulated time, s.
            others_go_on: with grants of rounds that began before, whether they send or not.
        """
        if self.mode != FULL and others_go_on:
            return
        if self.mode == FULL:
            self.rates.hold_senders(asked, time_s)
        elif self.mode == LOAD and self.expected is not None:
            self.rates.hold(self.expected, None)
        elif self.mode != EVENTS:
            self.rates.hold(np.zeros(len(asked)), None)
        self._looked, self._was_sending = -1, False

    def look(self, sending: Array, time_s: float) -> None:
        """With ``refresh``, see who sends, bool [K], at each multiple of the time."""
        if self.mode != REFRESH:
            return
        number = step_of(time_s, self.refresh_s)
        if number != self._looked:
            # The timer rings at a multiple while anybody sends: else nobody was sending at it.
            at_it = self._was_sending or number * self.refresh_s == time_s
            self.rates.hold_senders(sending & at_it, time_s)
            self._looked = number
        self._was_sending = bool(sending.any())

    def next_look_s(self, time_s: float) -> float:
        """When `look` changes who interferes next, s; inf: never."""
        if self.mode != REFRESH:
            return math.inf
        next_s = (step_of(time_s, self.refresh_s) + 1) * self.refresh_s
        return max(next_s, math.nextafter(time_s, math.inf))
