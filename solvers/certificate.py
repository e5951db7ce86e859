"""Is an answer feasible, and is it optimal? Evaluated in SI from share, rho and lambda, however they were found.

Primal: the deadline in seconds, the band, the bounds. Dual: the marginal m = -d(w rho)/db, Liu (53), equals lambda,
unless rho has no room left on the side it is drawn to. Gap: objective minus the Lagrangian dual at lambda.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.bound_violations import check_feasible, judged, violations
from solvers.marginal_gains import marginal, response, worth
from solvers.problem import ALLOWED, Array, PruningProblem
from solvers.shannon import TINY
from solvers.solution import Certificate, Solution, UncertifiedError

TOLERANCE = 1e-8  # an answer that claims to be optimal must be this close, relative
BLUR = 1e-14  # rounding of a sum of shares
CLEAR = 1e-12  # a bound of a residual that needs no closer look
CLOSE = 1e-6  # relative difference of shares of which the square is below rounding
LEAST_SUM = "no shares and ratios have a lesser weighted sum of rho, by more than the duality gap"


def certify(problem: PruningProblem, share: Array, rho: Array, multiplier: float) -> Certificate:
    """Relative KKT residuals and duality gap of shares b [K], ratios rho [K] and the multiplier lambda.

    primal: worst excess of a deadline (relative to A), of the band, of a bound; up to `ALLOWED` = 1e-9 it counts as
    kept, here and in every other certificate. The gap is that of the problem whose least shares are lowered by as much.
    dual: worst over devices of min(|m - lambda| / max(m, lambda), what another share could improve, relative to w);
    the second alone where it is next to nothing.
    complementarity: lambda times unused band, relative to the objective; pruning that the deadline does not ask for.
    gap: relative to the objective, or to one average device pruned altogether where that is more; where it is next to
    nothing an upper bound of it.
    """
    with np.errstate(
        divide="ignore", invalid="ignore", over="ignore"
    ):  # of those left out, of G = q = 0
        return _certificate(problem, share, rho, multiplier)


def _certificate(
    problem: PruningProblem, share: Array, rho: Array, multiplier: float
) -> Certificate:
    rate_bps = np.maximum(problem.rate_at(share), TINY)  # of those who send nothing it cancels out
    busy = rate_bps * problem.compute_s
    busy += problem.bits  # all of what can be pruned takes G + q / R, eqs. (24), (25)
    finish_s = 1.0 - rho
    finish_s *= busy
    finish_s += problem.bits_fixed
    finish_s /= rate_bps
    above, used = rho - problem.rho_min, float(share.sum())
    primal, broken = judged(problem, share, rho, finish_s, used, above)
    if not (problem.usual or problem.feasible.any()):
        return Certificate(primal, 0.0, primal, 0.0, 0.0, broken, LEAST_SUM)
    scale, price, idle = unit(problem, rho), max(multiplier, 0.0), 1.0 - used
    idle = (
        0.0 if abs(idle) <= BLUR else idle
    )  # nobody's, however much a starved device would pay for it
    np.maximum(above, 0.0, out=above)
    wasted = _wasted(problem, finish_s, rate_bps / busy, above)
    lost, dual = _drawn(problem, share, busy, above, price)
    lavish = float(wasted.max())
    if lavish > 0:
        lost += problem.weight * wasted
    gap = (float(lost.sum()) + price * abs(idle)) / scale
    if not gap <= CLEAR:
        lost = problem.weight * wasted + _beaten(problem, share, rho - wasted, price)
        gap = (float(lost.sum()) + price * abs(idle)) / scale
    dual = max(dual, -min(multiplier, 0.0) / scale)
    complementarity = max(price * max(idle, 0.0) / scale, lavish)
    return Certificate(
        max(primal, dual, complementarity), gap, primal, dual, complementarity, broken, LEAST_SUM
    )


def _wasted(problem: PruningProblem, finish_s: Array, per_s: Array, above: Array) -> Array:
    """Pruning [K] that the deadline does not ask for: what the time still left, at `per_s` [K], would be enough for."""
    wasted = problem.slack_s * (1.0 - BLUR)
    wasted -= finish_s
    np.maximum(wasted, 0.0, out=wasted)
    wasted *= per_s
    np.fmin(wasted, above, out=wasted)  # 0 / 0 where G = q = 0: pruning nothing costs nothing
    return wasted if problem.usual else np.where(problem.feasible, wasted, 0.0)


def _drawn(
    problem: PruningProblem, share: Array, busy: Array, above: Array, price: float
) -> tuple[Array, float]:
    """How far w rho(b) + price b is at most from its least value [K], and the worst violation of stationarity.

    What it could fall by is bounded by the tangent, as rho(b) is convex; where the marginal is all but the price the
    second is that near. With more band rho falls to rho_min and no further, so what a share has above its cap is lost
    at the full price, and what it lacks of its lower bound was gained at it. busy: R G + q [K] of the shares.
    """
    low, cap = problem.share_bounds()
    inside = np.maximum(share, low)
    np.minimum(inside, cap, out=inside)
    outside = (inside != share).any()
    m = marginal(problem, inside) if outside else worth(problem, problem.slope_at(share), busy)
    profit = m - price
    more = cap - inside
    more *= profit
    np.fmin(more, problem.weight * above, out=more)
    less = inside * (BLUR - 1.0)
    less += low
    np.minimum(less, 0.0, out=less)  # at its lower bound but for rounding is at it
    less *= profit
    drawn = np.fmax(more, less, out=more)
    if not problem.usual:  # what is drawn of those left out may be infinite
        drawn = np.where(cap > low, drawn, 0.0)
    gain = drawn / problem.weight
    dual = float(gain.max())
    if not dual <= CLEAR:
        mismatch = np.abs(profit) / np.maximum(m, max(price, 1e-300))
        dual = float(np.fmin(mismatch, gain).max())
    return (drawn + price * np.abs(share - inside) if outside else drawn), dual


def _beaten(problem: PruningProblem, share: Array, rho: Array, price: float) -> Array:
    """How far w rho(b) + price b is from its least value [K].

    Of shares next to each other the difference would be rounding: there the tangent bounds it. What a share is outside
    its bounds counts at the full price, as in `_drawn`, unless it was squeezed into the band by rounding.
    """
    low, cap = problem.share_bounds()
    low = np.minimum(np.minimum(low, np.maximum(share, low * (1 - ALLOWED))), cap)
    inside = np.minimum(np.maximum(share, low), cap)
    best = response(problem, price, low, cap)
    step = best - inside
    tangent = np.fmax((marginal(problem, inside) - price) * step, 0.0)
    exact = problem.weight * (rho - problem.rho_at(best)) - price * step
    return np.where(np.abs(step) <= CLOSE * inside, tangent, exact) + price * np.abs(share - inside)


def unit(problem: PruningProblem, rho: Array) -> float:
    """What an objective is compared with: itself, or one average device pruned altogether where that is more."""
    return max(problem.objective(rho), problem.mean_weight)


def certified(
    problem: PruningProblem,
    share: Array,
    rho: Array,
    multiplier: float,
    method: str,
    stationarity: float = TOLERANCE,
) -> Solution:
    """The allocation with its certificate.

    Raises:
        UncertifiedError: primal above 1e-9, complementarity or gap above 1e-8, or dual above `stationarity`.
    """
    proof = certify(problem, share, rho, multiplier)
    return accepted(problem, share, rho, multiplier, proof, method, stationarity)


def accepted(
    problem: PruningProblem,
    share: Array,
    rho: Array,
    multiplier: float,
    proof: Certificate,
    method: str,
    stationarity: float = TOLERANCE,
    claims_gap: bool = True,
) -> Solution:
    """The allocation, if its certificate is good.

    Raises:
        UncertifiedError: primal above 1e-9, complementarity or gap (where it is claimed) above 1e-8, or dual above
            `stationarity`.
    """
    gap = proof.gap if claims_gap else 0.0
    optimal = (
        abs(gap) <= TOLERANCE and proof.complementarity <= TOLERANCE and proof.dual <= stationarity
    )
    if not (proof.primal <= ALLOWED and optimal):
        broken = f" ({'; '.join(proof.broken)})" if proof.broken else ""
        raise UncertifiedError(
            f"The answer of {method} has residual {proof.residual:.2g} and duality gap {proof.gap:.2g}, "
            f"more than the allowed {TOLERANCE:g}{broken}; "
            "check that the quantities are SI units of sensible size, or use another method."
        )
    return _allocation(problem, share, rho, multiplier, proof, method)


def compared(
    problem: PruningProblem, share: Array, rho: Array, multiplier: float, method: str
) -> Solution:
    """The allocation with its full certificate, whatever it says: for comparison only."""
    proof = replace(certify(problem, share, rho, multiplier), claim="nothing; for comparison only")
    return _allocation(problem, share, rho, multiplier, proof, method)


def feasible(
    problem: PruningProblem, share: Array, rho: Array, multiplier: float, method: str
) -> Solution:
    """The allocation of a method that claims no optimality: bounds are checked, a late device is nobody's error.

    Raises:
        InvalidAllocationError: names what is broken.
    """
    check_feasible(problem, share, rho, method)
    primal, broken = violations(problem, share, rho)
    nan = float("nan")
    proof = Certificate(
        primal, nan, primal, nan, nan, broken, "the bounds are kept; nothing about optimality"
    )
    return _allocation(problem, share, rho, multiplier, proof, method)


def _allocation(problem, share, rho, multiplier, certificate, method) -> Solution:
    infeasible = () if problem.usual else tuple(np.flatnonzero(~problem.feasible).tolist())
    objective = problem.objective(rho)
    return Solution(
        share, rho, float(multiplier), certificate, infeasible, method, objective, problem=problem
    )
