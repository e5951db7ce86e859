"""The exact pruning and bandwidth allocation: Liu, eqs. (43)-(58), with all bounds.

The optimal share is (54) clipped to its bounds. In mu = lambda^(-1/2) it is a clipped line,

    b_k(mu) = clip(mu s_k - o_k, low_k, cap_k), s_k = sqrt(w (A q + f G) / r) / G, o_k = q / (r G),

so that sum_k b_k(mu) = 1 is piecewise linear and increasing: Newton's method, kept inside a
bracket, ends at the root. Where G = 0, rho is linear in b, and b_k(mu) jumps from low to cap at
mu_k = q / sqrt(w (A q + f G) r). Where noise is a density b_k(mu) is smooth and has no closed form
(`DensityResponse`); the search is the same, as it is for a rate with kinks (`law_response`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvers.acceptance import certified_solution
from solvers.arrays import EPS, Array, Mask
from solvers.deadline_feasibility import fitting_bounds
from solvers.marginal_gains import marginal_gain
from solvers.problem import FULL_BAND, PruningProblem
from solvers.rate_laws.best_response import law_response
from solvers.rate_laws.density_response import DensityResponse
from solvers.rate_laws.segment_response import Shares
from solvers.solution import Solution

AMPLE = 2.0  # no share reaches it: sum b <= 1 is the only limit, and its multiplier the price
GUESS = 0.85  # of the root without bounds, to start from
CLOSE = 1e-9  # relative step of mu that is the last: a price may be off by 1e-8, and is mu^-2
Ends = Callable[[], tuple[float, float]]  # a bracket of mu


def kkt(problem: PruningProblem) -> Solution:
    """Shares and ratios of least weighted pruning, from the KKT conditions; see `allocate`.

    Raises:
        InfeasibleError: the least shares do not fit.
        UncertifiedError: off by more than 1e-8.
        ValueError: a device has no deadline, or a set of levels.
    """
    problem.refuse_levels("kkt")
    low, cap = fitting_bounds(problem, most=AMPLE)
    if problem.law is not None and problem.snr is not None and problem.law.least:
        of_use = problem.snr / problem.law.least
        if problem.full_power_share is not None:
            of_use = np.maximum(of_use, problem.full_power_share)
        cap = np.minimum(cap, np.maximum(low, of_use))
    if cap.sum() <= 1:  # every device gets all that is of use
        share, multiplier = cap, 0.0
    elif low.sum() >= FULL_BAND:  # no device can get more than the least
        share, multiplier = low.copy(), largest_marginal_gain(problem, low, cap)
    elif problem.has_kinks and problem.snr is not None:
        respond = law_response(problem, problem.snr, low, cap)
        guess = GUESS * _equal_root(problem, low, cap)
        share, mu = _fill_band(respond.at, low, cap, respond.ends, guess)
        multiplier = mu**-2
    elif problem.snr is None:
        share, multiplier = _power_shares(problem, low, cap)
    else:
        share, multiplier = _density_shares(problem, problem.snr, low, cap)
    return certified_solution(problem, share, problem.rho_at(share), multiplier, "kkt")


def largest_marginal_gain(problem: PruningProblem, low: Array, cap: Array) -> float:
    """A multiplier that holds every device at its lower bound: the largest marginal gain there."""
    return float(marginal_gain(problem, low).max(where=cap > low, initial=0.0))


def _equal_root(problem: PruningProblem, low: Array, cap: Array) -> float:
    """mu of the mean logarithm at which devices take equal shares of the band; 0: not known."""
    equal = np.minimum(np.maximum(1.0 / problem.num_devices, low), cap)
    mu = float(np.exp(-0.5 * np.log(marginal_gain(problem, equal)).mean()))
    return mu if mu < np.inf else 0.0


def _power_shares(problem: PruningProblem, low: Array, cap: Array) -> tuple[Array, float]:
    """Shares that fill the band exactly, and lambda, where the rate is linear in the share."""
    work, root = problem.rate_bps * problem.compute_s, problem.gain * problem.rate_bps
    np.sqrt(root, out=root)
    bent, jump = work > EPS * problem.bits, None
    if not (problem.all_active and bent.all()):
        # the others: curvature below rounding, or band is of no use
        free = cap > low
        bent &= free
        work, jump = np.where(bent, work, np.inf), _jumps(problem, root, free & ~bent)
    slope, offset = root / work, problem.bits / work

    def shares(mu: float) -> Shares:
        line = mu * slope
        line -= offset
        b = np.maximum(line, low)
        np.minimum(b, cap, out=b)
        rise = np.multiply(slope, line == b, out=line)
        return Shares(b if jump is None else np.where(mu >= jump, cap, b), rise, low, cap)

    def ends() -> tuple[float, float]:
        per = np.where(bent, slope, 1.0)
        enter = np.where(bent, (low + offset) / per, np.inf)
        leave = np.where(bent, (cap + offset) / per, 0.0)
        if jump is not None:
            enter, leave = np.minimum(enter, jump), np.where(jump < np.inf, jump, leave)
        return 0.5 * float(enter.min()), 2.0 * float(leave.max())

    # the root if no device were held at a bound
    free_root = (1.0 + float(offset.sum())) / max(float(slope.sum()), 1e-300)
    share, mu = _fill_band(shares, low, cap, ends, GUESS * free_root)
    return share, mu**-2


def _jumps(problem: PruningProblem, root: Array, linear: Mask) -> Array | None:
    """mu [K] at which devices whose rho is linear in b take their cap, inf for the others."""
    if not linear.any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(linear, problem.bits / root, np.inf)


def _density_shares(
    problem: PruningProblem, snr: Array, low: Array, cap: Array
) -> tuple[Array, float]:
    """The same where noise is a density."""
    respond = DensityResponse(problem, snr, low, cap)
    if not respond.at_low.size:
        raise ZeroDivisionError("no share moves any ratio: the numbers leave the range of doubles")

    def shares(mu: float) -> Shares:
        return Shares(respond(mu**-2), 2.0 / mu * respond.fall(), low, cap)

    def ends() -> tuple[float, float]:
        at_low, at_cap = respond.at_low.max(), respond.at_cap.min()
        return 0.5 * float(np.exp(-0.5 * at_low)), 2.0 * float(np.exp(-0.5 * at_cap))

    share, mu = _fill_band(shares, low, cap, ends, 0.0)
    return share, mu**-2


def _fill_band(
    shares: Callable[[float], Shares], low: Array, cap: Array, ends: Ends, mu: float
) -> tuple[Array, float]:
    """Newton's method for sum b(mu) = 1, from mu; bisection of log mu where it is slow.

    The last step is taken by the shares themselves, so that they fill the band to the last bit.
    None steps over a kink of its rate: beyond it, it rises by another slope or not at all.
    `ends` is asked for a bracket of the root only when it is needed.
    """
    below, above = (0.0, np.inf) if mu > 0 else ends()
    mu = mu or float(np.sqrt(below) * np.sqrt(above))
    for turn in range(400):
        b, rise, first, last = shares(mu)
        excess = float(b.sum()) - 1.0
        # where many mu fit, the largest
        below, above = (below, mu) if excess > 1.0 - FULL_BAND else (mu, above)
        inside = float(rise.sum())
        step = excess / inside if inside > 0 else np.inf  # out of the bracket
        if abs(step) <= CLOSE * mu:
            if abs(excess) <= EPS:
                return b, mu
            first, last = np.minimum(first, b), np.maximum(last, b)
            b = np.minimum(np.maximum(b - step * rise, first), last)
            b = np.minimum(np.maximum(b, low), cap)
            if abs(float(b.sum()) - 1.0) <= 1.0 - FULL_BAND:
                return b, mu - step
        if abs(step) <= 2 * EPS * mu or above <= below * (1 + 4 * EPS):
            break
        mu, previous = mu - step, mu
        if not below < mu < above or turn % 6 == 5:
            if not (below > 0 and above < np.inf):
                low_mu, high_mu = ends()
                below, above = max(below, min(low_mu, previous)), min(above, max(high_mu, previous))
            mu = float(np.sqrt(below) * np.sqrt(above))
    return mixture(shares, below, above, mu), mu


def mixture(
    shares: Callable[[float], Sequence[Array]], below: float, above: float, mu: float
) -> Array:
    """A mixture of the shares at two neighbouring mu, one short and one in excess of the band.

    Every mixture has its marginal gains between the two multipliers, so it satisfies the KKT
    conditions to rounding. At a jump this is what splits the band that is left among the devices
    with G = 0 that are equally good.
    """
    width = 4 * EPS
    while True:
        short = shares(max(below, mu * (1 - width)))[0]
        full = shares(min(above, mu * (1 + width)))[0]
        total_short, total_full = float(short.sum()), float(full.sum())
        if (total_short <= 1 <= total_full and total_short < total_full) or width > 1:
            break
        width *= 4
    mixture = (1 - total_short) / (total_full - total_short) if total_full > total_short else 0.0
    return short + mixture * (full - short)
