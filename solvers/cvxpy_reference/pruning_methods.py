"""`convex`, `convex-fair` and `convex-alpha-fair`: shares and pruning ratios, certified.

Ratios are the least that meet the deadlines with the shares: Liu, eq. (47).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from solvers.acceptance import accepted_solution
from solvers.allocators.alpha_fair import alpha_fair_solution, certified_tangent, checked_alpha
from solvers.allocators.fair import certify_fair, with_rho_at_most
from solvers.arrays import Array
from solvers.certificate import certify, objective_scale
from solvers.cvxpy_reference import statements
from solvers.cvxpy_reference.answers import NEXT_TO_NOTHING, Answers, Choice, best_certified
from solvers.deadline_feasibility import fitting_bounds
from solvers.marginal_gains import marginal_gain
from solvers.problem import PruningProblem
from solvers.solution import InfeasibleError, Solution, UncertifiedError

GAP = 1e-8  # allowed, relative to the objective itself, which can be far below its scale
STATIONARITY = 1.0  # what a device without weight would give for band is no part of the claim
ROUNDING = 1e-15
SPENT = 1e-6  # what least shares leave goes to whom it is worth most
PASSES = 4  # of `largest_sum`, each in units of the answer before
LEAST_UNIT = 1e-3  # of kept shares


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

    def certified(share: Array, _: float) -> Solution:
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
    alpha = checked_alpha(alpha)
    if alpha in (0.0, np.inf):
        return convex(problem) if alpha == 0 else convex_fair(problem)
    problem.refuse_levels("convex-alpha-fair")
    method = "convex-alpha-fair"

    def certified(share: Array, price: float) -> Solution:
        with np.errstate(divide="ignore"):
            proof = certified_tangent(problem, alpha, share, np.log(price))
        return alpha_fair_solution(problem, alpha, share, proof, method, STATIONARITY)

    return best_certified(method, "alpha-fair", pruning_answers(problem, alpha), certified)


def pruning_answers(problem: PruningProblem, alpha: float) -> Answers:
    """Shares [K] that fill the band, and their price, of one answer after the other."""
    low, cap = fitting_bounds(problem)
    on, left, share = cap > low, 1.0 - float(low.sum()), low.copy()
    if left <= SPENT or not on.any():
        worth = np.where(on, marginal_gain(problem, low) / (1.0 - problem.rho_max) ** alpha, 0.0)
        k = int(worth.argmax())
        share[k] += min(max(left, 0.0), cap[k] - low[k])
        yield share.copy(), float(worth[k])
    if left <= ROUNDING or not on.any():
        return
    choice = Choice(problem, on, low, cap)
    for share[on], price in (largest_sums if alpha < 1.0 else most_utility)(choice, alpha):
        yield share.copy(), price if share.sum() >= 1.0 - GAP else 0.0  # of band left over: none


def most_utility(choice: Choice, alpha: float) -> Answers:
    """Shares [N] and price of `largest_utility`."""
    p = choice.problem
    values = choice.logarithms(
        compute=p.compute_s / p.slack_s,
        upload=p.bits / p.rate_bps / p.slack_s,
        fixed=p.bits_fixed / p.rate_bps / p.slack_s,
        x_min=1.0 - p.rho_max,
        x_max=1.0 - p.rho_min,
        log_weight=p.weight,
    )
    heaviest = float(p.weight.max())
    values |= {"weight": p.weight / heaviest}
    statement = statements.largest_utility(*choice.size, alpha)
    for log_b, multiplier, value in statement.answers(values):
        unit = np.exp(value) / (alpha - 1.0) if alpha > 1.0 else heaviest
        yield choice.filled(np.exp(log_b)), float(multiplier * unit / choice.band)


def largest_sums(choice: Choice, alpha: float) -> Answers:
    """Shares [N] and price of `largest_sum` in units of the answer before, at first of alpha 1."""
    p, statement = choice.problem, statements.largest_sum(*choice.size, alpha)
    b0, _ = next(most_utility(choice, 1.0), (choice.filled(choice.cap), 0.0))
    for _ in range(PASSES):
        rate_bps = p.rate_at(b0)
        busy = p.compute_s * rate_bps + p.bits
        x0 = (p.slack_s * rate_bps - p.bits_fixed) / busy
        x_unit = np.maximum(x0, LEAST_UNIT)
        weight = p.weight * x_unit ** (1.0 - alpha)
        heaviest, widest = float(weight.max()), float(b0.max())
        values: dict[str, Any] = {
            "unit": b0 / widest,
            "band": choice.band / widest,
            "kappa": p.compute_s * rate_bps / busy,
            "x0": x0 / x_unit,
            "slope": p.gain / p.weight * rate_bps / busy**2 / x_unit,
            "x_min": (1.0 - p.rho_max) / x_unit,
            "x_max": (1.0 - p.rho_min) / x_unit,
            "weight": weight / heaviest,
        }
        if p.snr is not None:
            c = p.snr / b0
            values |= {"log_snr": np.log1p(c), "noise": 1.0 / (1.0 + c), "signal": c / (1.0 + c)}
        answer = next(statement.answers(values), None)
        if answer is None:
            return
        beta, multiplier, _ = answer
        b = choice.filled(b0 * beta)
        yield b, float(multiplier * heaviest / widest / (1.0 - alpha))
        b0 = np.maximum(b, NEXT_TO_NOTHING * b0)
