"""Links carry bits while shares and channel change: fluid flows, integrated exactly from change to change.

``carry`` is a SimPy generator. With a fixed share and a static channel it is one timeout of bits / rate (Liu, (25)).
Where something changes on the way it wakes at each change and never in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
import simpy

from edgesim.network.channel import Channel
from edgesim.records.span import Span
from fl.contracts import Array, Grant

SHARE_SLACK = 1e-12  # rounding that an allocator may leave in the sum of shares
Watcher = Callable[
    [int, float, float, float, float, float], None
]  # device, start_s, end_s, share, rate_bps, bits


class StalledLink(Exception):
    """Bits wait for a rate that will never be more than zero."""


class Link:
    """A fluid link. Subclasses say which share and rate a device has now, and announce changes by ``_changed``."""

    def __init__(
        self, env: simpy.Environment, channel: Channel, on_segment: Watcher | None = None
    ) -> None:
        self.env, self.channel, self.on_segment = env, channel, on_segment
        self._changed: simpy.Event | None = None  # None: shares never change under way

    def round_begins(self, grants: Sequence[Grant]) -> None:
        """Reserve what this round's devices were granted; forget the round before."""

    def release(self, device: int) -> None:
        """The device needs its share no more in this round."""

    def carry(self, bits: float, grant: Grant, span: Span | None = None) -> Generator:
        """Take the time that ``bits`` need; on interruption ``span.bits`` says how many were sent."""
        left = bits
        self._begin(grant)
        try:
            while left > 0.0:
                start_s, (share, rate_bps) = self.env.now, self._now(grant)
                finish, wake = self._wait(left, share, rate_bps, grant)
                try:
                    yield wake
                finally:
                    sent = (
                        left
                        if finish is not None and finish.processed
                        else rate_bps * (self.env.now - start_s)
                    )
                    sent = min(sent, left)
                    left -= sent
                    if self.on_segment and self.env.now > start_s:
                        self.on_segment(grant.device, start_s, self.env.now, share, rate_bps, sent)
        finally:
            if span is not None:
                span.bits = bits - left
            self.release(grant.device)

    def _wait(
        self, bits: float, share: float, rate_bps: float, grant: Grant
    ) -> tuple[simpy.Event | None, simpy.Event]:
        """(the event that means finished, or None; the event to wait for): whatever comes first."""
        needed_s = bits / rate_bps if rate_bps > 0.0 else math.inf
        edge_s = self.channel.next_change_s(self.env.now)
        if math.isinf(needed_s) and (math.isinf(edge_s) or share <= 0.0):
            raise StalledLink(
                f"device {grant.device} has {bits:g} bit to carry but a rate of 0 that will never change"
            )
        finishes = self.env.now + needed_s <= edge_s
        timer = self.env.timeout(needed_s if finishes else edge_s - self.env.now)
        return (
            timer if finishes else None,
            timer if self._changed is None else timer | self._changed,
        )

    def _begin(self, grant: Grant) -> None:
        """The device starts to send."""

    def _now(self, grant: Grant) -> tuple[float, float]:
        """(share, rate in bit/s) of the device at this instant."""
        raise NotImplementedError


class Uplink(Link):
    """The band, shared by fractions. ``fixed``: b_k for the round. ``reclaim``: the shares of those who are done go to
    those who are sending, in proportion to their own; those who still compute keep theirs reserved."""

    def __init__(
        self,
        env: simpy.Environment,
        channel: Channel,
        share: str = "fixed",
        on_segment: Watcher | None = None,
    ) -> None:
        super().__init__(env, channel, on_segment)
        if share not in ("fixed", "reclaim"):
            raise ValueError(f"uplink share is {share}; allowed are fixed and reclaim")
        self._changed = env.event() if share == "reclaim" else None
        self._waiting: dict[int, float] = {}
        self._sending: dict[int, float] = {}
        self._freed: dict[int, float] = {}
        self._gain_factor = 1.0

    @property
    def reclaims(self) -> bool:
        """Does the band of those who are done go to the others?"""
        return self._changed is not None

    def round_begins(self, grants: Sequence[Grant]) -> None:
        check_shares([grant.share for grant in grants])
        self._waiting = {grant.device: grant.share for grant in grants}
        self._sending, self._freed, self._gain_factor = {}, {}, 1.0

    def release(self, device: int) -> None:
        held = self._waiting.pop(device, None)
        held = self._sending.pop(device, None) if held is None else held
        if held is not None:
            self._freed[device] = held
            self._redistribute()

    def _begin(self, grant: Grant) -> None:
        self._waiting.pop(grant.device, None)
        self._sending[grant.device] = grant.share
        self._redistribute()

    def _redistribute(self) -> None:
        """Give the freed band to the senders and wake them."""
        if self._changed is None:
            return
        sending = math.fsum(self._sending.values())
        factor = 1.0 + math.fsum(self._freed.values()) / sending if sending > 0.0 else 1.0
        if factor != self._gain_factor:
            self._gain_factor = factor
            self._changed.succeed()
            self._changed = self.env.event()

    def _now(self, grant: Grant) -> tuple[float, float]:
        share = self._sending[grant.device] * self._gain_factor
        gain = self.channel.gains(self.env.now)[grant.device]
        return share, float(self.channel.rate_bps(share, grant.power_w, gain))


class IdealDownlink(Link):
    """Bits arrive at once and are only counted (Liu: the downlink is free)."""

    def carry(self, bits: float, grant: Grant, span: Span | None = None) -> Generator:
        if span is not None:
            span.bits = bits
        yield from ()

    def seconds(self, bits: Array, devices: Array) -> Array:
        return np.zeros(len(devices))


class BroadcastDownlink(Link):
    """One broadcast at the rate of the worst of the round's listeners, over the same changing channel."""

    def __init__(
        self,
        env: simpy.Environment,
        channel: Channel,
        tx_power_w: float,
        bandwidth_hz: float | None = None,
        on_segment: Watcher | None = None,
    ) -> None:
        super().__init__(env, channel, on_segment)
        self.tx_power_w = tx_power_w
        self.bandwidth_hz = channel.bandwidth_hz if bandwidth_hz is None else bandwidth_hz
        self._listeners = np.empty(0, dtype=int)
        self._cached: tuple[float, float] | None = None  # (valid until, rate)

    def round_begins(self, grants: Sequence[Grant]) -> None:
        self._listeners, self._cached = (
            np.array([grant.device for grant in grants], dtype=int),
            None,
        )

    def seconds(self, bits: Array, devices: Array) -> Array:
        """Time [S] of the broadcast to ``devices`` [S] with the channel as it is now: what a plan can know, s."""
        rate_bps = self._worst_bps(devices)
        return np.where(bits > 0, np.divide(bits, rate_bps) if rate_bps > 0 else np.inf, 0.0)

    def _now(self, grant: Grant) -> tuple[float, float]:
        if self._cached is None or self.env.now >= self._cached[0]:
            self._cached = (
                self.channel.next_change_s(self.env.now),
                self._worst_bps(self._listeners),
            )
        return 1.0, self._cached[1]

    def _worst_bps(self, devices: Array) -> float:
        worst = self.channel.gains(self.env.now)[devices].min(initial=np.inf)
        return float(self.channel.rate_bps(1.0, self.tx_power_w, worst, self.bandwidth_hz))


def check_shares(shares: Sequence[float]) -> None:
    """Refuse shares of the band that are negative, or more than all of it."""
    total = math.fsum(shares)
    if not total <= 1.0 + SHARE_SLACK or min(shares, default=0.0) < 0.0:
        raise ValueError(
            f"the band shares sum to {total!r}; they must be at least 0 and sum to at most 1"
        )


def links(env: simpy.Environment, network: Any, channel: Channel) -> tuple[Uplink, Link]:
    """(uplink, downlink) of a scenario's ``network`` section."""
    uplink = Uplink(env, channel, network.uplink.share)
    if network.downlink.mode == "ideal":
        return uplink, IdealDownlink(env, channel)
    return uplink, BroadcastDownlink(
        env, channel, network.downlink.tx_power_w, network.downlink.bandwidth_hz
    )
