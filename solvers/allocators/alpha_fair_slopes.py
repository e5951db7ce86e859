"""How the alpha-fair optimum moves with the band, the deadlines and the rates.

Devices between their bounds have one value in common, and what they give up others receive:

    phi_k = log(w_k x_k'(b_k)) - alpha log x_k(b_k) = log lambda,     sum_k b_k = 1

Differentiated, a share follows the price and what changes for its own device, theta,

    db_k = s_k (d phi_k / d theta dtheta - d log lambda),     s_k = -1 / (d phi_k / db_k) > 0

while a device that is held at a bound of rho moves as the bound does. With m_k = w_k x_k' the sum
of w rho, which is not what alpha-fair maximises, falls by

    P = sum m_k s_k / sum s_k                                   per unit of band,
    w_k dx_k / dtheta + (m_k - P) s_k d phi_k / dtheta          with theta of device k,

over the devices between their bounds, and by -P db_k / dtheta with theta of another. At alpha = 0
all m_k are lambda, which leaves the multipliers of `kkt`; with a large alpha s_k is x / (alpha x'),
and devices that are pruned alike share the band as under `fair`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.arrays import Array, Mask
from solvers.marginal_gains import HELD, marginal_gain
from solvers.problem import PruningProblem
from solvers.rates import kappa, snr_log

FILLED = 1.0 - 1e-12  # a sum of shares that is less leaves band idle


def kept_share(problem: PruningProblem, share: Array) -> Array:
    """x [K] = 1 - rho at the shares b [K], not rounded: Liu, eq. (47)."""
    rate_bps = problem.rate_at(share)
    kept = (rate_bps * problem.slack_s - problem.bits_fixed) / (
        rate_bps * problem.compute_s + problem.bits
    )
    return np.clip(kept, 1.0 - problem.rho_max, 1.0 - problem.rho_min)


@dataclass(frozen=True, eq=False)
class AlphaFairSlopes:
    """Derivatives of the sum of w rho at an alpha-fair answer.

    Args:
        problem: K devices, without kinks of the rate.
        alpha: not negative and finite.
        share: b [K] of the answer.
    """

    problem: PruningProblem
    alpha: float
    share: Array

    @cached_property
    def free(self) -> Mask:
        """Whose ratio is between its bounds, so that its share follows the price: bool [K]."""
        low, cap = self.problem.share_bounds(most=np.inf)
        inside = (self.share > low * (1.0 + HELD)) & (self.share < cap * (1.0 - HELD))
        return inside & self.problem.feasible & (self.problem.gain > 0)

    @cached_property
    def price(self) -> float:
        """P, the fall of the sum of w rho per unit of band.

        Where no device is between its bounds, and the band is full, that of more band: it goes to
        the device at its least share to which it is worth most.
        """
        worth = marginal_gain(self.problem, self.share)
        if self.free.any():
            moved = self._moved[self.free]
            return float(worth[self.free] @ moved / moved.sum())
        low, cap = self.problem.share_bounds(most=np.inf)
        hungry = (cap > low) & (self.problem.gain > 0) & (self.share < cap * (1.0 - HELD))
        if self.share.sum() < FILLED or not hungry.any():
            return 0.0
        with np.errstate(divide="ignore"):
            phi = np.log(worth) - self.alpha * np.log(kept_share(self.problem, self.share))
        return float(worth[int(np.argmax(np.where(hungry, phi, -np.inf)))])

    def by_deadline(self) -> Array:
        """Derivative by the slack A of every free device [K], 1/s; of the others it is not."""
        p, rate_bps = self.problem, self._rate_bps
        with np.errstate(divide="ignore", invalid="ignore"):
            steeper = p.bits / self._prunable - self.alpha * rate_bps / self._spare
            return -p.weight * rate_bps / self._busy - self._drawn * steeper

    def by_log_rate(self) -> Array:
        """Derivative by the logarithm of the rate of every device [K]."""
        p, rate_bps = self.problem, self._rate_bps
        with np.errstate(divide="ignore", invalid="ignore"):
            freed = rate_bps / p.slope_at(self.share)
            growth = rate_bps / self._busy
            steeper = 1.0 - 2.0 * growth * p.compute_s
            steeper -= self.alpha * growth * self._prunable / self._spare
            along_rho = -marginal_gain(p, self.share) * freed - self._drawn * steeper
        return np.where(self.free, along_rho, -self.price * freed)

    @cached_property
    def _rate_bps(self) -> Array:
        return self.problem.rate_at(self.share)

    @cached_property
    def _busy(self) -> Array:
        """R G + q [K]."""
        return self._rate_bps * self.problem.compute_s + self.problem.bits

    @cached_property
    def _spare(self) -> Array:
        """A R - f [K]: x is this over `_busy`."""
        return self._rate_bps * self.problem.slack_s - self.problem.bits_fixed

    @cached_property
    def _prunable(self) -> Array:
        """A q + f G [K]: dx / dR is this over the square of `_busy`."""
        return self.problem.gain / self.problem.weight

    @cached_property
    def _moved(self) -> Array:
        """s [K]: by how much a share falls as the logarithm of the price rises."""
        p = self.problem
        slope = p.slope_at(self.share)
        with np.errstate(divide="ignore", invalid="ignore"):
            fall = 2.0 * p.compute_s * slope / self._busy - _bend(p, self.share)
            fall += self.alpha * slope * self._prunable / (self._busy * self._spare)
            return 1.0 / fall

    @cached_property
    def _drawn(self) -> Array:
        """(m - P) s [K]: what it is worth that band goes to a device rather than to the others."""
        return (marginal_gain(self.problem, self.share) - self.price) * self._moved


def _bend(problem: PruningProblem, share: Array) -> Array:
    """R'' / R' [K]: 0 where noise is a fixed power, below 0 where it is a density.

    With v = log(1 + snr / b), R' ~ kappa(v) and dv / db = -(1 - e^-v) / b.
    """
    if problem.snr is None:
        return np.zeros_like(share)
    v = snr_log(share, problem.snr)
    return -np.square(np.expm1(-v)) / (share * kappa(v))
