"""Is an answer feasible, and is it optimal? Evaluated in SI units, however it was found.

Primal: the deadline in seconds, the band, the bounds. Dual: the marginal gain m = -d(w rho)/db,
Liu, eq. (53), equals lambda, unless rho has no room left on the side it is drawn to. Gap: the
objective minus the Lagrangian dual at lambda.
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Array
from solvers.bound_violations import violations
from solvers.marginal_gains import marginal_from_slope, marginal_gain
from solvers.problem import FEASIBILITY_TOLERANCE, PruningProblem
from solvers.rate_laws.best_response import best_response
from solvers.rates import TINY
from solvers.solution import Certificate

BLUR = 1e-14  # rounding of a sum of shares
CLEAR = 1e-12  # a bound of a residual that needs no closer look
KINK = 1e-12  # relative distance of a share from a kink of the rate that counts as none
CLOSE = 1e-6  # relative difference of shares of which the square is below rounding
LEAST_SUM = "no shares and ratios have a lesser weighted sum of rho, by more than the duality gap"


def certify(problem: PruningProblem, share: Array, rho: Array, multiplier: float) -> Certificate:
    """Relative KKT residuals and duality gap of an answer of least weighted pruning.

    - primal: worst excess of a deadline (relative to A), of the band, of a bound. Up to 1e-9 it
      counts as kept, and the gap is that of the problem whose least shares are lowered by as much.
    - dual: worst over devices of min(|m - lambda| / max(m, lambda), what another share could
      improve, relative to w); the second alone where it is next to nothing.
    - complementarity: lambda times unused band, relative to the objective; pruning that the
      deadline does not ask for.
    - gap: relative to the objective, or to one average device pruned altogether where that is
      more; where it is next to nothing, an upper bound of it.

    Args:
        problem: K devices.
        share: b [K].
        rho: pruned share [K].
        multiplier: lambda, of the band.
    """
    # of those left out, and where G = q = 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return _certificate(problem, share, rho, multiplier)


def _certificate(
    problem: PruningProblem, share: Array, rho: Array, multiplier: float
) -> Certificate:
    # the rate of those who send nothing cancels out
    rate_bps = np.maximum(problem.rate_at(share), TINY)
    busy = rate_bps * problem.compute_s
    busy += problem.bits  # all that can be pruned takes G + q / R, Liu, eqs. (24), (25)
    finish_s = 1.0 - rho
    finish_s *= busy
    finish_s += problem.bits_fixed
    finish_s /= rate_bps
    primal, broken = violations(problem, share, rho, finish_s)
    if not (problem.all_active or problem.feasible.any()):
        return Certificate(primal, 0.0, primal, 0.0, 0.0, broken, LEAST_SUM)
    scale, price = objective_scale(problem, rho), max(multiplier, 0.0)
    idle = 1.0 - float(share.sum())
    # a rounding belongs to no device, however much a starved one would pay for it
    idle = 0.0 if abs(idle) <= BLUR else idle
    above = np.maximum(rho - problem.rho_min, 0.0)
    wasted = _wasted(problem, finish_s, rate_bps / busy, above)
    lost, dual = _stationarity(problem, share, busy, above, price)
    lavish = float(wasted.max())
    if lavish > 0:
        lost += problem.weight * wasted
    gap = (float(lost.sum()) + price * abs(idle)) / scale
    if not gap <= CLEAR:
        lost = problem.weight * wasted + _excess(problem, share, rho - wasted, price)
        gap = (float(lost.sum()) + price * abs(idle)) / scale
    dual = max(dual, -min(multiplier, 0.0) / scale)
    complementarity = max(price * max(idle, 0.0) / scale, lavish)
    residual = max(primal, dual, complementarity)
    return Certificate(residual, gap, primal, dual, complementarity, broken, LEAST_SUM)


def _wasted(problem: PruningProblem, finish_s: Array, per_s: Array, above: Array) -> Array:
    """Pruning [K] that the deadline does not ask for: what the time left is enough for."""
    wasted: Array = problem.slack_s * (1.0 - BLUR)
    wasted -= finish_s
    np.maximum(wasted, 0.0, out=wasted)
    wasted *= per_s
    np.fmin(wasted, above, out=wasted)  # 0 / 0 where G = q = 0: pruning nothing costs nothing
    return wasted if problem.all_active else np.where(problem.feasible, wasted, 0.0)


def _stationarity(
    problem: PruningProblem, share: Array, busy: Array, above: Array, price: float
) -> tuple[Array, float]:
    """How far w rho(b) + price b is from its least value [K], and the worst dual residual.

    What it could fall by is bounded by the tangent, as rho(b) is convex; where the marginal gain
    is all but the price, the tangent is that near. With more band rho falls to rho_min and no
    further, so what a share has above its cap is lost at the full price, and what it lacks of its
    lower bound was gained at it. `busy` [K] is R G + q at the shares.
    """
    low, cap = problem.share_bounds()
    inside = np.maximum(share, low)
    np.minimum(inside, cap, out=inside)
    outside = (inside != share).any()
    if problem.has_kinks:
        # at a kink of the rate more band is worth less than the last of it was
        m, worth_more = _around(problem, inside)
        profit, gained = m - price, worth_more - price
    else:
        if outside:
            m = marginal_gain(problem, inside)
        else:
            m = marginal_from_slope(problem, problem.slope_at(share), busy)
        profit = gained = m - price
    more = cap - inside
    more *= gained
    np.fmin(more, problem.weight * above, out=more)
    less = inside * (BLUR - 1.0)
    less += low
    np.minimum(less, 0.0, out=less)  # at its lower bound but for rounding is at it
    less *= profit
    drawn = np.fmax(more, less, out=more)
    if problem.has_kinks:
        drawn = np.fmax(drawn, 0.0)  # on a kink neither way is worth the price
    if not problem.all_active:  # the tangent of those left out may be infinite
        drawn = np.where(cap > low, drawn, 0.0)
    gain = drawn / problem.weight
    dual = float(gain.max())
    if not dual <= CLEAR:
        astray = np.where((gained <= 0) & (profit >= 0), 0.0, np.minimum(abs(gained), abs(profit)))
        mismatch = astray / np.maximum(m, max(price, 1e-300))
        dual = float(np.fmin(mismatch, gain).max())
    return (drawn + price * np.abs(share - inside) if outside else drawn), dual


def _around(problem: PruningProblem, share: Array) -> tuple[Array, Array]:
    """What the last of the shares and what more than them is worth [K], apart from rounding."""
    less, more = share * (1.0 - KINK), share * (1.0 + KINK)
    return marginal_gain(problem, less), marginal_gain(problem, more, more=True)


def _excess(problem: PruningProblem, share: Array, rho: Array, price: float) -> Array:
    """How far w rho(b) + price b is from its least value [K].

    Of shares next to each other the difference would be rounding: there the tangent bounds it.
    What a share is outside its bounds counts at the full price, as in `_stationarity`, unless it
    was squeezed into the band by rounding.
    """
    low, cap = problem.share_bounds()
    squeezed = np.maximum(share, low * (1 - FEASIBILITY_TOLERANCE))
    low = np.minimum(np.minimum(low, squeezed), cap)
    inside = np.minimum(np.maximum(share, low), cap)
    best = best_response(problem, price, low, cap)
    step = best - inside
    worth = marginal_gain(problem, inside)
    if problem.has_kinks:
        last, following = _around(problem, inside)
        worth = np.where(step > 0, following, last)
    tangent = np.fmax((worth - price) * step, 0.0)
    exact = problem.weight * (rho - problem.rho_at(best)) - price * step
    near = np.abs(step) <= CLOSE * inside
    return np.where(near, tangent, exact) + price * np.abs(share - inside)


def objective_scale(problem: PruningProblem, rho: Array) -> float:
    """The objective, or one average device pruned altogether where that is more."""
    return max(problem.objective(rho), problem.mean_weight)
