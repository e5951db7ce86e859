"""Links that carry bits while shares and channel change: fluid flows, integrated exactly.

`Link.carry` is a SimPy generator. With a fixed share and a static channel it is one timeout of
bits / rate: Liu, eq. (25). Where share or channel change on the way, it wakes at each change and
never in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Any

import simpy

from edgesim.network.channel import Channel
from edgesim.network.flows.stalled_links import Patience, stalled
from edgesim.network.tdd_service import TddService
from edgesim.records.span import Span
from fl.contracts import Grant

Carrying = Generator[simpy.Event, Any, None]
SegmentObserver = Callable[[int, float, float, float, float, float], None]
# (device, start_s, end_s, share, rate_bps, bits) of each stretch of constant share and rate


class Link:
    """A fluid link. Subclasses say which share and rate a device has at an instant.

    Args:
        env: the simulation environment.
        channel: gains of the devices.
        on_segment: called after each stretch of constant share and rate.
    """

    def __init__(
        self, env: simpy.Environment, channel: Channel, on_segment: SegmentObserver | None = None
    ) -> None:
        self.env, self.channel, self.on_segment = env, channel, on_segment
        self._changed: simpy.Event | None = None  # None: shares never change within a round
        self.service: TddService | None = None  # when it may send; None: always

    def begin_round(self, grants: Sequence[Grant], others_go_on: bool = False) -> None:
        """Take the grants of a round.

        Args:
            grants: of the devices that start.
            others_go_on: the grants in use stay; otherwise those of the round before are forgotten.
        """

    def release(self, device: int) -> None:
        """The device needs its share no longer in this round."""

    def carry(self, bits: float, grant: Grant, span: Span | None = None) -> Carrying:
        """Take the time that ``bits`` need; after an interruption ``span.bits`` is what was sent.

        Raises:
            StalledLinkError: the rate is 0 and will never change, or did not for very long.
        """
        left, patience = bits, Patience()
        self._begin(grant, bits)
        try:
            while left > 0.0:
                start_s, (share, rate_bps) = self.env.now, self._share_and_rate(grant)
                patience.wait(grant.device, left, rate_bps > 0.0, start_s)
                finish, wake = self._wait(left, share, rate_bps, grant)
                try:
                    yield wake
                finally:
                    # Rate x time rounds: where the timer of the last bit rang, all bits are sent.
                    done = finish is not None and finish.processed
                    sent = left if done else min(rate_bps * self._served_s(start_s), left)
                    left -= sent
                    if self.on_segment and self.env.now > start_s:
                        self.on_segment(grant.device, start_s, self.env.now, share, rate_bps, sent)
            tail_s = self._tail_s(grant)
            if tail_s > 0.0:
                yield self.env.timeout(tail_s)
        finally:
            if span is not None:
                span.bits, span.transmissions = bits - left, self._taken(grant.device)
            self.release(grant.device)

    def _wait(
        self, bits: float, share: float, rate_bps: float, grant: Grant
    ) -> tuple[simpy.Event | None, simpy.Event]:
        """(event of the last bit, or None if a change comes first; the event to wait for)."""
        needed_s = bits / rate_bps if rate_bps > 0.0 else math.inf
        if self.service is not None:
            needed_s = self.service.finish_s(self.env.now, needed_s) - self.env.now
        edge_s = self.channel.next_change_s(self.env.now)
        if math.isinf(needed_s) and (math.isinf(edge_s) or share <= 0.0):
            raise stalled(grant.device, bits, share)
        finishes = self.env.now + needed_s <= edge_s
        timer = self.env.timeout(needed_s if finishes else edge_s - self.env.now)
        wake = timer if self._changed is None else timer | self._changed
        return timer if finishes else None, wake

    def _served_s(self, start_s: float) -> float:
        """Time from ``start_s`` until now at the mean rate, s."""
        if self.service is not None:
            return self.service.served_s(start_s, self.env.now)
        return self.env.now - start_s

    def _begin(self, grant: Grant, bits: float) -> None:
        """The device starts to send."""

    def _tail_s(self, grant: Grant) -> float:
        """Time after the last bit until the upload is complete, s."""
        return 0.0

    def _taken(self, device: int) -> float:
        """Mean number of transmissions of a block; nan: not known."""
        return math.nan

    def _share_and_rate(self, grant: Grant) -> tuple[float, float]:
        """(share, rate in bit/s) of the device at this instant."""
        raise NotImplementedError
