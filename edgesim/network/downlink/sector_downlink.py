"""The downlink of sectors: the model by broadcast or to each device, beside sectors that send.

A sector sends with all its power over the whole band until the last of its devices has the model.
Device k of sector s hears SINR_k = P g_ks / (W (N0 + I_k)), I_k = sum of P g_kj / W over the other
sectors j that send. By broadcast all devices of a sector receive at the rate of the one of least
SINR; by unicast those that still receive take turns, each for the same part of the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import simpy

from edgesim.network.channel import Channel
from edgesim.network.downlink.downlink_band import fading_over, heard_over
from edgesim.network.flows.flow_table import FlowTable
from edgesim.network.flows.flow_timer import FlowTimer
from edgesim.network.flows.ideal_downlink import Downlink
from edgesim.network.flows.link import Carrying
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_channel import DisturbedChannel
from edgesim.network.interference.uplink_rates import noise_factor
from edgesim.network.planned_gains import PlannedGains
from edgesim.records.span import Span
from edgesim.scenario.cells.interference_schema import EVENTS, FULL, NONE
from fl.contracts import Array, Grant

BROADCAST, UNICAST = "broadcast", "unicast"


class SectorDownlink(Downlink):
    """The bands of all sectors towards their devices.

    Args:
        env: the simulation environment.
        channel: gains of the devices at their own sectors.
        couplings: gains at all sectors, and who serves whom.
        tx_power_w: P, of every sector, W.
        bandwidth_hz: W, Hz; None: the cell's.
        mode: broadcast or unicast.
        interference: of which sectors a device hears. ``none``; ``full``, all that serve somebody,
            all the time; ``events``, those that are sending.
        planned: of which sectors plans count with: ``none`` or ``full``.
        resource_share: part of W log2(1 + SINR) that carries data.
        uplink: of the network, which moves its devices; None: they stand still.
    """

    def __init__(
        self,
        env: simpy.Environment,
        channel: Channel,
        couplings: Couplings,
        tx_power_w: float,
        bandwidth_hz: float | None = None,
        mode: str = BROADCAST,
        interference: str = EVENTS,
        planned: str = FULL,
        resource_share: float = 1.0,
        uplink: NetworkUplink | None = None,
    ) -> None:
        super().__init__(env, channel)
        for word, known in (
            (mode, (BROADCAST, UNICAST)),
            (interference, (NONE, FULL, EVENTS)),
            (planned, (NONE, FULL)),
        ):
            if word not in known:
                raise ValueError(f"a downlink knows {', '.join(known)}; it is {word}")
        self.couplings, self.tx_power_w = couplings, tx_power_w
        self.bandwidth_hz = channel.bandwidth_hz if bandwidth_hz is None else bandwidth_hz
        self.mode, self.interference, self.planned = mode, interference, planned
        self.resource_share, self.uplink = resource_share, uplink
        self.fading = fading_over(self.bandwidth_hz, channel)
        self.service = channel.services[1]
        table = FlowTable(len(couplings), self._rates_now, self.service)
        self.timer = FlowTimer(env, table, self._next_change_s)
        # Devices of a round that have the model still count as listeners of its broadcast.
        self._listening = np.zeros(len(couplings), dtype=bool)
        self._cut_until_s = np.zeros(len(couplings))  # devices that are being handed over
        if uplink is not None:
            self._cut_until_s, uplink.on_handover = uplink.cut_until_s, self.timer.changed

    def begin_round(self, grants: Sequence[Grant], others_go_on: bool = False) -> None:
        if not others_go_on:
            self._listening[:] = False
        self._listening[[grant.device for grant in grants]] = True

    def carry(self, bits: float, grant: Grant, span: Span | None = None) -> Carrying:
        device, left = grant.device, bits
        self._follow()
        try:
            if bits > 0.0:
                yield self.timer.start(device, bits)
            left = 0.0
        finally:
            left = min(left, self.timer.stop(device))
            if span is not None:
                span.bits = bits - left

    def seconds(self, bits: Array, devices: Array, gains: PlannedGains) -> Array:
        devices = np.asarray(devices, dtype=int)
        bits = np.broadcast_to(np.asarray(bits, dtype=float), devices.shape)
        serving, seconds = self.couplings.serving[devices], np.zeros(len(devices))
        # A promise for a round is divided among all of its devices, not those of a sector.
        among = gains.among or len(devices)
        channel = self._planned_channel(devices)
        gains = replace(gains, channel=channel, downlink=True, among=among)
        planned = self._broadcast_s if self.mode == BROADCAST else self._unicast_s
        for sector in np.unique(serving):
            here = np.flatnonzero(serving == sector)
            seconds[here] = planned(bits[here], devices[here], gains)
        lag_s = 0.0 if self.service is None else self.service.longest_gap_s
        return np.where(bits > 0.0, seconds + lag_s, 0.0)

    def alone_s(self, bits: Array, devices: Array, gains: PlannedGains) -> Array:
        gains = replace(gains, channel=self._planned_channel(devices), downlink=True)
        if self.mode == BROADCAST:
            gains = self._for_each_broadcast(gains)
            gain = gains.lone_listeners(self.env.now, devices, self._snr_per_gain)
            seconds = _ratio(bits, self._rate_bps(gain))
        else:
            seconds = self._turns_s(bits, devices, gains, count=1)
        lag_s = 0.0 if self.service is None else self.service.longest_gap_s
        return np.where(bits > 0.0, seconds + lag_s, 0.0)

    def _for_each_broadcast(self, gains: PlannedGains) -> PlannedGains:
        """What a sector's broadcast is planned with, where they hold for a round of all sectors."""
        if not gains.for_round:
            return gains
        sectors = len(np.unique(self.couplings.serving))
        eps = -2.0 * math.expm1(math.log1p(-gains.late_share / 2.0) / sectors)
        return replace(gains, late_share=eps)

    def _broadcast_s(self, bits: Array, devices: Array, gains: PlannedGains) -> Array:
        """Planned time of a sector's broadcast [S], s."""
        gains = self._for_each_broadcast(gains)
        worst = gains.worst_listener(self.env.now, devices, self._snr_per_gain)
        return _ratio(bits, self._rate_bps(np.full(len(bits), worst)))

    def _unicast_s(self, bits: Array, devices: Array, gains: PlannedGains) -> Array:
        """Planned time until each device of a sector has its bits [S], s, if all start now."""
        return ends_in_turns(self._turns_s(bits, devices, gains, len(devices)))

    def _turns_s(self, bits: Array, devices: Array, gains: PlannedGains, count: int) -> Array:
        """What each of so many devices of a sector takes of the time [S], s."""
        snr_per_gain = np.full(len(devices), self._snr_per_gain)
        eps = gains.probability(count, broadcast=True)
        shortest = np.zeros(len(devices))  # as many blocks as are seen at least: one
        gain = gains.uploads(self.env.now, devices, snr_per_gain, shortest, eps)
        return _ratio(bits, self._rate_bps(gain))

    @property
    def _snr_per_gain(self) -> float:
        """P / (N0 W): signal-to-noise ratio over the whole band of a device with gain 1."""
        return self.tx_power_w / self.channel.noise_over_w(self.bandwidth_hz)

    def _rate_bps(self, gain: Array) -> Array:
        """Rate over the whole band, bit/s, of gains with which noise does what both do."""
        link = self.tx_power_w, gain, self.bandwidth_hz, self.resource_share
        return np.asarray(self.channel.downlink_bps(*link))

    def _factor(self, sends: Array, devices: Array) -> Array:
        """N0 / (N0 + I_k) of devices [S] beside the sectors that send, bool [sectors]."""
        if self.channel.noise_w_per_hz is None:
            return np.ones(len(devices))
        density_w_per_hz = self.tx_power_w / self.bandwidth_hz
        heard = np.einsum("ks,s->k", self.couplings.cross[devices], sends.astype(float))
        return noise_factor(self.channel, density_w_per_hz * heard)

    def _sectors_of(self, devices: Array) -> Array:
        """Which sectors serve one of these devices, bool [sectors]."""
        return np.bincount(self.couplings.serving[devices], minlength=self.couplings.sectors) > 0

    def _planned_channel(self, devices: Array) -> Channel:
        """The channel that plans count with for these devices."""
        heard = heard_over(self.fading, self.channel)
        if self.planned == NONE:
            return heard
        factor = np.ones(len(self.couplings))
        factor[devices] = self._factor(self._sectors_of(np.arange(len(factor))), devices)
        return DisturbedChannel(heard, factor)

    def _rates_now(self, receiving: Array, time_s: float) -> tuple[Array, Array, Array]:
        """(rates, bit/s; log2(1 + SINR); parts of the time) of all devices [K]."""
        self._follow()
        serving, everybody = self.couplings.serving, np.arange(len(receiving))
        heard = heard_over(self.fading, self.channel)
        if self.interference != NONE:
            served = everybody if self.interference == FULL else np.flatnonzero(receiving)
            heard = DisturbedChannel(heard, self._factor(self._sectors_of(served), everybody))
        gain = heard.flat_gains(time_s, self._snr_per_gain, everybody)
        if self.mode == BROADCAST:
            worst = np.full(self.couplings.sectors, np.inf)
            listening = self._listening | receiving
            np.minimum.at(worst, serving[listening], gain[listening])
            gain, part = np.where(listening, worst[serving], 0.0), listening.astype(float)
        else:
            count = np.bincount(serving[receiving], minlength=self.couplings.sectors)
            part = np.where(receiving, 1.0 / np.maximum(count[serving], 1), 0.0)
        rate_bps = np.where(self._cut_until_s > time_s, 0.0, part * self._rate_bps(gain))
        return rate_bps, np.log1p(gain * self._snr_per_gain) / math.log(2.0), part

    def _follow(self) -> None:
        if self.uplink is not None:
            self.uplink.follow()

    def _next_change_s(self, time_s: float) -> float:
        change_s = self.channel.next_change_s(time_s)
        if self.uplink is not None:
            change_s = min(change_s, self.uplink.next_move_s(time_s))
        cut = self._cut_until_s[self._cut_until_s > time_s]
        return min(change_s, float(cut.min(initial=math.inf)))


def ends_in_turns(alone_s: Array) -> Array:
    """When devices are done that start together and take turns, s.

    With times in ascending order the i-th needs what it shares with all, then with those that take
    longer: processor sharing.

    Args:
        alone_s: what each would need alone, s [S].
    """
    order = np.argsort(alone_s, kind="stable")
    sharing = np.arange(len(alone_s), 0, -1)
    alone_s = alone_s[order]
    with np.errstate(invalid="ignore"):
        ends = np.cumsum(
            np.where(alone_s < np.inf, np.diff(alone_s, prepend=0.0), np.inf) * sharing
        )
    found = np.empty(len(alone_s))
    found[order] = ends
    return found


def _ratio(bits: Array, rate_bps: Array) -> Array:
    """Seconds [S]; inf where nothing is carried."""
    return np.divide(bits, rate_bps, out=np.full(len(bits), np.inf), where=rate_bps > 0.0)
