"""Uplink rates of devices that send into each other's sectors.

SINR_k = p_k g_ks / (b_k W (N0 + I_s)), I_s = sum over senders j of other sectors of p_j g_js / W:
the mean over the band of what they send into it, in W/Hz; how wide each sends cancels out. The rate
is convex in I, so that the mean is a lower bound of what devices get that are placed apart.

With a resource grid I_s is that of each block r, I_s[r] = sum over j of p_j g_js / (b_j W) x the
part of r that j holds, and SINR_k is the ratio whose log2(1 + SINR) is the mean over the blocks
that k holds: by mutual information, as for parts of a band that fade apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgesim.network.channel import Channel
from edgesim.network.fading.selective import effective_snr
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.resource_grid import Pieces, ResourceGrid
from edgesim.network.interference.sector_bands import SectorBands
from edgesim.network.interference.sector_channel import SectorChannel
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
        channel: gains at the own sector over time, fading of the links to others, and the rate
            of a share of the band.
        bands: which share each device holds.
        grid: where the shares lie in the band; None: anywhere, with the mean interference.
        density: that of the rates which were computed last, its mean over the band [S], W/Hz.
        power_w: transmit powers [K], W.
        factor: of the rate of each device, for repetitions as they happen [K].
    """

    couplings: Couplings
    channel: SectorChannel
    bands: SectorBands
    grid: ResourceGrid | None = None
    density: Array = field(init=False)
    power_w: Array = field(init=False)
    factor: Array = field(init=False)

    def __post_init__(self) -> None:
        self.density = np.zeros(self.couplings.sectors)
        self.power_w = np.zeros(len(self.couplings))
        self.factor = np.ones(len(self.couplings))
        self._heard: tuple[Array, Array | None] | None = None  # powers/B [K], fading; see `hold`

    def hold(self, power_w: Array, fading: Array | None) -> None:
        """Hear these devices all the time, whoever sends, from where they are and are served.

        Args:
            power_w: their powers, W; 0: not heard [K].
            fading: |h|^2 of the links [K, S]; None: their mean, 1.
        """
        self._heard = power_w / self.channel.bandwidth_hz, fading

    def hold_senders(self, sending: Array, time_s: float) -> None:
        """`hold` the devices that send, bool [K], with the fading of an instant."""
        self.hold(np.where(sending, self.power_w, 0.0), self.channel.cross_power(time_s))

    def interference(self, sending: Array, time_s: float) -> Array:
        """I [S], W/Hz, of the devices that are held, or else of those that send, bool [K]."""
        if self._heard is not None:
            return self.couplings.interference(*self._heard)
        density_w_per_hz = np.where(sending, self.power_w, 0.0) / self.channel.bandwidth_hz
        return self.couplings.interference(density_w_per_hz, self.channel.cross_power(time_s))

    def gains(self, sending: Array, time_s: float) -> Array:
        """Gains [K] with which noise alone would do what noise and interference do."""
        return self._gains(sending, time_s)[0]

    def _gains(self, sending: Array, time_s: float) -> tuple[Array, Array]:
        """(`gains`; the same as far as a receiver without loss meets interference) [K]."""
        gain = self.channel.gains(time_s)  # before the couplings: devices may have moved
        if self.grid is not None:
            uses, without_loss = self._factors_by_block(self.grid, gain, sending, time_s)
            return gain * uses, gain * without_loss
        self.density = self.interference(sending, time_s)
        gain = gain * noise_factor(self.channel, self.density)[self.couplings.serving]
        return gain, gain

    def _factors_by_block(
        self, grid: ResourceGrid, gain: Array, sending: Array, time_s: float
    ) -> tuple[Array, Array]:
        """By what interference in the blocks that each device holds lowers its gain [K].

        The mean over the blocks depends on the ratios: at the receiver, and at one without loss.
        """
        share = self.bands.shares()
        pieces = grid.pieces(share)
        used_hz = np.where(share > 0.0, share, 1.0) * self.channel.bandwidth_hz
        density = np.where(share > 0.0, self.power_w / used_hz, 0.0)  # that it sends with, W/Hz
        heard = self._by_block(grid.blocks, pieces, np.where(sending, density, 0.0), time_s)
        self.density = heard.sum(axis=0) / grid.blocks
        factor = noise_factor(self.channel, heard)[
            pieces.block, self.couplings.serving[pieces.device]
        ]
        alone = gain * density / float(self.channel.noise_w_per_hz or 0.0)  # SNR
        at_receiver = mean_factor(alone, pieces, factor)
        if self.channel.loss == 1.0:
            return at_receiver, at_receiver
        return at_receiver, mean_factor(alone * self.channel.loss, pieces, factor)

    def _by_block(self, blocks: int, pieces: Pieces, density: Array, time_s: float) -> Array:
        """I [N_RB, S], W/Hz, of devices that send with these densities [K], W/Hz."""
        heard = np.zeros((blocks, self.couplings.sectors))
        fading = self.channel.cross_power(time_s)
        loud = density[pieces.device] > 0.0
        k, block = pieces.device[loud], pieces.block[loud]
        cross = self.couplings.cross if fading is None else self.couplings.cross * fading
        arriving = cross[k] * (density[k] * pieces.width[loud])[:, None]
        first = np.flatnonzero(np.diff(block, prepend=-1))  # pieces come by block
        if len(first):
            heard[block[first]] = np.add.reduceat(arriving, first, axis=0)
        return heard

    def __call__(self, sending: Array, time_s: float) -> tuple[Array, Array, Array]:
        """(rates, bit/s; log2(1 + SINR); shares) of all devices [K]; of those that send.

        The ratio is that of the powers: what the receiver loses is in the gains and rates only.
        Over a band that fades apart, as over blocks, it is that of the mean.
        """
        (gain, without_loss), share = self._gains(sending, time_s), self.bands.shares()
        everybody = np.arange(len(self.couplings))
        rate_bps = self.channel.flow_bps(time_s, everybody, share, self.power_w, gain)
        noise_w = self.channel.band_noise_w * np.where(share > 0.0, share, 1.0)
        ratio = np.where(share > 0.0, without_loss * self.power_w / noise_w, 0.0)
        ratio = ratio * self.channel.loss
        if (relative := self.channel.relative_powers(time_s, everybody)) is not None:
            ratio = effective_snr(ratio, relative)
        return self.factor * rate_bps, np.log1p(ratio) / np.log(2.0), share


def mean_factor(alone: Array, pieces: Pieces, factor: Array) -> Array:
    """By what factors of the ratio in pieces of the band lower that of each device [K].

    That of the ratio whose log2(1 + SINR) is the mean over the pieces.

    Args:
        alone: SNR of each device [K].
        pieces: of blocks that they hold.
        factor: of each piece.
    """
    k, count = pieces.device, len(alone)
    bits = np.bincount(k, pieces.width * np.log1p(alone[k] * factor), count)
    width = np.bincount(k, pieces.width, count)
    together = np.expm1(np.divide(bits, width, out=np.zeros(count), where=width > 0.0))
    return np.divide(together, alone, out=np.ones(count), where=alone > 0.0)
