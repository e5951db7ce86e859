"""The rate of a device whose noise grows with the band it uses, in units of its rate over the whole band.

With the signal-to-noise ratio c over the whole band the share b carries b log(1 + c / b) / log(1 + c) of that rate:
concave and increasing in b, and never more than c / log(1 + c). In v = log(1 + c / b) nothing cancels:

    b = c / (e^v - 1),     rate ~ b v,     d rate / db ~ kappa(v) = v - 1 + e^-v.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
TINY = 1e-290  # a share that no device notices; keeps c / b finite


def nats(share: Array, snr: Array) -> Array:
    """v = log(1 + c / b) [K] of shares b [K] and whole-band ratios c [K]."""
    return np.log1p(np.minimum(snr / np.maximum(share, TINY), 1e300))


def kappa(v: Array) -> Array:
    """v - 1 + e^-v without cancellation, v >= 0."""
    values, small = v + np.expm1(-v), v < 0.5
    if small.any():
        x, series = v[small], 1.0
        for n in range(16, 2, -1):  # v^2 / 2 (1 - v / 3 (1 - v / 4 (...)))
            series = 1.0 - x / n * series
        values[small] = 0.5 * x * x * series
    return values


def rate_factor(share: Array, snr: Array) -> Array:
    """Rate with the share b, as a multiple of the rate over the whole band [K]."""
    return share * nats(share, snr) / np.log1p(snr)


def slope_factor(share: Array, snr: Array) -> Array:
    """Derivative of `rate_factor` by the share [K]."""
    return kappa(nats(share, snr)) / np.log1p(snr)


def share_for_factor(factor: Array, snr: Array) -> Array:
    """Share b [K] that gives this multiple of the whole band's rate; inf beyond the limit c / log(1 + c).

    With x = c / b the share is the root of log(1 + x) = t x, t = factor log(1 + c) / c: Newton from a bound above the
    root (Chatzigeorgiou, "Bounds on the Lambert function", 2013), from where it falls to the root monotonically.
    """
    t = np.minimum(factor * (np.log1p(snr) / snr), 1.0)
    inside = (t > TINY) & (t < 1.0)
    s = np.where(inside, t, 0.5)
    u = s - 1.0 - np.log(s)
    x = (1.0 + np.sqrt(2.0 * u) + u) / s - 1.0
    for _ in range(60):
        following = np.minimum(x - (np.log1p(x) - s * x) / (1.0 / (1.0 + x) - s), x)
        done = (x - following <= 1e-16 * x).all()
        x = following
        if done:
            break
    with np.errstate(divide="ignore"):
        return np.where(inside, snr / x, np.where(t < 1.0, 0.0, np.inf))
