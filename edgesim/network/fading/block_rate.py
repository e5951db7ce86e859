"""Density of the spectral efficiency of one block of fading, and of the mean over several.

The mean over N independent blocks is a sum of N equal distributions: their densities are convolved
on a grid for N < 32, and beyond that the Cornish-Fisher expansion to the fourth cumulant is used,
or, where few blocks are below the largest value of a law, the distribution of what these lack.
(The normal distribution alone is 0.04 to 0.7 % too optimistic at a 5 % quantile for N from 5 to
20.) Everything here is computed at whole decibels of the ratio and kept.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy  # its parts are loaded on first use

from edgesim.network.fading.power_distribution import power_below, power_quantile
from fl.contracts import Array
from solvers.rates import EfficiencyLaw

BINS = 4096  # of the density of one block
NEGLIGIBLE = 1e-16  # probability of the powers beyond the grid
MANY = 32  # blocks from which the Cornish-Fisher expansion is exact enough
FEW_SKEW = 0.5  # of skewness and excess of a mean: beyond, the expansion is not trusted
LOGITS = np.linspace(-14.0, 14.0, 113)  # of the probabilities at which quantiles are inverted
FEW_WEAK = 8  # blocks that lack all, of which as many bits lack as of all blocks, on average
COARSE = 8  # bins of one block for a bin of what lacks
NORMAL_QUANTILES = np.linspace(-9.0, 9.0, 1801)  # at which the expansion is inverted


class DrawnBlocks(Hashable, Protocol):
    """What blocks carry where schemes are not chosen by the true ratio."""

    def efficiencies(self, snr: float, k_factor: float) -> Array:
        """Spectral efficiencies of equally likely blocks at a mean ratio, linear, bit/s/Hz."""


def efficiency_at(snr: Array, law: EfficiencyLaw | None = None) -> Array:
    """eta(g), bit/s/Hz, same shape."""
    return np.log1p(snr) / np.log(2.0) if law is None else law.efficiency(snr)


def snr_at(efficiency: Array, law: EfficiencyLaw | None = None) -> Array:
    """The least g with eta(g) >= efficiency, same shape; inf where there is none."""
    return np.expm1(efficiency * np.log(2.0)) if law is None else law.snr_for_bits(efficiency)


class Cumulants(NamedTuple):
    """First cumulants of the rate of one block, which give the mean over many.

    Args:
        mean: bit/s/Hz.
        variance: (bit/s/Hz)^2.
        third: (bit/s/Hz)^3.
        fourth: (bit/s/Hz)^4.
    """

    mean: float
    variance: float
    third: float
    fourth: float

    def near_normal(self, blocks: int) -> bool:
        """Whether the mean is so near to a normal distribution that `quantile` holds."""
        _, variance, third, fourth = self
        if variance <= 0.0:
            return False
        skewness, excess = third / variance**1.5 / blocks**0.5, fourth / variance**2 / blocks
        return max(abs(skewness), abs(excess)) <= FEW_SKEW

    def quantile(self, z: Any, blocks: int) -> Any:
        """That of the mean over the blocks at the normal quantile z: Cornish and Fisher, 1938."""
        mean, variance, third, fourth = self
        deviation = np.sqrt(variance / blocks)
        skewness = third / variance**1.5 / np.sqrt(blocks)
        excess = fourth / variance**2 / blocks
        correction = (
            skewness * (z**2 - 1.0) / 6.0
            + excess * (z**3 - 3.0 * z) / 24.0
            - skewness**2 * (2.0 * z**3 - 5.0 * z) / 36.0
        )
        return mean + deviation * (z + correction)

    def below(self, efficiency: Array, blocks: int) -> Array:
        """P(mean over the blocks < efficiency) [S]."""
        quantiles = self.quantile(NORMAL_QUANTILES, blocks)
        return np.interp(
            efficiency, quantiles, scipy.special.ndtr(NORMAL_QUANTILES), left=0.0, right=1.0
        )


@dataclass(frozen=True, eq=False)
class BlockRate:
    """Density of log2(1 + snr |h|^2) of one block on a grid.

    Args:
        width: of a bin, bit/s/Hz.
        density: probability of each bin [BINS]; bin i is at (i + 1/2) width.
        most: what a block never exceeds.
    """

    width: float
    density: Array
    most: float = math.inf

    @cached_property
    def cumulants(self) -> Cumulants:
        """Those of one block."""
        x = (np.arange(BINS) + 0.5) * self.width
        mean = float(self.density @ x)
        second, third, fourth = (float(self.density @ (x - mean) ** n) for n in (2, 3, 4))
        return Cumulants(mean, second, third, fourth - 3.0 * second**2)

    def quantile(self, probability: float, blocks: int) -> float:
        """What the mean over the blocks is below with this probability."""
        if blocks >= MANY and (self.most == math.inf or self.cumulants.near_normal(blocks)):
            return float(self.cumulants.quantile(float(scipy.special.ndtri(probability)), blocks))
        if blocks >= MANY and blocks * (self.most - self.cumulants.mean) <= FEW_WEAK * self.most:
            edges, below = mostly_at_most(self, blocks)
        else:  # fewer blocks vary more
            edges, below = summed(self, blocks := min(blocks, MANY - 1))
        return min(float(np.interp(probability, below, edges)) / blocks, self.most)

    def below(self, efficiency: Array, blocks: int) -> Array:
        """P(mean over fewer blocks than MANY < efficiency) [S]."""
        edges, below = summed(self, blocks)
        return np.interp(efficiency * blocks, edges, below, left=0.0, right=1.0)


@lru_cache(maxsize=1024)
def block_rate(
    decibel: int,
    k_factor: float,
    law: EfficiencyLaw | None = None,
    drawn: DrawnBlocks | None = None,
) -> BlockRate:
    """The density of one block at a whole number of decibels of snr."""
    snr = 10.0 ** (decibel / 10.0)
    most = float(efficiency_at(snr * power_quantile(1.0 - NEGLIGIBLE, k_factor), law))
    # What a law gives at most has a probability of its own: it is in the middle of the last bin.
    edges = np.linspace(0.0, most if law is None else most * BINS / (BINS - 0.5), BINS + 1)
    if drawn is not None:
        carried = np.minimum(drawn.efficiencies(snr, k_factor), most)
        density = np.histogram(carried, edges)[0] / len(carried)
        return BlockRate(float(edges[1]), density, most)
    below = power_below(snr_at(edges, law) / snr, k_factor)
    below[-1] = 1.0
    return BlockRate(float(edges[1]), np.diff(below), math.inf if law is None else most)


@lru_cache(maxsize=65536)
def block_cumulants(
    decibel: int,
    k_factor: float,
    law: EfficiencyLaw | None = None,
    drawn: DrawnBlocks | None = None,
) -> Cumulants:
    """`BlockRate.cumulants` at a whole number of decibels, kept where densities are too large."""
    return block_rate(decibel, k_factor, law, drawn).cumulants


@lru_cache(maxsize=65536)
def block_quantile(
    decibel: int,
    k_factor: float,
    blocks: int,
    probability: float,
    law: EfficiencyLaw | None = None,
    drawn: DrawnBlocks | None = None,
) -> float:
    """`BlockRate.quantile` at a whole number of decibels."""
    return block_rate(decibel, k_factor, law, drawn).quantile(probability, blocks)


@lru_cache(maxsize=16384)
def block_quantiles(
    decibel: int,
    k_factor: float,
    blocks: int,
    law: EfficiencyLaw | None = None,
    drawn: DrawnBlocks | None = None,
) -> Array:
    """`BlockRate.quantile` at a whole number of decibels, at the probabilities of LOGITS [L]."""
    block = block_rate(decibel, k_factor, law, drawn)
    probabilities = scipy.special.expit(LOGITS).tolist()
    return np.array([block.quantile(each, blocks) for each in probabilities])


@lru_cache(maxsize=1024)
def summed(block: BlockRate, blocks: int) -> tuple[Array, Array]:
    """(efficiencies, probability of being below) of the sum over the blocks, thinned out."""
    size = 1 << int(np.ceil(np.log2(BINS * blocks)))
    density = np.fft.irfft(np.fft.rfft(block.density, size) ** blocks, size)[: BINS * blocks]
    below = np.concatenate([[0.0], np.cumsum(np.maximum(density, 0.0))])
    # The sum of N bin centres has its edges N / 2 - 1 / 2 of a bin further up.
    edges = (np.arange(len(below)) + 0.5 * (blocks - 1)) * block.width
    return _thinned(edges, below)


@lru_cache(maxsize=1024)
def mostly_at_most(block: BlockRate, blocks: int) -> tuple[Array, Array]:
    """`summed` of many blocks of which few are below the largest value: what lacks is summed."""
    lacking = np.append(block.density[::-1], 0.0)  # bin i lacks i widths
    up = np.append(lacking[0], lacking[1:].reshape(-1, COARSE).sum(axis=1))  # rounded upwards
    size = BINS // COARSE * MANY
    density = np.fft.irfft(np.fft.rfft(up, size) ** blocks, size)[::-1]
    below = np.concatenate([[0.0], np.cumsum(np.maximum(density, 0.0))])
    lacks = np.arange(size, -1, -1) - 0.5
    return _thinned(blocks * block.most - lacks * COARSE * block.width, below)


def _thinned(edges: Array, below: Array) -> tuple[Array, Array]:
    """The edges between which there is any probability, at most some thousands."""
    keep = np.flatnonzero((below > 1e-12) & (below < 1.0 - 1e-12))
    if not keep.size:  # all of the probability is in one bin: a law at its largest value
        last = int(np.flatnonzero(below <= 1e-12)[-1])
        keep = np.arange(last, min(last + 2, len(below)))
    keep = keep[:: max(1, len(keep) // 4096)]
    return edges[keep], below[keep]
