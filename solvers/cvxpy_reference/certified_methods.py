"""`convex`, `convex-fair`, `convex-alpha-fair`, `convex-latency`, `convex-energy`, certified.

Each method takes Clarabel's answers of one pass after the other until a certificate is good enough,
else the best of them. As one unit in the tenth digit of rho is many seconds for a device with
hardly any band, only shares and price are Clarabel's; rho is what the deadline asks for with these
shares, Liu, eq. (47). Answers that are not good enough are refused, as those of other methods are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from solvers.allocators.alpha_fair import alpha_fair_solution, certified_tangent
from solvers.allocators.fair import certify_fair, with_rho_at_most
from solvers.allocators.kkt import largest_marginal_gain
from solvers.allocators.min_max_latency import certify_latency, time_before, upload_work
from solvers.arrays import Array
from solvers.certificate import accepted_solution, certify, objective_scale, solution_of
from solvers.cvxpy_reference.least_energy import least_joules
from solvers.cvxpy_reference.pruning_and_latency import (
    Range,
    least_largest,
    least_latency,
    least_pruning,
    most_utility,
    spread,
)
from solvers.deadline_feasibility import fitting_bounds
from solvers.marginal_gains import marginal_gain
from solvers.min_energy.allocator import energy_solution, least_shares
from solvers.min_energy.energy_certificate import (
    certify_energy,
    price_covering_marginals,
)
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.problem import FEASIBILITY_TOLERANCE, PruningProblem
from solvers.solution import Solution, UncertifiedError

GOOD = 1e-9  # duality gap, relative to the objective, that ends the passes
STATIONARITY = 1e-4  # the gap, which must be below 1e-8, is quadratic in the error of marginals
ENERGY_GAP = 1e-4  # allowed; the bound on the joules is linear in the error of the marginals
LEAST = 1e-12  # of its unit that an objective can be told from zero
FILLED = 1e-6  # least shares that add up to this far from one fill the band
DIGITS = 1e-15  # of rho: who sends nothing may else be late by rounding
Answer = TypeVar("Answer")


def best(answers: Iterable[Answer], gap: Callable[[Answer], float]) -> Answer:
    """The first answer of which the gap is good enough, else the one of least gap.

    Raises:
        UncertifiedError: Clarabel found no first answer.
    """
    found: list[tuple[float, Answer]] = []
    try:
        for answer in answers:
            off = gap(answer)
            found.append((off if off == off else np.inf, answer))
            if off <= GOOD:
                break
    except UncertifiedError:
        if not found:
            raise
    return min(found, key=lambda each: each[0])[1]


def convex(problem: PruningProblem) -> Solution:
    """Shares and pruning ratios of least weighted pruning; see `solvers.allocate`.

    Raises:
        InfeasibleError: the least shares do not fit.
        UncertifiedError: Clarabel found no answer, or it is off by more than 1e-8.
        ValueError: as `kkt`.
    """
    problem.refuse_levels("convex")
    low, cap = fitting_bounds(problem)
    if low.sum() >= 1.0 - FEASIBILITY_TOLERANCE:
        share, price = _squeezed(problem, low, cap)
    else:
        share, price = best(least_pruning(problem), lambda a: _relative_gap(problem, *a))
    rho = problem.rho_at(share)
    proof = certify(problem, share, rho, price)
    return accepted_solution(problem, share, rho, price, proof, "convex", STATIONARITY)


def _relative_gap(problem: PruningProblem, share: Array, price: float) -> float:
    """Duality gap relative to the objective itself, and stationarity in the same measure."""
    rho = problem.rho_at(share)
    proof, scale = certify(problem, share, rho, price), objective_scale(problem, rho)
    gap = proof.gap * scale / max(problem.objective(rho), LEAST * scale, 1e-300)
    return max(abs(gap), proof.dual * GOOD / STATIONARITY)


def _squeezed(problem: PruningProblem, low: Array, cap: Array) -> tuple[Array, float]:
    """Shares and price where the feasible set is all but a point, without an interior."""
    keenest = int(np.argmax(np.where(cap > low, marginal_gain(problem, low), 0.0)))
    share = low.copy()
    most = low[keenest] + max(1.0 - float(low.sum()), 0.0)
    share[keenest] = min(most, max(cap[keenest], low[keenest]))
    return share, largest_marginal_gain(problem, low, cap)


def convex_fair(problem: PruningProblem) -> Solution:
    """Least maximal rho, ties broken by the least sum.

    The bound on rho is Clarabel's. The least shares that keep it fill the band, or what they leave
    is divided by `convex`.

    Raises:
        InfeasibleError, UncertifiedError, ValueError: as `convex`.
    """
    problem.refuse_levels("convex-fair")
    low, _ = fitting_bounds(problem)
    full = low.sum() >= 1.0 - FEASIBILITY_TOLERANCE
    bounds = [1.0] if full else least_largest(problem)
    answers = (_keeping(problem, bound, low) for bound in bounds)
    answer = best(answers, lambda a: a.certificate.gap)
    proven = accepted_solution(
        problem, answer.share, answer.rho, answer.multiplier, answer.certificate, "convex-fair", 1.0
    )
    return replace(proven, objective=answer.objective)


def _keeping(problem: PruningProblem, bound: float, low: Array) -> Solution:
    """The answer, with its certificate, in which no rho is above the bound."""
    tied = with_rho_at_most(problem, min(bound + DIGITS, 1.0))
    least = Range(tied).low if bound < 1.0 else low
    if least.sum() >= 1.0 - FILLED:
        share = spread(problem, np.maximum(least, low), low)
        rho = problem.rho_at(share)
        tied = with_rho_at_most(problem, float(rho.max(where=problem.feasible, initial=0.0)))
        proof = certify(tied, share, rho, largest_marginal_gain(tied, *tied.share_bounds()))
        answer = solution_of(problem, share, rho, 0.0, proof, "convex-fair")
    else:
        answer = convex(tied)
    objective, multiplier, proof = certify_fair(problem, answer)
    return replace(answer, objective=objective, multiplier=multiplier, certificate=proof)


def convex_alpha_fair(problem: PruningProblem, alpha: float = 1.0) -> Solution:
    """The largest weighted sum of U(1 - rho), as `solvers.allocators.alpha_fair`.

    Raises:
        InfeasibleError, UncertifiedError, ValueError: as `convex`.
    """
    if alpha in (0.0, np.inf):
        return convex(problem) if alpha == 0 else convex_fair(problem)
    problem.refuse_levels("convex-alpha-fair")
    low, cap = fitting_bounds(problem)
    if low.sum() >= 1.0 - FEASIBILITY_TOLERANCE:
        answers: Iterable[tuple[Array, float]] = [(_squeezed(problem, low, cap)[0], np.inf)]
    else:
        answers = most_utility(problem, alpha)
    proven = ((share, certified_tangent(problem, alpha, share, price)) for share, price in answers)
    found = best(proven, lambda each: max(abs(each[1].gap), each[1].dual * GOOD / STATIONARITY))
    return alpha_fair_solution(problem, alpha, *found, "convex-alpha-fair", STATIONARITY)


def convex_latency(problem: PruningProblem) -> Solution:
    """Least maximal finish time, at rho_min.

    Raises:
        UncertifiedError: as `convex`.
        ValueError: as `latency`.
    """
    bits, busy_s = upload_work(problem, time_before(problem))
    rho = np.where(problem.feasible, problem.rho_min, problem.rho_max)
    answers = (
        (share, *certify_latency(problem, share, rho))
        for share in least_latency(problem, bits, busy_s)
    )
    share, objective, multiplier, proof = best(answers, lambda a: a[-1].gap)
    proven = accepted_solution(problem, share, rho, multiplier, proof, "convex-latency")
    return replace(proven, objective=objective)


@np.errstate(all="ignore")  # what is not finite is refused
def convex_energy(problem: PruningProblem) -> Solution:
    """Least energy, see `energy`; certified to 1e-4 of the joules.

    Raises:
        InfeasibleError, ValueError: as `energy`.
        UncertifiedError: Clarabel found no answer, it is off by more, or there are too many
            devices for cvxpy.
    """
    task = EnergyProblem.of(problem)
    least_shares(problem)  # raises where full clocks and powers are late
    choices = (
        choice._replace(
            price=price_covering_marginals(task, choice.share, choice.power_w, choice.price)
        )
        for choice in least_joules(problem, task.terms)
    )
    choice = best(choices, lambda each: certify_energy(task, *each)[1].gap)
    return energy_solution(task, *choice, "convex-energy", ENERGY_GAP)
