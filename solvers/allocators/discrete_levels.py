"""Pruning to one of a few allowed levels per device (submodels of fixed widths): not convex.

Device k takes level j at the cost w rho_kj and needs the share b_k(rho_kj): a multiple-choice
knapsack. Pricing the band gives a bound that no choice can beat,

    max over lambda >= 0 of  sum_k min_j (w rho_kj + lambda b_kj) - lambda,

which equals that of the linear relaxation (Sinha and Zoltners, Operations Research 1979). Few
devices are solved exactly, by HiGHS; for many the choice at the best price, filled up, is within
about one device of the bound. The certificate says how far the answer can be from the best, and by
which bound.
"""

from __future__ import annotations

import numpy as np

from solvers.acceptance import accepted_solution
from solvers.arrays import Array, Counts, Mask
from solvers.bound_violations import violations
from solvers.certificate import objective_scale
from solvers.deadline_feasibility import fitting_bounds
from solvers.problem import SAME_SHARE, PruningProblem
from solvers.solution import Certificate, Solution

EXACT = 1000  # options in all, up to which branch and bound is tried
KEPT = 1e-9  # what HiGHS may exceed a constraint by
OPTIONS: dict[str, bool | float | str] = {
    "output_flag": False,
    "parallel": "off",
    "mip_rel_gap": 0.0,
    "mip_feasibility_tolerance": KEPT,
    "mip_max_nodes": 20_000,  # a limit on work, not on time: the answer is always the same
}
FEASIBLE = 2  # status of a solution of HiGHS
PRICED = "by the price of the band"
FILLS = 1000  # turns in which devices are moved to a better level by what is left of the band


def levels(problem: PruningProblem) -> Solution:
    """The allowed level of every device, and the shares they need, of least weighted sum.

    Raises:
        InfeasibleError: the largest levels do not fit into the band.
        ValueError: the problem has no levels.
    """
    table = _levels_of(problem)
    cost, needed = _options(problem)
    share = needed * (1.0 - SAME_SHARE)  # a sum that is above the band by rounding fills it
    price, bound, choice = price_band(cost, share)
    choice, words = _fill(cost, share, choice), PRICED
    if cost.size <= EXACT and _total(cost, choice) > bound:
        choice, bound, words = _branch(cost, share, choice, bound)
    taken = np.arange(len(cost)), choice
    rho = np.where(problem.feasible, table[taken], problem.rho_max)
    given = needed[taken] / max(1.0, _total(needed, choice))
    proof = certify_levels(problem, given, rho, bound, words)
    return accepted_solution(problem, given, rho, price, proof, "levels", claims_gap=False)


def _levels_of(problem: PruningProblem) -> Array:
    """The allowed values of rho [K, L]."""
    if problem.levels is None:
        raise ValueError(
            "levels needs the allowed values of rho in problem.levels; use kkt where all are "
            "allowed."
        )
    return problem.levels


def _options(problem: PruningProblem) -> tuple[Array, Array]:
    """Costs w rho and shares [K, L], inf where a level is none or late; 0 where A <= 0."""
    table, (low, _) = _levels_of(problem), fitting_bounds(problem)
    share = problem.share_at(table.T).T
    last = table == problem.rho_max[:, None]
    fits = (share <= 1.0 + SAME_SHARE) & ~np.isnan(table)
    share = np.where(last, low[:, None], np.where(fits, share, np.inf))
    on = problem.feasible[:, None]
    return np.where(on, problem.weight[:, None] * table, 0.0), np.where(on, share, 0.0)


def price_band(cost: Array, share: Array) -> tuple[float, float, Counts]:
    """The price of the band, the bound at that price, and choices [K] at it that fit.

    Where the lines cost + price (share - 1) of two choices cross, one too wide and one that fits,
    there is the next price; when no choice lies below the crossing it is the summit of the dual
    function.

    Args:
        cost: w rho of the options [K, L].
        share: b that they need [K, L].
    """
    wide, narrow = _best(cost, share, 0.0), _best(share, cost, 0.0)
    if _total(share, wide) <= 1:
        return 0.0, _total(cost, wide), wide
    while True:
        saved = _total(share, wide) - _total(share, narrow)
        price = (_total(cost, narrow) - _total(cost, wide)) / saved
        summit = _total(cost, narrow) + price * (_total(share, narrow) - 1.0)
        choice = _best(cost, share, price)
        used = _total(share, choice)
        value = _total(cost, choice) + price * (used - 1.0)
        known = used in (_total(share, wide), _total(share, narrow))
        if value >= summit - 1e-15 * abs(summit) or known:
            return price, min(value, summit), _partly_wide(share, narrow, wide)
        wide, narrow = (choice, narrow) if used > 1 else (wide, choice)


def _partly_wide(share: Array, narrow: Counts, wide: Counts) -> Counts:
    """Choices [K] that fit: the wide ones of the first devices, the narrow ones of the others.

    At their price both cost the same, for many devices where these are alike.
    """
    rows = np.arange(len(share))
    used = _total(share, narrow) + np.cumsum(share[rows, wide] - share[rows, narrow])
    first = int(np.flatnonzero(used <= 1.0).max(initial=-1))
    return np.where(rows <= first, wide, narrow)


def _best(cost: Array, share: Array, price: float) -> Counts:
    """Choices [K] of least cost + price share; of equal ones that of least share."""
    priced = cost + price * np.where(np.isfinite(share), share, 0.0)
    value = np.where(np.isfinite(cost + share), priced, np.inf)
    least = value.min(axis=1, keepdims=True)
    choice: Counts = np.argmin(np.where(value <= least, share, np.inf), axis=1)
    return choice


def _total(values: Array, choice: Counts) -> float:
    """The sum of the chosen values."""
    return float(values[np.arange(len(values)), choice].sum())


def _fill(cost: Array, share: Array, choice: Counts) -> Counts:
    """Move one device after the other to the best level that the idle band allows."""
    rows, choice = np.arange(len(cost)), choice.copy()
    for _ in range(FILLS):
        more = share - share[rows, choice][:, None]
        idle = 1.0 - _total(share, choice)
        gain = np.where(more <= idle, cost[rows, choice][:, None] - cost, 0.0)
        move = np.argmax(gain, axis=1)
        best = gain[rows, move]
        # who has moved has no better move in less band: all at once, up to one that fits no more
        turn = np.argsort(-best, kind="stable")[: np.count_nonzero(best > 0)]
        fits = np.cumsum(more[turn, move[turn]]) <= idle
        turn = turn[np.logical_and.accumulate(fits)]
        if not turn.size:
            break
        choice[turn] = move[turn]
    return choice


def _branch(cost: Array, share: Array, choice: Counts, bound: float) -> tuple[Counts, float, str]:
    """The best choice by branch and bound, or the given one where that is not worse, and the
    better bound.
    """
    device, level = np.nonzero(np.isfinite(cost + share))
    costs, shares = cost[device, level], share[device, level]
    scale = max(float(costs.max()), 1e-300)
    # once more in less band, where it shows that HiGHS keeps constraints to a tolerance
    for band in (1.0, 1.0 - KEPT):
        found, least = _binary(costs / scale, shares, device, band)
        if band == 1.0:
            bound = max(bound, least * scale)
        if found is None:
            continue
        taken = np.zeros(len(cost), dtype=int)
        taken[device[found]] = level[found]
        if _total(share, taken) <= 1.0:
            taken = _fill(cost, share, taken)
            choice = taken if _total(cost, taken) < _total(cost, choice) else choice
            break
    return choice, min(bound, _total(cost, choice)), "by branch and bound (HiGHS)"


def _binary(cost: Array, share: Array, device: Counts, band: float) -> tuple[Mask | None, float]:
    """Options taken [N], or None, and a lower bound: one of every device, of least cost.

    By highspy, as the copy of HiGHS in scipy prints to the standard output whatever it is told.
    """
    import highspy

    count, devices, lp = len(cost), int(device[-1]) + 1, highspy.HighsLp()
    lp.num_col_, lp.num_row_, lp.col_cost_ = count, devices + 1, cost
    lp.col_lower_, lp.col_upper_ = np.zeros(count), np.ones(count)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * count
    lp.row_lower_, lp.row_upper_ = np.r_[np.ones(devices), -np.inf], np.r_[np.ones(devices), band]
    lp.a_matrix_.start_ = 2 * np.arange(count + 1)
    lp.a_matrix_.index_ = np.stack((device, np.full(count, devices)), axis=1).ravel()
    lp.a_matrix_.value_ = np.stack((np.ones(count), share), axis=1).ravel()
    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy has no annotations here
    for name, value in OPTIONS.items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    solver.run()
    info = solver.getInfo()
    if info.primal_solution_status != FEASIBLE:
        return None, float(info.mip_dual_bound)
    return np.array(solver.getSolution().col_value) > 0.5, float(info.mip_dual_bound)


def certify_levels(
    problem: PruningProblem,
    share: Array,
    rho: Array,
    bound: float | None = None,
    words: str = PRICED,
) -> Certificate:
    """The certificate of shares and levels.

    primal: worst excess of a deadline, of the band, or distance from an allowed level. gap:
    objective above the bound, relative as in `certify`. dual: what the best move of one device
    into the idle band would improve.

    Args:
        problem: K devices.
        share: b [K].
        rho: pruned share [K].
        bound: one that no choice beats; None: that of the price of the band.
        words: where the bound is from.
    """
    primal, broken = violations(problem, share, rho, problem.finish_s(share, rho))
    cost, needed = _options(problem)
    bound = price_band(cost, needed)[1] if bound is None else bound
    on, scale = problem.feasible, max(objective_scale(problem, rho), 1e-300)
    off = np.where(on, np.nanmin(np.abs(_levels_of(problem) - rho[:, None]), axis=1), 0.0)
    idle = 1.0 - float(share.sum())
    better = problem.weight[:, None] * rho[:, None] - cost
    gain = np.where(on[:, None] & (needed - share[:, None] <= idle + SAME_SHARE), better, 0.0)
    moved = max(0.0, float(np.nanmax(gain))) / scale
    objective = problem.objective(rho)
    gap = max(0.0, objective - bound) / scale
    whole = "it" if objective >= scale else "one average device pruned altogether"
    primal = max(primal, float(off.max()))
    least = f"no allowed levels have a weighted sum lesser by more than {gap:.2g} of {whole}"
    return Certificate(max(primal, moved), gap, primal, moved, 0.0, broken, f"{least}, {words}")
