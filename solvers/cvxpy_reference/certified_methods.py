"""`convex`, `convex-fair`, `convex-alpha-fair`, `convex-latency`: the statements, certified.

Every problem is solved again in units of its own answer until the certificate accepts that. All
inputs of devices may lie three decades apart, gains six; further apart an answer may be refused.
Ratios are the least that meet the deadlines with the shares: Liu, eq. (47).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from solvers.allocators.alpha_fair import alpha_fair_solution, certified_tangent
from solvers.allocators.fair import certify_fair, with_rho_at_most
from solvers.allocators.min_max_latency import certify_latency, time_before, upload_work
from solvers.arrays import Array, Mask
from solvers.certificate import accepted_solution, certify, objective_scale
from solvers.cvxpy_reference.statements import Statement, largest_utility, least_time
from solvers.deadline_feasibility import fitting_bounds
from solvers.marginal_gains import marginal_gain
from solvers.problem import PruningProblem
from solvers.solution import InfeasibleError, Solution, UncertifiedError

PASSES = 6  # at most
GOOD = 1e-9  # gap that ends the passes
FAR = 1e4  # no share shrinks by more in one pass
LEAST_UNIT = 1e-3  # of the kept share
GAP = 1e-8  # allowed, relative to the objective itself, which can be far below its scale
STATIONARITY = 1e-4  # the gap, which must be below 1e-8, is quadratic in the error of marginals
SPENT = 1e-6  # what least shares leave goes to whom it is worth most
ROUNDING = 1e-14
Units = dict[str, Any]


def best_certified(
    method: str, exact: str, answers: Iterable[Any], certified: Callable[..., Solution]
) -> Solution:
    """The first answer of which the gap is `GOOD`, else the best of those that are certified.

    Raises:
        UncertifiedError: names the method and the exact one to use.
    """
    best: Solution | None = None
    for answer in answers:
        try:
            found = certified(*answer)
        except UncertifiedError:
            continue
        if best is None or found.certificate.gap < best.certificate.gap:
            best = found
        if best.certificate.gap <= GOOD:
            break
    if best is None:
        raise UncertifiedError(
            f"{method} finds no answer that its certificate accepts, as may be where the inputs of "
            f"devices lie more than three decades apart (gains: six); use {exact}."
        )
    return best


def solved_again(
    problem: PruningProblem,
    low: Array,
    cap: Array,
    start: Array,
    build: Callable[[int, bool], Statement],
    units: Callable[[PruningProblem, Array], tuple[Units, float]],
) -> Iterator[tuple[Array, float]]:
    """Shares [K] that fill the band, and its price, of one pass after the other.

    Args:
        problem: K devices.
        low: least shares [K].
        cap: largest shares [K]; the statement is about those of whom it is more.
        start: shares [K] to measure in, times any number.
        build: the statement of so many devices, under a density of noise or not.
        units: parameters around shares of some devices, and the unit of the objective.
    """
    on, share, left = cap > low, low.copy(), 1.0 - float(low.sum())
    if not on.any():
        yield share, 0.0
        return
    few, room, band = chosen(problem, on), (cap - low)[on], 1.0 - float(low[~on].sum())
    b0 = start[on] * min(1.0, band / float(start[on].sum()))
    for _ in range(PASSES):
        (values, unit), widest = units(few, b0), float(b0.max())
        values |= {"b0": b0 / widest, "band": min(band / widest, FAR)}
        values |= {} if few.snr is None else shannon_units(few.snr / b0)
        try:
            beta, price = build(len(b0), few.snr is not None).solve(values)
        except UncertifiedError:  # another point may be easier
            b0 = np.sqrt(b0 * band / len(b0))
            continue
        share[on] = low[on] + filled(b0 * beta - low[on], room, left)
        yield share.copy(), price * unit / widest if share.sum() >= 1.0 - GAP else 0.0
        b0 = np.maximum(share[on], b0 / FAR)


def chosen(problem: PruningProblem, on: Mask) -> PruningProblem:
    """The problem of the devices `on` [K] alone."""
    rows = {field.name: getattr(problem, field.name) for field in fields(problem)}
    rows = {name: row[on] for name, row in rows.items() if isinstance(row, np.ndarray)}
    return replace(problem, **rows)


def filled(extra: Array, room: Array, left: float) -> Array:
    """Shares above the least ones [K], scaled until they fill what is left or have no room."""
    extra = np.clip(extra, 0.0, room)
    for _ in range(4):
        free = extra < room
        times = (left - float(extra[~free].sum())) / max(float(extra[free].sum()), 1e-300)
        extra = np.where(free, np.clip(extra * times, 0.0, room), extra)
    return extra


def shannon_units(snr: Array) -> Units:
    """Parameters of the rates where noise is a density, at these ratios within the shares [K]."""
    return {"log_snr": np.log1p(snr), "noise": 1.0 / (1.0 + snr), "signal": snr / (1.0 + snr)}


def pruning_units(problem: PruningProblem, b0: Array, alpha: float) -> tuple[Units, float]:
    """Parameters of the kept shares x and their utility, each in an x nearby."""
    rate_bps = problem.rate_at(b0)
    busy = problem.compute_s * rate_bps + problem.bits
    x0 = (problem.slack_s * rate_bps - problem.bits_fixed) / busy
    slope = problem.gain / problem.weight * rate_bps / busy**2
    near = np.maximum(x0 if alpha < np.inf else np.full_like(x0, x0.min()), LEAST_UNIT)
    weight = problem.weight * near ** (1.0 - alpha) if alpha < np.inf else near
    bounds = {"x_min": (1.0 - problem.rho_max) / near, "x_max": (1.0 - problem.rho_min) / near}
    kept = {"kappa": problem.compute_s * rate_bps / busy, "x0": x0 / near, "slope": slope / near}
    return kept | bounds | {"weight": weight / weight.max()}, float(weight.max())


def pruning_answers(problem: PruningProblem, alpha: float) -> Iterator[tuple[Array, float]]:
    """Shares [K] and price of every pass."""
    low, cap = fitting_bounds(problem)
    left = 1.0 - float(low.sum())
    if left <= SPENT:
        kept = (1.0 - problem.rho_max) ** alpha
        worth = np.where(cap > low, marginal_gain(problem, low) / kept, 0.0)
        share, k = low.copy(), int(worth.argmax())
        share[k] += min(max(left, 0.0), cap[k] - low[k])
        yield share, float(worth[k])
    if left > ROUNDING:
        start = problem.share_for_rate((problem.bits + problem.bits_fixed) / problem.slack_s)
        build = partial(largest_utility, alpha=alpha)
        units = partial(pruning_units, alpha=alpha)
        yield from solved_again(problem, low, cap, np.minimum(start, 1.0), build, units)


def convex(problem: PruningProblem) -> Solution:
    """Shares and pruning ratios of least weighted pruning; see `solvers.allocate`.

    Raises:
        InfeasibleError: the least shares do not fit.
        UncertifiedError: no answer of Clarabel is within 1e-8 of the optimum.
        ValueError: as `kkt`.
    """
    problem.refuse_levels("convex")

    def certified(share: Array, price: float) -> Solution:
        rho = problem.rho_at(share)
        proof, scale = certify(problem, share, rho, price), objective_scale(problem, rho)
        if not proof.gap * scale <= GAP * problem.objective(rho) + ROUNDING * scale:
            raise UncertifiedError("far from the optimum, relative to the objective")
        return accepted_solution(problem, share, rho, price, proof, "convex", STATIONARITY)

    return best_certified("convex", "kkt", pruning_answers(problem, 0.0), certified)


def convex_fair(problem: PruningProblem) -> Solution:
    """Least maximal rho, ties broken by the least sum: by `convex`, with no rho above that.

    Raises:
        InfeasibleError, UncertifiedError, ValueError: as `convex`.
    """
    problem.refuse_levels("convex-fair")

    def certified(share: Array, price: float) -> Solution:
        top = float(problem.rho_at(share).max(where=problem.feasible, initial=0.0))
        try:
            tied = convex(with_rho_at_most(problem, top + ROUNDING))
        except InfeasibleError as squeezed:
            raise UncertifiedError("no shares reach the largest rho but for rounding") from squeezed
        objective, price, proof = certify_fair(problem, tied)
        found = accepted_solution(problem, tied.share, tied.rho, price, proof, "convex-fair", 1.0)
        return replace(found, objective=objective)

    return best_certified("convex-fair", "fair", pruning_answers(problem, np.inf), certified)


def convex_alpha_fair(problem: PruningProblem, alpha: float = 1.0) -> Solution:
    """The largest weighted sum of U(1 - rho), as `solvers.allocators.alpha_fair`.

    Raises:
        InfeasibleError, UncertifiedError, ValueError: as `convex`.
    """
    if alpha in (0.0, np.inf):
        return convex(problem) if alpha == 0 else convex_fair(problem)
    problem.refuse_levels("convex-alpha-fair")
    method = "convex-alpha-fair"

    def certified(share: Array, price: float) -> Solution:
        with np.errstate(divide="ignore"):
            proof = certified_tangent(problem, alpha, share, np.log(price))
        return alpha_fair_solution(problem, alpha, share, proof, method, STATIONARITY)

    return best_certified(method, "alpha-fair", pruning_answers(problem, alpha), certified)


def convex_latency(problem: PruningProblem) -> Solution:
    """Least maximal finish time, at rho_min.

    Raises:
        UncertifiedError: as `convex`.
        ValueError: as `latency`.
    """
    rho = np.where(problem.feasible, problem.rho_min, problem.rho_max)
    bits, busy_s = upload_work(problem, time_before(problem))
    sends = problem.feasible & (bits > 0)
    work = replace(problem, bits=bits, compute_s=busy_s)

    def units(few: PruningProblem, b0: Array) -> tuple[Units, float]:
        upload_s = few.bits / few.rate_at(b0)
        second = float((few.compute_s + upload_s).max())
        return {"busy": few.compute_s / second, "upload": upload_s / second}, 1.0

    def certified(share: Array, price: float) -> Solution:
        objective, price, proof = certify_latency(problem, share, rho)
        found = accepted_solution(problem, share, rho, price, proof, "convex-latency")
        return replace(found, objective=objective)

    low, start = np.zeros_like(bits), bits / problem.rate_bps
    start = start / start.sum(where=sends)
    answers = solved_again(work, low, sends.astype(float), start, least_time, units)
    return best_certified("convex-latency", "latency", answers, certified)
