"""Distribution of the spectral efficiency eta(snr |h|^2), and of its mean over N blocks.

eta(g) is log2(1 + g), or the law of link adaptation.

Over one block everything has a closed form in the distribution of |h|^2. The mean over N
independent blocks is a sum of N equal distributions: their densities are convolved on a grid for
N < 32, and beyond that the Cornish-Fisher expansion to the fourth cumulant is used. (The normal
distribution alone is 0.04 to 0.7 % too optimistic at a 5 % quantile for N from 5 to 20.)

The convolution is done at whole decibels of snr and interpolated between them by a cubic, because
the devices of a cell have as many ratios as there are devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy  # its parts are loaded on first use

from edgesim.network.fading.power_distribution import RAYLEIGH, power_below, power_quantile
from fl.contracts import Array
from solvers.rates import EfficiencyLaw

BINS = 4096  # of the density of one block
NEGLIGIBLE = 1e-16  # probability of the powers beyond the grid
MANY = 32  # blocks from which the Cornish-Fisher expansion is exact enough
FEW_SKEW = 0.5  # of skewness and excess of a mean: beyond, the expansion is not trusted
LOGITS = np.linspace(-14.0, 14.0, 113)  # of the probabilities at which quantiles are inverted
CHUNK = 1000  # devices whose quantiles are held at once
NORMAL_QUANTILES = np.linspace(-9.0, 9.0, 1801)  # at which the expansion is inverted
LOWEST_DB, HIGHEST_DB = -60, 150  # of the ratios whose distributions are computed


class DrawnBlocks(Hashable, Protocol):
    """What blocks carry where schemes are not chosen by the true ratio."""

    def efficiencies(self, snr: float, k_factor: float) -> Array:
        """Spectral efficiencies of equally likely blocks at a mean ratio, linear, bit/s/Hz."""


@dataclass(frozen=True, eq=False)
class RateDistribution:
    """Mean over ``blocks`` independent blocks of eta(snr |h|^2), bit/s/Hz.

    Args:
        blocks: N, at least 1.
        k_factor: K of the fading, linear; 0 is Rayleigh.
        law: eta; None: log2(1 + g).
        drawn: what a block carries instead of eta(snr |h|^2), which is its largest value.
    """

    blocks: int = 1
    k_factor: float = RAYLEIGH
    law: EfficiencyLaw | None = None
    drawn: DrawnBlocks | None = None

    def mean(self, snr: Any) -> Array:
        """Ergodic spectral efficiency, shape of ``snr``.

        For Rayleigh fading e^(1/snr) E1(1/snr) / ln 2: Alouini and Goldsmith, IEEE Transactions on
        Vehicular Technology 1999, eq. (34).
        """
        snr = np.asarray(snr, dtype=float)
        if self.k_factor == RAYLEIGH and self.law is None:
            with np.errstate(divide="ignore"):
                inverse = np.where(snr > 0.0, 1.0 / snr, np.inf)
            # U(1, 1, x) = e^x E1(x), which does not overflow
            return np.where(snr > 1e-300, scipy.special.hyperu(1.0, 1.0, inverse), 0.0) / np.log(
                2.0
            )
        law = (self.k_factor, self.law, self.drawn)
        return self._interpolated(snr, lambda decibel: block_cumulants(decibel, *law).mean)

    def quantile(self, probability: float, snr: Any) -> Array:
        """What the mean over the blocks is below with this probability, shape of ``snr``."""
        snr = np.asarray(snr, dtype=float)
        if self.blocks == 1 and self.drawn is None:
            return efficiency_at(snr * power_quantile(probability, self.k_factor), self.law)
        law = (self.k_factor, self.blocks, float(probability), self.law, self.drawn)
        return self._interpolated(snr, lambda decibel: block_quantile(decibel, *law))

    def below(self, efficiency: Any, snr: Any) -> Array:
        """P(mean over the blocks < efficiency), of arrays of one shape."""
        efficiency, snr = np.broadcast_arrays(
            np.asarray(efficiency, dtype=float), np.asarray(snr, dtype=float)
        )
        if self.blocks == 1 and self.drawn is None:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                power = snr_at(efficiency, self.law) / snr
            return np.where(efficiency <= 0.0, 0.0, power_below(power, self.k_factor))
        if self.law is not None:
            return self._below_by_quantiles(efficiency, snr)
        decibels, weights = cubic_weights(snr)
        share, result = efficiency / np.maximum(self.mean(snr), 1e-300), np.zeros(snr.shape)
        for decibel in np.unique(decibels):
            at = decibels == decibel
            # the same share of the mean at the neighbouring ratio
            kind, here = (int(decibel), self.k_factor), np.any(at, axis=-1)
            cumulants = block_cumulants(*kind)
            efficiencies = share[here] * cumulants.mean
            if self.blocks >= MANY:
                value = cumulants.below(efficiencies, self.blocks)
            else:
                value = block_rate(*kind).below(efficiencies, self.blocks)
            result[here] += (weights[here] * at[here]).sum(axis=-1) * value
        return np.clip(np.where(efficiency <= 0.0, 0.0, result), 0.0, 1.0)

    def _below_by_quantiles(self, efficiency: Array, snr: Array) -> Array:
        """The inverse of the quantiles, which may jump where a law is at its largest value."""
        kind = (self.k_factor, self.blocks, self.law, self.drawn)
        logit = np.empty(snr.size)
        for first in range(0, snr.size, CHUNK):
            here = slice(first, first + CHUNK)
            quantiles = self._interpolated(
                snr.ravel()[here], lambda decibel: block_quantiles(decibel, *kind)
            )
            rising = np.maximum.accumulate(quantiles, axis=0)
            logit[here] = logit_at(efficiency.ravel()[here], rising)
        probability = scipy.special.expit(logit.reshape(efficiency.shape))
        return np.where(efficiency <= 0.0, 0.0, probability)

    def _interpolated(self, snr: Array, value: Callable[[int], float | Array]) -> Array:
        """A positive function of whole decibels between those of ``snr``, or L of them [L, ...]."""
        decibels, weights = cubic_weights(snr)
        if not snr.size:
            return np.zeros(snr.shape)
        lowest = int(decibels.min())
        place = decibels.astype(int) - lowest
        asked = np.bincount(place.ravel()) > 0
        known = np.log(np.array([value(lowest + i) for i in np.flatnonzero(asked).tolist()]))
        nodes = known.T[..., (np.cumsum(asked) - 1)[place]]
        found = np.exp((nodes * weights).sum(axis=-1))
        if self.law is not None:  # beside the jump at its largest value a cubic overshoots
            found = np.clip(found, *np.exp(np.moveaxis(nodes[..., 1:3], -1, 0)))
        # eta is linear down there, be it a law that uses a part of the share
        found = found * np.minimum(snr / 10.0 ** ((LOWEST_DB + 1.0) / 10.0), 1.0)
        return np.where(snr > 0.0, found, 0.0)


def logit_at(efficiency: Array, quantiles: Array) -> Array:
    """The logit of LOGITS, interpolated, at which quantiles [L, S] are efficiencies [S]."""
    last, everybody = len(LOGITS) - 1, np.arange(len(efficiency))
    low = (quantiles <= efficiency).sum(axis=0) - 1  # the last of equal ones
    at = np.clip(low, 0, last - 1)
    left, right = quantiles[at, everybody], quantiles[at + 1, everybody]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (LOGITS[at + 1] - LOGITS[at]) / (right - left)
        inside = np.where(left == efficiency, LOGITS[at], slope * (efficiency - left) + LOGITS[at])
    beyond = np.where(efficiency > quantiles[last], np.inf, LOGITS[last])
    return np.where(low < 0, -np.inf, np.where(low == last, beyond, inside))


def efficiency_at(snr: Array, law: EfficiencyLaw | None = None) -> Array:
    """eta(g), bit/s/Hz, same shape."""
    return np.log1p(snr) / np.log(2.0) if law is None else law.efficiency(snr)


def snr_at(efficiency: Array, law: EfficiencyLaw | None = None) -> Array:
    """The least g with eta(g) >= efficiency, same shape; inf where there is none."""
    return np.expm1(efficiency * np.log(2.0)) if law is None else law.snr_for_bits(efficiency)


def cubic_weights(snr: Array) -> tuple[Array, Array]:
    """The four whole decibels [..., 4] around a ratio, and their weights in Lagrange's cubic."""
    with np.errstate(divide="ignore"):
        decibel = np.clip(10.0 * np.log10(snr), LOWEST_DB + 1.0, HIGHEST_DB - 2.0)
    first = np.floor(decibel)
    t = decibel - first
    weights = np.stack(
        [
            -t * (t - 1.0) * (t - 2.0) / 6.0,
            (t + 1.0) * (t - 1.0) * (t - 2.0) / 2.0,
            -(t + 1.0) * t * (t - 2.0) / 2.0,
            (t + 1.0) * t * (t - 1.0) / 6.0,
        ],
        axis=-1,
    )
    return first[..., None] + np.arange(-1, 3), weights


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
        # Fewer blocks vary more: where many are all but constant, that is on the safe side.
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
    keep = np.flatnonzero((below > 1e-12) & (below < 1.0 - 1e-12))
    if not keep.size:  # all of the probability is in one bin: a law at its largest value
        last = int(np.flatnonzero(below <= 1e-12)[-1])
        keep = np.arange(last, min(last + 2, len(below)))
    keep = keep[:: max(1, len(keep) // 4096)]
    return edges[keep], below[keep]
