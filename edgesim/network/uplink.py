"""The uplink of one cell: a band that devices share by fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import simpy

from edgesim.network.adaptation.drawn_repetitions import DrawnRepetitions
from edgesim.network.channel import Channel
from edgesim.network.flows.link import Link, SegmentObserver
from fl.contracts import Array, Grant

SHARE_SLACK = 1e-12  # rounding that an allocator may leave in the sum of shares


class Uplink(Link):
    """The band, shared by fractions.

    Args:
        env: the simulation environment.
        channel: gains of the devices.
        share: ``fixed``, b_k for the whole round; or ``reclaim``, the shares of devices that are
            done go to those that send, in proportion to their own, while those that still compute
            keep theirs reserved.
        on_segment: see `Link`.
        repetitions: of lost blocks as they happen; None: as the rate expects them.

    Raises:
        ValueError: another word for ``share``.
    """

    def __init__(
        self,
        env: simpy.Environment,
        channel: Channel,
        share: str = "fixed",
        on_segment: SegmentObserver | None = None,
        repetitions: DrawnRepetitions | None = None,
    ) -> None:
        super().__init__(env, channel, on_segment)
        if share not in ("fixed", "reclaim"):
            raise ValueError(f"uplink share is {share}; allowed are fixed and reclaim")
        self._changed = env.event() if share == "reclaim" else None
        self._waiting: dict[int, float] = {}
        self._sending: dict[int, float] = {}
        self._freed: dict[int, float] = {}
        self._gain_factor = 1.0
        self.service = channel.services[0]
        self.repetitions = repetitions
        self._drawn: dict[int, tuple[float, float]] = {}  # device -> (factor of its rate, tail)
        self._transmissions: dict[int, float] = {}  # of a block of each upload, on average

    @property
    def reclaims(self) -> bool:
        """True where the band of devices that are done goes to the others."""
        return self._changed is not None

    @property
    def coupled(self) -> bool:
        """True where the time of an upload depends on other devices."""
        return self.reclaims

    @property
    def free_share(self) -> float:
        """What is left of the band beside those who compute or send."""
        return max(1.0 - math.fsum([*self._waiting.values(), *self._sending.values()]), 0.0)

    def pause_s(self, device: int) -> float | None:
        """How long a device stays without a link before it can send, s; None: it has one."""
        return None

    def follow(self) -> None:
        """Let the devices be where they are now, served by whom they are served."""

    def expect(self, power_w: Array | None) -> None:
        """Mean powers [K], W, that the plan of a round expects, where links hear that."""

    def record(self) -> dict[str, Any] | None:
        """What a checkpoint must know of uploads on the way; None: they depend on nobody else."""
        return None

    def park(self) -> None:
        """From now on uploads begin and nothing is sent: a checkpoint is played again."""

    def arrive(self, device: int, waited_s: float = 0.0) -> None:
        """The upload of a device ends now, as it did before the checkpoint.

        Args:
            device: k.
            waited_s: time for which it had no band, s.
        """

    def unpark(self, record: dict[str, Any]) -> None:
        """Go on as it was when `record` was made, at its time ``since_s``."""

    def begin_round(self, grants: Sequence[Grant], others_go_on: bool = False) -> None:
        if not others_go_on:
            self._waiting, self._sending, self._freed, self._gain_factor = {}, {}, {}, 1.0
        in_use = [*self._waiting.values(), *self._sending.values()]
        check_shares([*in_use, *(grant.share for grant in grants)])
        self._waiting |= {grant.device: grant.share for grant in grants}

    def release(self, device: int) -> None:
        held = self._waiting.pop(device, None)
        held = self._sending.pop(device, None) if held is None else held
        if held is not None:
            self._freed[device] = held
            self._redistribute()

    def _begin(self, grant: Grant, bits: float) -> None:
        self._waiting.pop(grant.device, None)
        self._sending[grant.device] = grant.share
        self._redistribute()
        if self.repetitions is not None or self.channel.estimate is not None:
            self._repeat(grant, bits)

    def _repeat(self, grant: Grant, bits: float) -> None:
        """Note how often blocks of an upload that begins now are sent."""
        gain = float(self.channel.gains(self.env.now)[grant.device])
        share = self._sending[grant.device] * self._gain_factor
        self._drawn[grant.device] = self._draw(grant, share, bits, gain)

    def _draw(self, grant: Grant, share: float, bits: float, gain: float) -> tuple[float, float]:
        """(factor of the rate, time after the last bit, s) of an upload that begins now."""
        device, used_hz = grant.device, share * self.channel.bandwidth_hz
        sent = (self.env.now, device, used_hz, grant.power_w, gain)
        snr, known = map(float, self.channel.true_and_known_snr(*sent))
        factor, tail_s = 1.0, 0.0
        if self.repetitions is not None:
            by = None if self.channel.estimate is None else known
            drawn = (device, self.env.now, snr, used_hz, bits, by)
            factor, tail_s = self.repetitions.draw(*drawn)
        if self.channel.estimate is not None:
            mean = self.channel.estimate.schemes.mean_transmissions(snr, known)
            self._transmissions[device] = mean / factor
        return factor, tail_s

    def _taken(self, device: int) -> float:
        return self._transmissions.pop(device, math.nan)

    def _tail_s(self, grant: Grant) -> float:
        return self._drawn.pop(grant.device, (1.0, 0.0))[1]

    def _redistribute(self) -> None:
        """Give the freed band to the devices that send, and wake them."""
        if self._changed is None:
            return
        sending = math.fsum(self._sending.values())
        factor = 1.0 + math.fsum(self._freed.values()) / sending if sending > 0.0 else 1.0
        if factor != self._gain_factor:
            self._gain_factor = factor
            self._changed.succeed()
            self._changed = self.env.event()

    def _share_and_rate(self, grant: Grant) -> tuple[float, float]:
        share = self._sending[grant.device] * self._gain_factor
        gain = self.channel.gains(self.env.now)[grant.device]
        sent = (self.env.now, grant.device, share, grant.power_w, gain)
        rate_bps = float(self.channel.flow_bps(*sent))
        if grant.device in self._drawn:
            rate_bps *= self._drawn[grant.device][0]
        return share, rate_bps


def check_shares(shares: Sequence[float]) -> None:
    """Refuse shares of the band that are negative, or more than all of it."""
    total = math.fsum(shares)
    if not total <= 1.0 + SHARE_SLACK or min(shares, default=0.0) < 0.0:
        raise ValueError(
            f"the band shares sum to {total!r}; they must be at least 0 and sum to at most 1"
        )
