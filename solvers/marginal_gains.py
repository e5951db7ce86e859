"""What a little more band is worth to a device.

    m(b) = -d(w rho)/db = w (A q + f G) R'(b) / (R(b) G + q)^2        Liu, eq. (53), for any rate R

falls with b; where G = 0 and the rate is linear it is constant. Where noise is a density log m is
smooth and rising in v = log(1 + snr / b).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvers.arrays import Array, Counts, Mask
from solvers.problem import PruningProblem
from solvers.rates import kappa

ALL = slice(None)
HELD = 1e-9  # a ratio or share this close to a bound is held by it


def marginal_gain(problem: PruningProblem, share: Array, more: bool = False) -> Array:
    """m(b) [K], per unit of band; 0 where band is of no use.

    Args:
        problem: K devices.
        share: b [K].
        more: at a kink of the rate, what more band is worth; else what the last of it is worth.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        busy = problem.rate_at(share) * problem.compute_s + problem.bits
        return marginal_from_slope(problem, problem.slope_at(share, more), busy)


def marginal_from_slope(problem: PruningProblem, slope: Array, busy: Array) -> Array:
    """m [K] from R' [K] and R G + q [K]."""
    m: Array = problem.gain / busy
    m *= slope / busy
    return np.fmax(m, 0.0, out=m)  # 0 / 0 where G = q = 0: 0


def strictly_inside(problem: PruningProblem, rho: Array) -> Mask:
    """Whose ratio is not held by a bound: bool [K]."""
    return (rho > problem.rho_min + HELD) & (rho < problem.rho_max - HELD)


def log_marginal_gain(
    problem: PruningProblem, snr: Array, on: Counts
) -> Callable[..., tuple[Array, Array]]:
    """Function of v [S] that returns log m and its derivative by v, under a density of noise.

    Args:
        problem: K devices.
        snr: signal-to-noise ratios over the whole band of the devices `on` [S].
        on: indices of the devices [S]; the function takes indices into these as `live`.
    """
    bits, compute_s = problem.bits[on], problem.compute_s[on]
    unit_bps = problem.rate_bps[on] / np.log1p(snr)  # R = unit b v
    scale, work = np.log(problem.gain[on]) + np.log(unit_bps), unit_bps * snr * compute_s

    def curve(v: Array, live: Counts | slice = ALL) -> tuple[Array, Array]:
        k, shrunk = kappa(v), -np.expm1(-v)
        busy = work[live] / np.expm1(v)
        spent = busy * v + bits[live]
        height = scale[live] + np.log(k) - 2.0 * np.log(spent)
        return height, shrunk / k + 2.0 * busy * k / (shrunk * spent)

    return curve
