"""The radio channel: gains over time, and the rate of Liu, eq. (9).

The gain of device k at time t is a pure function of (seed, k, coherence block of t), so that a
resumed run needs no channel state and no device's fading depends on who else is in the cell. With
`edgesim.network.fading.processes.ClarkeFading` a block is a step in which the gain is held.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgesim.network.adaptation.link_adaptation import make_law
from edgesim.network.device import Fleet
from edgesim.network.fading.processes import (
    COHERENCE_RULE,
    BlockFading,
    ClarkeFading,
    Fading,
    doppler_hz,
)
from edgesim.network.propagation.large_scale import LargeScale
from edgesim.network.propagation.path_loss import large_scale_of, linear, path_gains
from edgesim.network.tdd_service import TddService, make_services
from edgesim.scenario.network_schema import NetworkSection
from fl.contracts import Array, Streams
from solvers.rates import EfficiencyLaw


class Channel:
    """The gains of K devices towards one base station, and the rate of a share of the band.

    Args:
        bandwidth_hz: B, the cell's band, Hz.
        path_gain: path loss x shadowing [K], linear.
        noise_w: sigma^2, noise power whatever the share (Liu, eq. (9)), W; or
        noise_w_per_hz: N0, noise density over the used band, W/Hz. Exactly one of the two.
        fading: small-scale fading; None: none.
        links: what path_gain was made of, where it is known.
        resource_share: part of B log2(1 + SNR) that carries data.
        law: spectral efficiency instead of log2(1 + SNR); needs a noise density.
        services: when uplink and downlink may send; None: always, at the mean rate.

    Raises:
        ValueError: both or neither of the noises, or a step of fading that is not positive.
    """

    by_blocks = True  # the gains change at multiples of coherence_s, or never

    def __init__(
        self,
        bandwidth_hz: float,
        path_gain: Any,
        noise_w: float | None = None,
        noise_w_per_hz: float | None = None,
        fading: Fading | None = None,
        links: LargeScale | None = None,
        resource_share: float = 1.0,
        law: EfficiencyLaw | None = None,
        services: tuple[TddService | None, TddService | None] = (None, None),
    ) -> None:
        if (noise_w is None) == (noise_w_per_hz is None):
            raise ValueError(
                "a channel needs a noise power or a noise density, exactly one of the two"
            )
        self.fading, self.links, self.services = fading, links, services
        self.resource_share, self.law = float(resource_share), law
        if law is not None and noise_w_per_hz is None:
            raise ValueError("a law of spectral efficiency needs a noise density")
        self.coherence_s = math.inf if fading is None else float(fading.step_s)
        if not self.coherence_s > 0.0:
            raise ValueError(f"fading needs a positive coherence time; it is {self.coherence_s} s")
        self.bandwidth_hz = float(bandwidth_hz)
        self.path_gain = np.asarray(path_gain, dtype=float)
        self.noise_w, self.noise_w_per_hz = noise_w, noise_w_per_hz
        self._block: int | None = None  # the coherence block that _gain belongs to
        self._gain = self.path_gain

    @property
    def band_noise_w(self) -> float:
        """Noise power over the whole band, W."""
        if self.noise_w_per_hz is None:
            return float(self.noise_w or 0.0)
        return self.noise_w_per_hz * self.bandwidth_hz

    @property
    def upload_lag_s(self) -> float:
        """By how much an upload can end later than at its mean rate, s."""
        uplink = self.services[0]
        return 0.0 if uplink is None else uplink.longest_gap_s

    @property
    def static(self) -> bool:
        """True without fading."""
        return self.fading is None

    def block(self, time_s: float) -> int:
        """Number n of the coherence block with n c <= t < (n + 1) c."""
        # Division rounds, and could put an edge into the block before it: multiply instead.
        n = math.floor(time_s / self.coherence_s)
        if (n + 1) * self.coherence_s <= time_s:
            return n + 1
        return n - 1 if n * self.coherence_s > time_s else n

    def blocks(self, time_s: Array) -> Array:
        """`block` of many times, as floats of the same shape."""
        n = np.floor(time_s / self.coherence_s)
        late, early = (n + 1) * self.coherence_s <= time_s, n * self.coherence_s > time_s
        return np.where(late, n + 1, np.where(early, n - 1, n))

    def next_change_s(self, time_s: float) -> float:
        """When the gains change next, s, always later than ``time_s``; inf without fading."""
        if self.static:
            return math.inf
        return max((self.block(time_s) + 1) * self.coherence_s, math.nextafter(time_s, math.inf))

    def gains(self, time_s: float) -> Array:
        """h of all devices [K] at ``time_s``, linear: path loss x shadowing x fading power."""
        if self.fading is not None:
            n = self.block(time_s)
            if self._block != n:
                self._block, self._gain = n, self.path_gain * self.fading.power(n)
        return self._gain

    def rate_bps(
        self,
        share: Any,
        power_w: Any,
        gain: Any,
        bandwidth_hz: float | None = None,
        resource_share: float | None = None,
    ) -> Any:
        """Uplink rate b B log2(1 + h p / sigma^2): Liu, eq. (9).

        With a noise density the noise grows with the used band: b B log2(1 + h p / (N0 b B)).

        Args:
            share: b, fraction of the band in [0, 1], any shape.
            power_w: p, transmit power, W, same shape.
            gain: h, channel power gain, linear, same shape.
            bandwidth_hz: B of another band than the cell's, Hz.
            resource_share: part of the rate that carries data, of another link than the uplink.

        Returns:
            Rate, bit/s, same shape; 0 where share or gain is 0.
        """
        used_hz = share * (self.bandwidth_hz if bandwidth_hz is None else bandwidth_hz)
        noise_w: Any = self.noise_w
        if self.noise_w_per_hz is not None:
            noise_w = self.noise_w_per_hz * np.where(used_hz > 0.0, used_hz, 1.0)
        if self.law is None:
            rate_bps = used_hz * np.log1p(gain * power_w / noise_w) / math.log(2)
        else:
            rate_bps = used_hz * self.law.efficiency(gain * power_w / noise_w)
        return rate_bps * (self.resource_share if resource_share is None else resource_share)


def make_channel(
    network: NetworkSection, fleet: Fleet, streams: Streams, losses_db: Array | None = None
) -> Channel:
    """The channel of a scenario's ``network`` section.

    Args:
        network: the section.
        fleet: the devices.
        streams: random streams of the run.
        losses_db: path losses from elsewhere [K], dB; None: by the section's model.
    """
    links = large_scale_of(network, fleet, streams, losses_db)
    return Channel(**channel_options(network, links, streams))


def channel_options(network: NetworkSection, links: LargeScale, streams: Streams) -> dict[str, Any]:
    """The arguments of `Channel` by a scenario's ``network`` section, for these links."""
    adaptation = network.adaptation
    loss_db = adaptation.implementation_loss_db if adaptation else 0.0
    return {
        "bandwidth_hz": network.bandwidth_hz,
        "path_gain": path_gains(links) / (linear(loss_db) if loss_db else 1.0),
        "noise_w": network.noise.power_w,
        "noise_w_per_hz": network.noise.density_w_per_hz,
        "fading": make_fading(network, links.k_factor, streams),
        "links": links,
        "resource_share": network.carrier.resource_shares[0] if network.carrier else 1.0,
        "law": make_law(adaptation),
        "services": make_services(network.carrier),
    }


def make_fading(network: NetworkSection, k_factor: Array, streams: Streams) -> Fading | None:
    """The fading of a scenario's ``network`` section; None: none."""
    section = network.channel.fading
    if section.kind == "none":
        return None
    if section.coherence_s is not None:
        return BlockFading(streams, len(k_factor), section.coherence_s, k_factor)
    carrier_hz = network.carrier.frequency_hz if network.carrier else math.nan
    shift_hz = doppler_hz(section.speed_m_per_s or 0.0, carrier_hz)
    if section.process == "clarke":
        return ClarkeFading(streams, len(k_factor), shift_hz, k_factor)
    return BlockFading(streams, len(k_factor), COHERENCE_RULE / shift_hz, k_factor)
