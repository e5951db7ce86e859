"""Is an answer feasible, and is it optimal? Evaluated in SI from share, rho and lambda, however they were found.

Primal: the deadline in seconds, the band, the bounds. Dual: the marginal m = -d(w rho)/db, Liu (53), equals lambda,
unless rho has no room left on the side it is drawn to. Gap: objective minus the Lagrangian dual at lambda.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from solvers.marginal import marginal, response
from solvers.problem import Allocation, Array, Certificate, InvalidAllocation, PruningProblem, Uncertified
from solvers.shannon import TINY

TOLERANCE = 1e-8  # an answer that claims to be optimal must be this close, relative
BLUR = 1e-14  # rounding of a sum of shares
CLEAR = 1e-12  # a bound of the gap that needs no closer look
CLOSE = 1e-6  # relative difference of shares of which the square is below rounding
ALLOWED = 1e-9  # rounding that a feasible answer may show
NAMED = 8  # broken bounds that are spelt out, of each kind
LEAST_SUM = "no shares and ratios have a lesser weighted sum of rho, by more than the duality gap"


def certify(problem: PruningProblem, share: Array, rho: Array, multiplier: float) -> Certificate:
    """Relative KKT residuals and duality gap of shares b [K], ratios rho [K] and the multiplier lambda.

    primal: worst excess of a deadline (relative to A), of the band, of a bound.
    dual: worst over devices of min(|m - lambda| / max(m, lambda), what another share could improve, relative to w).
    complementarity: lambda times unused band, relative to the objective; pruning that the deadline does not ask for.
    gap: relative to the objective, or to one average device pruned altogether where that is more; where it is next to
    nothing an upper bound of it.
    """
    finish_s = problem.finish_s(share, rho)
    primal, broken = violations(problem, share, rho, finish_s)
    if not (problem.usual or problem.feasible.any()):
        return Certificate(primal, 0.0, primal, 0.0, 0.0, broken, LEAST_SUM)
    scale, price = unit(problem, rho), max(multiplier, 0.0)
    wasted, (drawn, dual) = _wasted(problem, share, rho, finish_s), _drawn(problem, share, rho, price)
    idle = 1.0 - float(share.sum())
    idle = 0.0 if abs(idle) <= BLUR else idle  # nobody's, however much a starved device would pay for it
    gap = (float((problem.weight * wasted + drawn).sum()) + price * abs(idle)) / scale
    if not gap <= CLEAR:
        lost = problem.weight * wasted + _beaten(problem, share, rho - wasted, price)
        gap = abs(float(lost.sum()) + price * idle) / scale
    dual = max(dual, -min(multiplier, 0.0) / scale)
    complementarity = max(price * max(idle, 0.0) / scale, float(wasted.max()))
    return Certificate(max(primal, dual, complementarity), gap, primal, dual, complementarity, broken, LEAST_SUM)


def _wasted(problem: PruningProblem, share: Array, rho: Array, finish_s: Array) -> Array:
    """Pruning [K] that the deadline does not ask for: what the time still left would be enough for.

    All of what can be pruned takes G + q / R, Liu, eqs. (24), (25); of those who send nothing R cancels out.
    """
    left_s = np.maximum(problem.slack_s * (1.0 - BLUR) - finish_s, 0.0)
    rate_bps = np.maximum(problem.rate_at(share), TINY)
    with np.errstate(divide="ignore", invalid="ignore"):
        spare = left_s * (rate_bps / (rate_bps * problem.compute_s + problem.bits))
    above = np.maximum(rho - problem.rho_min, 0.0)
    wasted = np.fmin(spare, above)  # 0 / 0 where G = q = 0: pruning nothing costs nothing
    return wasted if problem.usual else np.where(problem.feasible, wasted, 0.0)


def _drawn(problem: PruningProblem, share: Array, rho: Array, price: float) -> tuple[Array, float]:
    """What w rho(b) + price b could at most fall by with another share [K], and the worst violation of stationarity.

    The first by the tangent, as rho(b) is convex; where the marginal is all but the price the second is that near.
    With more band rho falls to rho_min and no further, so what a share has above its cap is lost at the full price;
    a share is at its lower bound when it is so but for rounding.
    """
    low, cap = problem.share_bounds()
    inside = np.minimum(share, cap)
    m = marginal(problem, inside)
    profit = m - price
    with np.errstate(invalid="ignore"):  # infinite for those left out that would have fixed bits to send
        more = np.fmin(profit * (cap - inside), problem.weight * np.maximum(rho - problem.rho_min, 0.0))
        less = profit * np.minimum(low - inside * (1.0 - BLUR), 0.0)
        mismatch = np.abs(profit) / np.maximum(m, max(price, 1e-300))
    drawn = np.where(cap > low, np.fmax(more, less), 0.0)
    return drawn + price * (share - inside), float(np.fmin(mismatch, drawn / problem.weight).max())


def _beaten(problem: PruningProblem, share: Array, rho: Array, price: float) -> Array:
    """By how much w rho(b) + price b of the best shares is below that of the shares [K].

    Of shares next to each other the difference would be rounding: there the tangent bounds it. The tangent is that of
    the curve up to the cap; what a share has above its cap is lost at the full price.
    """
    low, cap = problem.share_bounds()
    inside = np.minimum(share, cap)
    low = np.minimum(np.minimum(low, np.maximum(share, low * (1 - ALLOWED))), cap)  # squeezed into the band by rounding
    best = response(problem, price, low, cap)
    step = best - inside
    with np.errstate(invalid="ignore"):  # as in `_drawn`
        tangent = np.fmax((marginal(problem, inside) - price) * step, 0.0)
    exact = problem.weight * (rho - problem.rho_at(best)) - price * step
    return np.where(np.abs(step) <= CLOSE * inside, tangent, exact) + price * (share - inside)


def unit(problem: PruningProblem, rho: Array) -> float:
    """What an objective is compared with: itself, or one average device pruned altogether where that is more."""
    return max(problem.objective(rho), problem.mean_weight)


def certified(
    problem: PruningProblem, share: Array, rho: Array, multiplier: float, method: str, stationarity: float = TOLERANCE
) -> Allocation:
    """The allocation with its certificate.

    Raises:
        Uncertified: primal, complementarity or gap above 1e-8, or dual above `stationarity`.
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
) -> Allocation:
    """The allocation, if its certificate is good.

    Raises:
        Uncertified: primal, complementarity or gap (where it is claimed) above 1e-8, or dual above `stationarity`.
    """
    parts = (proof.primal, proof.complementarity, proof.gap if claims_gap else 0.0)
    if not (all(part <= TOLERANCE for part in parts) and proof.dual <= stationarity):
        broken = f" ({'; '.join(proof.broken)})" if proof.broken else ""
        raise Uncertified(
            f"The answer of {method} has residual {proof.residual:.2g} and duality gap {proof.gap:.2g}, "
            f"more than the allowed {TOLERANCE:g}{broken}; "
            "check that the quantities are SI units of sensible size, or use another method."
        )
    return _allocation(problem, share, rho, multiplier, proof, method)


def compared(problem: PruningProblem, share: Array, rho: Array, multiplier: float, method: str) -> Allocation:
    """The allocation with its full certificate, whatever it says: for comparison only."""
    proof = replace(certify(problem, share, rho, multiplier), claim="nothing; for comparison only")
    return _allocation(problem, share, rho, multiplier, proof, method)


def feasible(problem: PruningProblem, share: Array, rho: Array, multiplier: float, method: str) -> Allocation:
    """The allocation of a method that claims no optimality: bounds are checked, a late device is nobody's error.

    Raises:
        InvalidAllocation: names what is broken.
    """
    check_feasible(problem, share, rho, method)
    primal, broken = violations(problem, share, rho)
    nan = float("nan")
    proof = Certificate(primal, nan, primal, nan, nan, broken, "the bounds are kept; nothing about optimality")
    return _allocation(problem, share, rho, multiplier, proof, method)


def check_feasible(problem: PruningProblem, share: Array, rho: Array, method: str = "the allocator") -> None:
    """Raise InvalidAllocation unless share [K] and rho [K] are finite, in their bounds, and fit into the band."""
    for name, values in (("shares", share), ("pruning ratios", rho)):
        if np.shape(values) != (problem.num_devices,):
            raise InvalidAllocation(
                f"{method} returned {name} of shape {np.shape(values)}; "
                f"give one number for each of the {problem.num_devices} devices."
            )
        if not np.isfinite(values).all():
            k = int(np.argmin(np.isfinite(values)))
            raise InvalidAllocation(f"{method} returned {name} with {values[k]} for device {k}; give finite numbers.")
    _, broken = violations(problem, share, rho)
    if broken:
        raise InvalidAllocation(f"{method} returned an allocation that breaks a bound: {'; '.join(broken)}.")


def _allocation(problem, share, rho, multiplier, certificate, method) -> Allocation:
    infeasible = () if problem.usual else tuple(np.flatnonzero(~problem.feasible).tolist())
    objective = problem.objective(rho)
    return Allocation(share, rho, float(multiplier), certificate, infeasible, method, objective, problem=problem)


def violations(
    problem: PruningProblem, share: Array, rho: Array, finish_s: Array | None = None
) -> tuple[float, tuple[str, ...]]:
    """Worst relative violation of a bound, and all of them in words. finish_s [K]: checked against slack_s, s."""
    late = 0.0 if finish_s is None else float(_late(problem, finish_s).max())
    worst = (
        float(share.sum()) - 1.0, -float(share.min()), float(share.max()) - 1.0, late,
        float((problem.rho_min - rho).max()), float((rho - problem.rho_max).max()),
    )  # fmt: skip
    if all(excess <= ALLOWED for excess in worst):
        return max(0.0, *worst), ()
    return float(np.nanmax([0.0, *worst])), tuple(_broken(problem, share, rho, finish_s))


def _late(problem: PruningProblem, finish_s: Array) -> Array:
    """What is late, relative to the slack [K]; 0 for those that are left out."""
    if problem.usual:
        return finish_s / problem.slack_s - 1.0
    time_s = np.maximum(np.where(problem.feasible, problem.slack_s, 1.0), 1e-300)
    return np.where(problem.feasible, (finish_s - problem.slack_s) / time_s, 0.0)


def _broken(problem: PruningProblem, share: Array, rho: Array, finish_s: Array | None) -> Iterator[str]:
    """Every broken bound in words."""
    total = float(share.sum())
    kinds = [
        (-share, share, "has share {:.4g}, below 0"),
        (share - 1.0, share, "has share {:.4g}, above 1"),
        (problem.rho_min - rho, rho, "has rho {:.4g}, below rho_min"),
        (rho - problem.rho_max, rho, "has rho {:.4g}, above rho_max"),
    ]
    if finish_s is not None:
        kinds.insert(0, (_late(problem, finish_s), finish_s - problem.slack_s, "finishes {:.4g} s after its deadline"))
    if not total <= 1.0 + ALLOWED:
        yield f"the shares add up to {total:.10g}, above 1"
    for excess, values, words in kinds:
        devices = np.flatnonzero(~(excess <= ALLOWED))
        yield from (f"device {k} " + words.format(values[k]) for k in devices[:NAMED])
        if len(devices) > NAMED:
            yield f"and so on for {len(devices) - NAMED} more devices"
