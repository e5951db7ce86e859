"""Distribution of the power |h|^2 of Rayleigh and Rician fading, with mean 1.

With the K factor, the power of the direct path over that of the scattered ones, 2 (K + 1) |h|^2 is
noncentral chi-square with 2 degrees of freedom and noncentrality 2 K (Simon and Alouini, Digital
Communication over Fading Channels, 2005, eqs. (2.15) to (2.17)). K = 0 is Rayleigh fading, whose
power is exponential.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # its parts are loaded on first use

from fl.contracts import Array

RAYLEIGH = 0.0  # the K factor without a direct path


def power_below(power: Any, k_factor: Any = RAYLEIGH) -> Array:
    """P(|h|^2 <= power), any shape.

    Args:
        power: linear, mean 1, any shape.
        k_factor: K, linear, a number or the same shape.
    """
    power = np.maximum(np.asarray(power, dtype=float), 0.0)
    if not np.any(k_factor):
        return -np.expm1(-power)
    return scipy.special.chndtr(2.0 * (k_factor + 1.0) * power, 2.0, 2.0 * k_factor)


def power_quantile(probability: Any, k_factor: Any = RAYLEIGH) -> Array:
    """The power, linear, that |h|^2 is below with this probability, any shape.

    Args:
        probability: in [0, 1), any shape.
        k_factor: K, linear, a number or the same shape.

    Example:
        >>> round(float(power_quantile(0.05)), 6)
        0.051293
    """
    probability = np.asarray(probability, dtype=float)
    if not np.any(k_factor):
        return -np.log1p(-probability)
    scale = 2.0 * (k_factor + 1.0)
    return scipy.special.chndtrix(probability, 2.0, 2.0 * k_factor) / scale
