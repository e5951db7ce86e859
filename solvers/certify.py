"""Is an answer feasible, and is it optimal? Evaluated in SI from share, rho and lambda, however they were found.

Primal: the deadline in seconds, the band, the bounds. Dual: the marginal m = -d(w rho)/db, Liu (53), equals lambda,
unless rho has no room left on the side it is drawn to. Gap: objective minus the Lagrangian dual at lambda.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.marginal import marginal, response
from solvers.problem import SAME, Allocation, Array, Certificate, InvalidAllocation, PruningProblem, Uncertified

TOLERANCE = 1e-8  # an answer that claims to be optimal must be this close, relative
BLUR = 1e-14  # rounding of a sum of shares
ALLOWED = 1e-9  # rounding that a feasible answer may show
NAMED = 8  # broken bounds that are spelt out, of each kind
LEAST_SUM = "no shares and ratios have a lesser weighted sum of rho, by more than the duality gap"


def certify(problem: PruningProblem, share: Array, rho: Array, multiplier: float) -> Certificate:
    """Relative KKT residuals and duality gap of shares b [K], ratios rho [K] and the multiplier lambda.

    primal: worst excess of a deadline (relative to A), of the band, of a bound.
    dual: worst over devices of min(|m - lambda| / max(m, lambda), what rho could still move towards the better side).
    complementarity: lambda times unused band, relative to the objective; pruning that the deadline does not ask for.
    gap: relative to the objective, or to one average device pruned altogether where that is more.
    """
    primal, broken = violations(problem, share, rho, problem.finish_s(share, rho))
    if not (problem.usual or problem.feasible.any()):
        return Certificate(primal, 0.0, primal, 0.0, 0.0, broken, LEAST_SUM)
    low, cap = problem.share_bounds()
    low = np.minimum(np.minimum(low, np.maximum(share, low * (1 - ALLOWED))), cap)  # squeezed into the band by rounding
    scale, price = unit(problem, rho), max(multiplier, 0.0)
    best, asked = response(problem, price, low, cap), problem.rho_at(share)
    near = np.abs(best - share) <= SAME * share  # `_dual` sees to those that are that close
    ideal = asked if near.all() else np.where(near, asked, problem.rho_at(best))
    idle = 1.0 - float(share.sum())
    idle = 0.0 if abs(idle) <= BLUR else idle  # nobody's, however much a starved device would pay for it
    lost = problem.weight * (rho - ideal) + price * np.where(near, 0.0, share - best)
    gap = abs(float(lost.sum()) + price * idle) / scale
    dual = max(_dual(problem, share, asked, multiplier, low, cap), -min(multiplier, 0.0) / scale)
    complementarity = max(price * max(idle, 0.0) / scale, float((rho - asked).max()))
    return Certificate(max(primal, dual, complementarity), gap, primal, dual, complementarity, broken, LEAST_SUM)


def unit(problem: PruningProblem, rho: Array) -> float:
    """What an objective is compared with: itself, or one average device pruned altogether where that is more."""
    return max(problem.objective(rho), problem.mean_weight)


def _dual(problem: PruningProblem, share: Array, rho: Array, price: float, low: Array, cap: Array) -> float:
    """Worst violation of stationarity: the marginal differs from lambda although rho has room to follow it."""
    m = marginal(problem, share)
    with np.errstate(invalid="ignore"):  # of a device without any rate, caught as late
        mismatch = np.abs(m - price) / np.maximum(np.maximum(m, abs(price)), 1e-300)
        gain = np.fmin(rho - problem.rho_min, m * (cap - share) / problem.weight)  # of all it could take: rho is convex
    room = np.where(m > price, gain, (problem.rho_max - rho) * (share > low))
    return float((np.fmin(mismatch, room) * (cap > low)).max())


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
    total = float(share.sum())
    kinds = [
        (-share, share, "has share {:.4g}, below 0"),
        (share - 1.0, share, "has share {:.4g}, above 1"),
        (problem.rho_min - rho, rho, "has rho {:.4g}, below rho_min"),
        (rho - problem.rho_max, rho, "has rho {:.4g}, above rho_max"),
    ]
    if finish_s is not None:
        late_s = finish_s - problem.slack_s
        late = np.where(problem.feasible, late_s, 0.0) / np.maximum(problem.slack_s, 1e-300)
        kinds.insert(0, (late, late_s, "finishes {:.4g} s after its deadline"))
    worst = [total - 1.0, *(float(excess.max()) for excess, _, _ in kinds)]
    if all(excess <= ALLOWED for excess in worst):
        return max(0.0, *worst), ()
    broken = [] if total <= 1.0 + ALLOWED else [f"the shares add up to {total:.10g}, above 1"]
    for excess, values, words in kinds:
        devices = np.flatnonzero(~(excess <= ALLOWED))
        broken += [f"device {k} " + words.format(values[k]) for k in devices[:NAMED]]
        if len(devices) > NAMED:
            broken.append(f"and so on for {len(devices) - NAMED} more devices")
    return float(np.nanmax([0.0, *worst])), tuple(broken)
