"""The weakest of several gains that fade independently, as a broadcast meets it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # its parts are loaded on first use

from edgesim.network.fading.block_rate import efficiency_at, snr_at
from edgesim.network.fading.power_distribution import RAYLEIGH, power_below, power_quantile
from fl.contracts import Array
from solvers.rates import EfficiencyLaw

POINTS = 2049  # of the integral over the distribution


def weakest_quantile(gains: Array, probability: float, k_factor: Any = RAYLEIGH) -> float:
    """The gain that the smallest of ``gains`` |h|^2 is below with this probability, linear.

    Of exponential variables the smallest is exponential, with the sum of their rates.

    Args:
        gains: mean gains [S], linear.
        probability: in (0, 1).
        k_factor: K of the fading, linear, a number or [S].
    """
    if not len(gains) or np.any(gains <= 0.0):
        return 0.0 if len(gains) else math.inf
    if not np.any(k_factor):
        return -math.log1p(-probability) / float(np.sum(1.0 / gains))
    survival = math.log1p(-probability)

    def excess(log_gain: float) -> float:
        below = power_below(math.exp(log_gain) / gains, k_factor)
        with np.errstate(divide="ignore"):
            return max(float(np.log1p(-below).sum()), -1e300) - survival

    # Each alone is below with at most this probability, and one of them with at least its share.
    high = math.log(float(np.min(gains * power_quantile(probability, k_factor)))) + 1e-9
    share = probability / len(gains) / 2.0
    low = math.log(float(np.min(gains * power_quantile(share, k_factor))))
    return math.exp(scipy.optimize.brentq(excess, low, high))


def weakest_mean_rate_gain(
    gains: Array, snr_per_gain: float, k_factor: Any = RAYLEIGH, law: EfficiencyLaw | None = None
) -> float:
    """The constant gain with the mean spectral efficiency of the smallest of ``gains`` |h|^2.

    Args:
        gains: mean gains [S], linear.
        snr_per_gain: signal-to-noise ratio of a gain of 1.
        k_factor: K of the fading, linear, a number or [S].
        law: spectral efficiency; None: log2(1 + g).
    """
    if not len(gains) or np.any(gains <= 0.0):
        return 0.0 if len(gains) else math.inf
    most = float(np.min(gains * power_quantile(1.0 - 1e-16, k_factor)))
    whole = efficiency_at(np.asarray(snr_per_gain * most), law)
    efficiency = np.linspace(0.0, float(whole), POINTS)
    gain = snr_at(efficiency, law) / snr_per_gain
    log_survival = np.zeros(POINTS)
    with np.errstate(divide="ignore"):
        links = np.stack(np.broadcast_arrays(gains, k_factor), axis=1)
        for (each, k), count in zip(*np.unique(links, axis=0, return_counts=True), strict=True):
            log_survival += count * np.log1p(-np.minimum(power_below(gain / each, k), 1.0))
    # the mean of a variable that is not negative is the integral of its survival function
    mean = float(np.trapezoid(np.exp(log_survival), efficiency))
    return float(snr_at(np.asarray(mean), law)) / snr_per_gain
