"""What a little more band or time is worth, from the multipliers of an optimal allocation.

The rate of a device depends on the hertz it is given and not on what is left to others, whether
noise is a fixed power or a density: so a wider band only relaxes sum_k b_k <= 1, and
dV / d log B = -lambda. The multiplier of the deadline follows from stationarity,

    nu_k = w R / (R G + q)                 where rho_min < rho_k < rho_max
    nu_k = lambda R^2 / (R' (kept q + f))  where rho is held at a bound and the deadline binds

and dV / dT = -sum_k nu_k. Where several multipliers are right (a device is just about to enter or
to be full) V has a kink, and this is one of its slopes.

`alpha-fair` maximises another sum than that of its objective; its slopes are those of
`solvers.allocators.alpha_fair_slopes`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.allocators.alpha_fair_slopes import AlphaFairSlopes
from solvers.arrays import Array, numbers
from solvers.marginal_gains import strictly_inside
from solvers.problem import PruningProblem
from solvers.solution import Solution

BINDS = 1e-9  # relative slack of a deadline that counts as none
SMOOTH_METHODS = ("kkt", "alpha-fair", "convex", "convex-alpha-fair")


@dataclass(frozen=True)
class Sensitivity:
    """Derivatives of the objective sum w rho.

    None is above 0, but for the last three of `alpha-fair`: it may use the time or the rate that
    one device gains for those who are pruned most, at the cost of the sum.

    Attributes:
        per_band: by the relative width of the band (1 = doubled, to first order).
        per_hz: by its width, 1/Hz; nan where the width was not given.
        per_s: by T_th, 1/s.
        deadlines: share of every device in per_s [K], 1/s.
        rates: by the logarithm of the rate of every device [K].
    """

    per_band: float
    per_hz: float
    per_s: float
    deadlines: Array
    rates: Array


def is_differentiable(allocation: Solution) -> bool:
    """Whether the objective has slopes: least total pruning, without blocks, levels or kinks."""
    smooth = allocation.method in SMOOTH_METHODS and not allocation.problem.has_kinks
    return smooth and not np.isnan(allocation.certificate.gap)


def sensitivity(allocation: Solution, bandwidth_hz: float = float("nan")) -> Sensitivity:
    """Derivatives of the optimal objective by the bandwidth and by the latency threshold.

    Args:
        allocation: of `kkt`, `alpha-fair` (alpha below inf) or their references, with shares of
            any size.
        bandwidth_hz: B, Hz, for `per_hz`.

    Raises:
        ValueError: another method, whole blocks or levels, whose objective has steps and no slope;
            B not positive.
    """
    problem = allocation.problem
    if not is_differentiable(allocation):
        raise ValueError(
            f"The answer of {allocation.method} has no slopes; "
            f"take one of {', '.join(SMOOTH_METHODS)}, in shares."
        )
    given = numbers("bandwidth_hz", bandwidth_hz, "give a number in Hz")
    if given.ndim:
        raise ValueError(f"bandwidth_hz has shape {given.shape}; give one number in Hz.")
    bandwidth_hz = float(given)
    if not (np.isnan(bandwidth_hz) or 0 < bandwidth_hz < np.inf):
        raise ValueError(f"bandwidth_hz is {bandwidth_hz:g}; it must be finite and positive.")
    price, share = allocation.multiplier, allocation.share
    deadlines = -deadline_multipliers(problem, share, allocation.rho, price)
    if allocation.alpha is None:
        # a larger rate frees band, which is worth the multiplier
        rates = -price * problem.rate_at(share) / problem.slope_at(share)
    else:
        slopes = AlphaFairSlopes(problem, allocation.alpha, share)
        deadlines = np.where(slopes.free, slopes.by_deadline(), deadlines)
        rates = slopes.by_log_rate()
    return Sensitivity(-price, -price / bandwidth_hz, float(deadlines.sum()), deadlines, rates)


def deadline_multipliers(problem: PruningProblem, share: Array, rho: Array, price: float) -> Array:
    """nu [K], 1/s: what a second more for device k alone would lower the objective by."""
    rate_bps, sent = problem.rate_at(share), (1.0 - rho) * problem.bits + problem.bits_fixed
    binds = problem.finish_s(share, rho) >= problem.slack_s * (1.0 - BINDS)
    with np.errstate(divide="ignore", invalid="ignore"):
        busy_s = problem.compute_s + problem.bits / rate_bps
        along_rho = problem.weight / np.where(problem.needs_no_band, problem.compute_s, busy_s)
        along_band = np.where(sent > 0, price * rate_bps**2 / (problem.slope_at(share) * sent), 0.0)
    nu = np.where(strictly_inside(problem, rho), along_rho, along_band)
    return np.where(problem.feasible & binds, nu, 0.0)
