"""Is an answer feasible, and is it optimal? Evaluated in SI from share, rho and lambda, however they were found.

Primal: the deadline in seconds, the band, the bounds. Dual: the marginal m = -d(w rho)/db, Liu (53), equals lambda,
unless rho has no room left on the side it is drawn to. Gap: objective minus the Lagrangian dual at lambda.
"""

from __future__ import annotations

import numpy as np

from solvers.problem import FULL, Allocation, Array, Certificate, InvalidAllocation, PruningProblem, Uncertified

TOLERANCE = 1e-8  # an answer that claims to be optimal must be this close, relative
ALLOWED = 1e-9  # rounding that a feasible answer may show
NAMED = 8  # broken bounds that are spelt out, of each kind


def certify(problem: PruningProblem, share: Array, rho: Array, multiplier: float) -> Certificate:
    """Relative KKT residuals and duality gap of shares b [K], ratios rho [K] and the multiplier lambda.

    primal: worst excess of a deadline (relative to A), of the band, of a bound.
    dual: worst over devices of min(|m - lambda| / max(m, lambda), what rho could still move towards the better side).
    complementarity: lambda times unused band, relative to the objective; pruning that the deadline does not ask for.
    gap: relative to the objective, or to one average device pruned altogether where that is more.
    """
    on = problem.feasible
    primal, broken = _primal(problem, share, rho, problem.finish_s(share, rho) - problem.slack_s)
    if not on.any():
        return Certificate(primal, 0.0, primal, 0.0, 0.0, broken)
    low, cap = problem.share_bounds()
    squeezed = (share < low) & (share >= low * (1 - ALLOWED))  # least shares that exceed the band by rounding
    low = np.minimum(np.where(squeezed, share, low), cap)
    scale = max(problem.objective(rho), float(problem.weight[on].mean()))
    idle = 1.0 - float(share[on].sum())
    idle = 0.0 if abs(idle) <= 1.0 - FULL else idle  # nobody's, however much a starved device would pay for it
    price = max(multiplier, 0.0)
    excess = float(np.max(rho - problem.rho_at(share), where=on, initial=0.0))
    dual = max(_dual(problem, share, multiplier, low, cap), -min(multiplier, 0.0) / scale)
    best = _inner_minimum(problem, price, low, cap)
    lost = problem.weight * (rho - problem.rho_at(best)) + price * (share - best)
    gap = abs(float(lost[on].sum()) + price * idle) / scale
    complementarity = max(price * max(idle, 0.0) / scale, excess)
    return Certificate(max(primal, dual, complementarity), gap, primal, dual, complementarity, broken)


def certified(
    problem: PruningProblem, share: Array, rho: Array, multiplier: float, method: str, stationarity: float = TOLERANCE
) -> Allocation:
    """The allocation with its certificate.

    Raises:
        Uncertified: primal, complementarity or gap above 1e-8, or dual above `stationarity`.
    """
    answer = _allocation(problem, share, rho, multiplier, certify(problem, share, rho, multiplier), method)
    proof = answer.certificate
    parts = (proof.primal, proof.complementarity, proof.gap)
    if not (max(parts) <= TOLERANCE and proof.dual <= stationarity):
        broken = f" ({'; '.join(proof.broken)})" if proof.broken else ""
        raise Uncertified(
            f"The answer of {method} has residual {proof.residual:.2g} and duality gap {proof.gap:.2g}, "
            f"more than the allowed {TOLERANCE:g}{broken}; "
            "check that the quantities are SI units of sensible size, or use another method."
        )
    return answer


def compared(problem: PruningProblem, share: Array, rho: Array, multiplier: float, method: str) -> Allocation:
    """The allocation with its full certificate, whatever it says: for comparison only."""
    return _allocation(problem, share, rho, multiplier, certify(problem, share, rho, multiplier), method)


def feasible(problem: PruningProblem, share: Array, rho: Array, multiplier: float, method: str) -> Allocation:
    """The allocation of a method that claims no optimality: bounds are checked, a late device is nobody's error.

    Raises:
        InvalidAllocation: names what is broken.
    """
    check_feasible(problem, share, rho, method)
    primal, broken = _primal(problem, share, rho, np.zeros_like(share))
    nan = float("nan")
    return _allocation(problem, share, rho, multiplier, Certificate(primal, nan, primal, nan, nan, broken), method)


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
    _, broken = _primal(problem, share, rho, np.zeros_like(share))
    if broken:
        raise InvalidAllocation(f"{method} returned an allocation that breaks a bound: {'; '.join(broken)}.")


def _allocation(problem, share, rho, multiplier, certificate, method) -> Allocation:
    infeasible = tuple(int(k) for k in np.flatnonzero(~problem.feasible))
    return Allocation(share, rho, float(multiplier), certificate, infeasible, method, problem.objective(rho))


def _primal(problem: PruningProblem, share: Array, rho: Array, late_s: Array) -> tuple[float, tuple[str, ...]]:
    """Worst relative violation, and all of them in words. late_s [K]: seconds after the deadline, s."""
    on = problem.feasible
    with np.errstate(divide="ignore", invalid="ignore"):
        late = np.where(on & (late_s > 0), late_s / problem.slack_s, 0.0)
    kinds = (
        (late, late_s, "finishes {:.4g} s after its deadline"),
        (-share, share, "has share {:.4g}, below 0"),
        (share - 1.0, share, "has share {:.4g}, above 1"),
        (problem.rho_min - rho, rho, "has rho {:.4g}, below rho_min"),
        (rho - problem.rho_max, rho, "has rho {:.4g}, above rho_max"),
    )
    total = float(share.sum())
    worst, broken = max(total - 1.0, 0.0), []
    if not total <= 1.0 + ALLOWED:
        broken.append(f"the shares add up to {total:.10g}, above 1")
    for excess, values, words in kinds:
        worst = max(worst, float(excess.max()))
        devices = np.flatnonzero(~(excess <= ALLOWED))
        broken += [f"device {k} " + words.format(values[k]) for k in devices[:NAMED]]
        if len(devices) > NAMED:
            broken.append(f"and so on for {len(devices) - NAMED} more devices")
    return worst, tuple(broken)


def _dual(problem: PruningProblem, share: Array, multiplier: float, low: Array, cap: Array) -> float:
    """Worst violation of stationarity: the marginal differs from lambda although rho has room to follow it."""
    gain = problem.weight * (problem.slack_s * problem.bits + problem.bits_fixed * problem.compute_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        spent = problem.rate_bps * problem.compute_s * share + problem.bits
        marginal = np.where(gain > 0, problem.rate_bps * gain / spent**2, 0.0)
        mismatch = np.abs(marginal - multiplier) / np.maximum(marginal, abs(multiplier))
    rho = problem.rho_at(share)
    room = np.where(marginal > multiplier, rho - problem.rho_at(cap), problem.rho_at(low) - rho)
    movable = problem.feasible & (cap > low)
    return float(np.max(np.minimum(np.nan_to_num(mismatch, nan=1.0), room), where=movable, initial=0.0))


def _inner_minimum(problem: PruningProblem, multiplier: float, low: Array, cap: Array) -> Array:
    """Shares [K] of least w rho(b) + lambda b, each within its bounds: Liu (54), clipped; at a bound where G = 0."""
    gain = problem.weight * (problem.slack_s * problem.bits + problem.bits_fixed * problem.compute_s)
    if multiplier == 0:
        return cap
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(gain, 0.0) * problem.rate_bps / multiplier)
        share = (root - problem.bits) / (problem.rate_bps * problem.compute_s)  # +-inf where G = 0
    return np.clip(np.nan_to_num(share, nan=0.0, posinf=2.0, neginf=-2.0), low, cap)
