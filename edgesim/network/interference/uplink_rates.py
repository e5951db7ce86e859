"""Uplink rates of devices that send into each other's sectors.

SINR_k = p_k g_ks / (b_k W (N0 + I_s)), I_s = sum over senders j of other sectors of p_j g_js / W:
the mean over the band of what they send into it, in W/Hz; how wide each sends cancels out. The rate
is convex in I, so that the mean is a lower bound of what devices get that are placed apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgesim.network.channel import Channel
from edgesim.network.fading.cross_links import CrossLinkFading
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.sector_bands import SectorBands
from fl.contracts import Array


def noise_factor(channel: Channel, density: Any) -> Array:
    """N0 / (N0 + I), by which an interference density I, W/Hz, lowers a gain; any shape."""
    noise = float(channel.noise_w_per_hz or 0.0)
    factor: Array = noise / (noise + np.asarray(density, dtype=float))
    return factor


@dataclass(eq=False)
class UplinkRates:
    """Rates of the uploads of a network.

    Args:
        couplings: gains of every device at every sector.
        channel: gains at the own sector over time, and the rate of a share of the band.
        bands: which share each device holds.
        cross: fading of the links to other sectors; None: they have their mean gains.
        held: interference density [S] that is held, W/Hz; None: that of those who send now.
        power_w: transmit powers [K], W.
        factor: of the rate of each device, for repetitions as they happen [K].
    """

    couplings: Couplings
    channel: Channel
    bands: SectorBands
    cross: CrossLinkFading | None = None
    held: Array | None = None
    power_w: Array = field(init=False)
    factor: Array = field(init=False)

    def __post_init__(self) -> None:
        self.power_w = np.zeros(len(self.couplings))
        self.factor = np.ones(len(self.couplings))

    def interference(self, sending: Array, time_s: float) -> Array:
        """I [S], W/Hz, of the devices that send, bool [K]."""
        power_w = np.where(sending, self.power_w, 0.0) / self.channel.bandwidth_hz
        fading = None if self.cross is None else self.cross.powers(self.channel.block(time_s))
        return self.couplings.interference(power_w, fading)

    def gains(self, sending: Array, time_s: float) -> Array:
        """Gains [K] with which noise alone would do what noise and interference do."""
        gain = self.channel.gains(time_s)  # before the couplings: devices may have moved
        density = self.interference(sending, time_s) if self.held is None else self.held
        return gain * noise_factor(self.channel, density)[self.couplings.serving]

    def __call__(self, sending: Array, time_s: float) -> tuple[Array, Array, Array]:
        """(rates, bit/s; log2(1 + SINR); shares) of all devices [K]; of those that send."""
        gain, share = self.gains(sending, time_s), self.bands.shares()
        everybody = np.arange(len(self.couplings))
        rate_bps = self.channel.flow_bps(time_s, everybody, share, self.power_w, gain)
        noise_w = self.channel.band_noise_w * np.where(share > 0.0, share, 1.0)
        ratio = np.where(share > 0.0, gain * self.power_w / noise_w, 0.0)
        return self.factor * rate_bps, np.log1p(ratio) / np.log(2.0), share
