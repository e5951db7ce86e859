"""Rates and times of devices in SI units, as functions of their shares and pruning ratios.

Symbols of Liu et al.: q bit, G s, A s, r bit/s, b share, rho pruned share; f bits that are sent
whatever is pruned. b r is the rate R(b) where noise is a fixed power, Liu, eq. (9).

Where noise is a density, it grows with the band that a device uses. With the signal-to-noise
ratio c over the whole band, the share b carries b log(1 + c / b) / log(1 + c) of the rate of the
whole band: concave and increasing in b, and never more than c / log(1 + c). In
v = log(1 + c / b) nothing cancels:

    b = c / (e^v - 1),     rate ~ b v,     d rate / db ~ kappa(v) = v - 1 + e^-v.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np

from solvers.arrays import Array

MOST_RATIO = 1e300
TINY = 1e-290  # a share without effect, which keeps c / b finite


class EfficiencyLaw(Protocol):
    """A concave, increasing spectral efficiency with eta(0) = 0, bit/s/Hz."""

    def __hash__(self) -> int: ...

    @property
    def least(self) -> float:
        """The g up to which eta is proportional to it: a wider share brings nothing; or 0."""
        ...

    def efficiency(self, snr: Array) -> Array:
        """eta(g), same shape."""
        ...

    def snr_for_bits(self, bits: Array) -> Array:
        """The least g with eta(g) >= bits, same shape; inf where there is none."""
        ...

    def tangents(self, snr: Array) -> tuple[Array, Array]:
        """eta(g) - g eta'(g) with the slope (above g, below g): R' (to the left, to the right)."""
        ...

    def snr_for_ratio(self, ratio: Array) -> Array:
        """The largest g with eta(g) / g = ratio; 0 where there is none."""
        ...


class DeviceRates:
    """Rates and times of K devices.

    Attributes:
        bits: q [K], bit.
        compute_s: G [K], s.
        slack_s: A [K], s.
        rate_bps: r [K], bit/s.
        bits_fixed: f [K], bit.
        snr: signal-to-noise ratio over the whole band [K]; None where noise is a fixed power.
        law: spectral efficiency as a function of the ratio; None: log2(1 + g).
        full_power_share: k [K], the share from which on a device sends with all its power, and
            below which with a power in proportion to the share (power control): R(b) = R(k) b / k.
            None: with all its power whatever the share.
    """

    bits: Array
    compute_s: Array
    slack_s: Array
    rate_bps: Array
    bits_fixed: Array
    snr: Array | None
    law: EfficiencyLaw | None
    full_power_share: Array | None

    @property
    def has_kinks(self) -> bool:
        """Whether the slope of R may jump."""
        return self.law is not None or self.full_power_share is not None

    @cached_property
    def unit_bps(self) -> Array:
        """u [K], rate over the whole band of a spectral efficiency of 1 bit/s/Hz, bit/s."""
        if self.snr is None:
            raise ValueError("spectral efficiencies are known where noise is a density: give snr.")
        if self.law is None:
            shannon: Array = np.log1p(self.snr) / np.log(2.0)
            return self.rate_bps / shannon
        return self.rate_bps / self.law.efficiency(self.snr)

    def rate_at(self, share: Array) -> Array:
        """Rate R(b) [K] of these shares [K], bit/s: Liu, eq. (9), or b log2(1 + snr / b).

        Below the share of full power the power falls with the share, and so does the rate.
        """
        if self.full_power_share is None:
            return self._rate_at_full_power(share)
        kink = self.full_power_share
        full_bps = self._rate_at_full_power(np.maximum(share, kink))
        return full_bps * np.minimum(share / kink, 1.0)

    def slope_at(self, share: Array, more: bool = False) -> Array:
        """dR/db [K], bit/s per unit of share.

        Args:
            share: b [K].
            more: at a kink, the slope towards more band; else that towards less, which is larger.
        """
        if self.full_power_share is None:
            return self._slope_at_full_power(share, more)
        kink = self.full_power_share
        narrow = share < kink if more else share <= kink
        wide_bps = self._slope_at_full_power(np.maximum(share, kink), more)
        steepest_bps = self._rate_at_full_power(kink) / kink
        # R is concave: at a smooth corner both slopes are equal, and must not round the other way.
        return np.where(narrow, steepest_bps, np.minimum(wide_bps, steepest_bps))

    def share_for_rate(self, rate_bps: Array) -> Array:
        """The share [K] with which R(b) is this rate [K], bit/s.

        Above 1 for more than the whole band gives, inf for more than any band would give.
        """
        if self.full_power_share is None:
            return self._share_at_full_power(rate_bps)
        kink = self.full_power_share
        part = rate_bps / self._rate_at_full_power(kink)
        wide = self._share_at_full_power(rate_bps)
        return np.where(part <= 1.0, part * kink, np.maximum(wide, kink))

    def _rate_at_full_power(self, share: Array) -> Array:
        if self.snr is None:
            return self.rate_bps * share
        if self.law is not None:
            return self.unit_bps * (share * self.law.efficiency(ratio_at(share, self.snr)))
        return self.rate_bps * rate_factor(np.asarray(share, dtype=float), self.snr)

    def _slope_at_full_power(self, share: Array, more: bool) -> Array:
        if self.snr is None:
            return self.rate_bps
        if self.law is not None:
            slopes = self.law.tangents(ratio_at(share, self.snr))
            return self.unit_bps * slopes[int(more)]
        return self.rate_bps * slope_factor(np.asarray(share, dtype=float), self.snr)

    def _share_at_full_power(self, rate_bps: Array) -> Array:
        factor = rate_bps / self.rate_bps
        if self.law is not None and self.snr is not None:
            with np.errstate(divide="ignore"):
                per_snr = self.law.efficiency(self.snr) / self.snr
                needs = self.snr / self.law.snr_for_ratio(factor * per_snr)
            return np.where(factor > 0.0, needs, 0.0)
        return factor if self.snr is None else share_for_factor(factor, self.snr)

    def finish_s(self, share: Array, rho: Array) -> Array:
        """Time used of the slack [K], s: the prunable parts of Liu, eqs. (24), (25).

        Infinite where a device has bits to send and no band.
        """
        kept = 1.0 - np.asarray(rho, dtype=float)
        return kept * self.compute_s + self.upload_s(share, kept * self.bits + self.bits_fixed)

    def upload_s(self, share: Array, bits: Array) -> Array:
        """Time [K] that these bits [K] take with these shares [K], s: Liu, eq. (25)."""
        rate_bps = self.rate_at(share)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(bits == 0, 0.0, np.where(rate_bps > 0, bits / rate_bps, np.inf))

    def rate_needed(self, rho: Array | float, extra_s: float = 0.0) -> Array:
        """Rate [K] with which rho [K] just meets the deadline put off by extra_s, bit/s.

        Infinite where no rate does.
        """
        kept = 1.0 - np.asarray(rho, dtype=float)
        bits = kept * self.bits
        bits += self.bits_fixed
        left_s = kept * self.compute_s
        np.subtract(self.slack_s + extra_s if extra_s else self.slack_s, left_s, out=left_s)
        if left_s.min() > 0:
            return np.divide(bits, left_s, out=bits)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # nothing in no time is 0 / 0, and needs no rate
            return np.where(left_s < 0, np.inf, np.fmax(bits / left_s, 0.0))

    def share_at(self, rho: Array | float, extra_s: float = 0.0) -> Array:
        """Share [K] with which rho just meets the deadline put off by extra_s; inf for none."""
        return self.share_for_rate(self.rate_needed(rho, extra_s))


def ratio_at(share: Array, snr: Array) -> Array:
    """Signal-to-noise ratio c / b [K] within shares b [K], of whole-band ratios c [K]."""
    return np.minimum(snr / np.maximum(share, TINY), MOST_RATIO)


def snr_log(share: Array, snr: Array) -> Array:
    """v = log(1 + c / b) [K] of shares b [K] and whole-band ratios c [K]."""
    return np.log1p(np.minimum(snr / np.maximum(share, TINY), 1e300))


def kappa(v: Array) -> Array:
    """v - 1 + e^-v without cancellation, v >= 0."""
    values, small = v + np.expm1(-v), v < 0.5
    if small.any():
        x, series = v[small], np.ones(1)
        for n in range(16, 2, -1):  # v^2 / 2 (1 - v / 3 (1 - v / 4 (...)))
            series = 1.0 - x / n * series
        values[small] = 0.5 * x * x * series
    return values


def rate_factor(share: Array, snr: Array) -> Array:
    """Rate with the share b [K], as a multiple of the rate over the whole band."""
    return share * snr_log(share, snr) / np.log1p(snr)


def slope_factor(share: Array, snr: Array) -> Array:
    """Derivative of `rate_factor` by the share [K]."""
    return kappa(snr_log(share, snr)) / np.log1p(snr)


def share_for_factor(factor: Array, snr: Array) -> Array:
    """Share b [K] of which `rate_factor` is this; inf beyond the limit c / log(1 + c).

    With x = c / b the share is the root of log(1 + x) = t x, t = factor log(1 + c) / c: Newton
    from a bound above the root, from where it falls to the root monotonically. The bound is that
    of Chatzigeorgiou, "Bounds on the Lambert function", IEEE Communications Letters 2013.
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
