"""Rates and times of devices in SI, as functions of their shares and pruning ratios: what all else is checked against.

Symbols of Liu et al.: q bit, G s, A s, r bit/s, b share, rho pruned share; f bits that travel whatever is pruned.
b r is the rate R(b) of noise of a fixed power, Liu (9); with `snr` noise is a density and R(b) concave (`shannon`).
"""

from __future__ import annotations

import numpy as np

from solvers.shannon import rate_factor, share_for_factor, slope_factor

Array = np.ndarray


class Physics:
    """Devices [K] with q `bits`, G `compute_s`, A `slack_s`, r `rate_bps`, f `bits_fixed` and `snr`."""

    bits: Array
    compute_s: Array
    slack_s: Array
    rate_bps: Array
    bits_fixed: Array
    snr: Array | None

    def rate_at(self, share: Array) -> Array:
        """Rate R(b) of every device with these shares [K], bit/s: Liu (9), or b log2(1 + snr / b) under a density."""
        if self.snr is None:
            return self.rate_bps * share
        return self.rate_bps * rate_factor(np.asarray(share, dtype=float), self.snr)

    def slope_at(self, share: Array) -> Array:
        """dR/db [K], bit/s per unit of share."""
        if self.snr is None:
            return self.rate_bps
        return self.rate_bps * slope_factor(np.asarray(share, dtype=float), self.snr)

    def share_for_rate(self, rate_bps: Array) -> Array:
        """The share [K] with which R(b) is this rate [K], bit/s: above 1 for more than the whole band gives,
        inf for more than any band would give (under a density of noise)."""
        factor = rate_bps / self.rate_bps
        return factor if self.snr is None else share_for_factor(factor, self.snr)

    def finish_s(self, share: Array, rho: Array) -> Array:
        """Time used of the slack [K], s: Liu, eqs. (24) + (25), the prunable parts; inf where bits have no band."""
        kept = 1.0 - np.asarray(rho, dtype=float)
        return kept * self.compute_s + self.upload_s(share, kept * self.bits + self.bits_fixed)

    def upload_s(self, share: Array, bits: Array) -> Array:
        """Time that these bits [K] take with these shares [K], s: Liu, eq. (25); inf where bits have no band."""
        rate_bps = self.rate_at(share)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(bits == 0, 0.0, np.where(rate_bps > 0, bits / rate_bps, np.inf))

    def rate_needed(self, rho: Array | float, extra_s: float = 0.0) -> Array:
        """Rate [K] with which pruning rho just meets the deadline put off by extra_s, bit/s; inf where none does."""
        kept = 1.0 - np.asarray(rho, dtype=float)
        bits = kept * self.bits
        bits += self.bits_fixed
        left_s = kept * self.compute_s
        np.subtract(self.slack_s + extra_s if extra_s else self.slack_s, left_s, out=left_s)
        if left_s.min() > 0:
            return np.divide(bits, left_s, out=bits)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(
                left_s < 0, np.inf, np.fmax(bits / left_s, 0.0)
            )  # nothing in no time is 0 / 0: 0

    def share_at(self, rho: Array | float, extra_s: float = 0.0) -> Array:
        """Share [K] with which pruning rho just meets the deadline put off by extra_s; inf where no share does."""
        return self.share_for_rate(self.rate_needed(rho, extra_s))
