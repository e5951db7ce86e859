"""Distribution of the spectral efficiency eta(snr |h|^2), and of its mean over N blocks.

eta(g) is log2(1 + g), or the law of link adaptation.

Over one block everything has a closed form in the distribution of |h|^2. The mean over several is
computed at whole decibels of snr (`block_rate.py`) and interpolated between them by a cubic,
because the devices of a cell have as many ratios as there are devices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # its parts are loaded on first use

from edgesim.network.fading.block_rate import (
    LOGITS,
    MANY,
    DrawnBlocks,
    block_cumulants,
    block_quantile,
    block_quantiles,
    block_rate,
    efficiency_at,
    snr_at,
)
from edgesim.network.fading.power_distribution import RAYLEIGH, power_below, power_quantile
from fl.contracts import Array
from solvers.rates import EfficiencyLaw

CHUNK = 1000  # devices whose quantiles are held at once
LOWEST_DB, HIGHEST_DB = -60, 150  # of the ratios whose distributions are computed
ROUNDING = 1e-9  # relative, of an efficiency


@dataclass(frozen=True, eq=False)
class RateDistribution:
    """Mean over ``blocks`` independent blocks of eta(snr |h|^2), bit/s/Hz.

    Args:
        blocks: N, at least 1.
        k_factor: K of the fading, linear; 0 is Rayleigh.
        law: eta; None: log2(1 + g).
        drawn: what a block carries instead of eta(snr |h|^2), which is its largest value.
        touched: blocks of which a part is seen. The mean over parts varies less than that over N;
            but where a law has a largest value, any weak block keeps the mean below it: quantiles
            are the least, and probabilities the largest, of as many blocks and fewer.
    """

    blocks: int = 1
    k_factor: float = RAYLEIGH
    law: EfficiencyLaw | None = None
    drawn: DrawnBlocks | None = None
    touched: int = 0

    def _of_counts(self) -> list[RateDistribution]:
        """The distributions of N blocks, twice as many, and so on, and of those touched."""
        counts = [self.blocks]
        while self.law is not None and counts[-1] < self.touched:
            counts.append(min(2 * counts[-1], self.touched))
        return [replace(self, blocks=count, touched=0) for count in counts]

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
        if self.touched > self.blocks:
            each = [one.quantile(probability, snr) for one in self._of_counts()]
            return np.minimum.reduce(each)
        if self.blocks == 1 and self.drawn is None:
            return efficiency_at(snr * power_quantile(probability, self.k_factor), self.law)
        law = (self.k_factor, self.blocks, float(probability), self.law, self.drawn)
        return self._interpolated(snr, lambda decibel: block_quantile(decibel, *law))

    def below(self, efficiency: Any, snr: Any) -> Array:
        """P(mean over the blocks < efficiency), of arrays of one shape."""
        efficiency, snr = np.broadcast_arrays(
            np.asarray(efficiency, dtype=float), np.asarray(snr, dtype=float)
        )
        if self.touched > self.blocks:
            each = [one.below(efficiency, snr) for one in self._of_counts()]
            return np.maximum.reduce(each)
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
            # Those of a mean at the largest value are up to half a bin below it.
            asked = np.minimum(efficiency.ravel()[here], rising[-1] * (1.0 - ROUNDING))
            logit[here] = logit_at(asked, rising)
        probability = scipy.special.expit(logit.reshape(efficiency.shape))
        if self.drawn is None:
            probability = np.minimum(probability, self._some_block_below(snr))
        probability = np.where(snr_at(efficiency, self.law) < np.inf, probability, 1.0)
        return np.where(efficiency <= 0.0, 0.0, probability)

    def _some_block_below(self, snr: Array) -> Array:
        """P(some block has less than the largest value of the law), shape of ``snr``."""
        largest = efficiency_at(np.asarray(np.inf), self.law)
        with np.errstate(divide="ignore"):
            below = power_below(snr_at(largest, self.law) / snr, self.k_factor)
            return -np.expm1(self.blocks * np.log1p(-below))

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
