"""The downlink of one cell that sends the model to all devices of a round at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import simpy

from edgesim.network.channel import Channel
from edgesim.network.downlink.downlink_band import fading_over, heard_over
from edgesim.network.flows.ideal_downlink import Downlink
from edgesim.network.planned_gains import PlannedGains
from fl.contracts import Array, Grant


class BroadcastDownlink(Downlink):
    """One broadcast at the rate of the round's worst listener, over the same changing channel.

    Args:
        env: the simulation environment.
        channel: gains of the devices.
        tx_power_w: transmit power of the base station, W.
        bandwidth_hz: band of the broadcast, Hz; None: the cell's.
        resource_share: part of B log2(1 + SNR) that carries data.
    """

    def __init__(
        self,
        env: simpy.Environment,
        channel: Channel,
        tx_power_w: float,
        bandwidth_hz: float | None = None,
        resource_share: float = 1.0,
    ) -> None:
        super().__init__(env, channel)
        self.tx_power_w, self.resource_share = tx_power_w, resource_share
        self.bandwidth_hz = channel.bandwidth_hz if bandwidth_hz is None else bandwidth_hz
        self.fading = fading_over(self.bandwidth_hz, channel)
        self.service = channel.services[1]
        self._listeners = np.empty(0, dtype=int)
        self._cached: tuple[float, float] | None = None  # (valid until, rate)

    def begin_round(self, grants: Sequence[Grant], others_go_on: bool = False) -> None:
        self._listeners = np.array([grant.device for grant in grants], dtype=int)
        self._cached = None

    def seconds(self, bits: Array, devices: Array, gains: PlannedGains) -> Array:
        gains = replace(gains, channel=heard_over(self.fading, gains.channel))
        worst = gains.worst_listener(self.env.now, devices, self._snr_per_gain)
        return self._seconds(bits, np.asarray(worst))

    def alone_s(self, bits: Array, devices: Array, gains: PlannedGains) -> Array:
        gains = replace(gains, channel=heard_over(self.fading, gains.channel))
        heard = gains.lone_listeners(self.env.now, devices, self._snr_per_gain)
        return self._seconds(bits, heard)

    def _seconds(self, bits: Array, gain: Array) -> Array:
        rate_bps = self._rate_bps(gain)
        lag_s = 0.0 if self.service is None else self.service.longest_gap_s
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(bits > 0, np.divide(bits, rate_bps) + lag_s, 0.0)

    def _share_and_rate(self, grant: Grant) -> tuple[float, float]:
        if self._cached is None or self.env.now >= self._cached[0]:
            valid_until_s = self.channel.next_change_s(self.env.now)
            channel = heard_over(self.fading, self.channel)
            heard = channel.flat_gains(self.env.now, self._snr_per_gain, self._listeners)
            self._cached = valid_until_s, float(self._rate_bps(heard.min(initial=np.inf)))
        return 1.0, self._cached[1]

    @property
    def _snr_per_gain(self) -> float:
        """Signal-to-noise ratio of a gain of 1."""
        return self.tx_power_w / self.channel.noise_over_w(self.bandwidth_hz)

    def _rate_bps(self, gain: Array) -> Array:
        link = self.tx_power_w, gain, self.bandwidth_hz, self.resource_share
        return np.asarray(self.channel.downlink_bps(*link))
