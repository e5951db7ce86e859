"""`convex`, `convex-fair`, `convex-alpha-fair`, `convex-latency`, `convex-energy`, certified.

Where the inputs of devices lie decades apart, the last digit of one device is all that another
has. So every problem is solved again in units of its own answer, until a certificate is good
enough, else the best of the answers counts. As one unit in the tenth digit of rho is many seconds
for a device with hardly any band, only shares and price are Clarabel's; rho is what the deadline
asks for with these shares, Liu, eq. (47).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from solvers.allocators.alpha_fair import alpha_fair_solution, certified_tangent
from solvers.allocators.fair import certify_fair, with_rho_at_most
from solvers.allocators.min_max_latency import certify_latency, time_before, upload_work
from solvers.arrays import Array
from solvers.certificate import accepted_solution, certify, objective_scale
from solvers.cvxpy_reference.least_energy import Choice, least_joules
from solvers.cvxpy_reference.passes import (
    marginal_gain,
    pruning_units,
    solved_again,
    time_units,
)
from solvers.cvxpy_reference.statements import largest_utility, least_maximum, least_time
from solvers.deadline_feasibility import fitting_bounds
from solvers.min_energy.allocator import energy_solution, least_shares
from solvers.min_energy.energy_certificate import certify_energy, price_covering_marginals
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.problem import FEASIBILITY_TOLERANCE, PruningProblem
from solvers.solution import InfeasibleError, Solution, UncertifiedError

GOOD = 1e-9  # duality gap, relative to the objective, that ends the passes
STATIONARITY = 1e-4  # the gap, which must be below 1e-8, is quadratic in the error of marginals
ENERGY_GAP = 1e-4  # allowed; the bound on the joules is linear in the error of the marginals
LEAST = 1e-12  # what cannot be told from zero, of the unit of an objective or a deadline
ROUNDING = (1e-15, 1e-12, 1e-10)  # of a bound on rho that no shares keep but for rounding
Answer = TypeVar("Answer")


def best(
    answers: Iterable[Answer],
    gap: Callable[[Answer], float],
    rank: Callable[[Answer], float] | None = None,
) -> Answer:
    """The first answer of which the gap is good enough, else the one of least rank (the gap).

    Raises:
        UncertifiedError: Clarabel found no answer.
    """
    found: list[Answer] = []
    try:
        for answer in answers:
            found.append(answer)
            if gap(answer) <= GOOD:
                return answer
    except UncertifiedError:
        if not found:
            raise
    if not found:
        raise UncertifiedError("No answer of Clarabel is accurate enough; use another method.")
    ranks = np.array([(rank or gap)(answer) for answer in found])
    return found[int(np.argmin(np.where(np.isnan(ranks), np.inf, ranks)))]


def pruning_answers(problem: PruningProblem, alpha: float) -> Iterable[tuple[Any, ...]]:
    """Shares [K], at alpha inf the largest rho, and price of every pass."""
    low, cap = fitting_bounds(problem)
    if low.sum() >= 1.0 - FEASIBILITY_TOLERANCE:  # all but a point
        worth = np.where(cap > low, marginal_gain(problem, low), 0.0)
        share, keenest = low.copy(), int(np.argmax(worth))
        share[keenest] += min(max(1.0 - float(low.sum()), 0.0), cap[keenest] - low[keenest])
        return [(share, 1.0, float(worth[keenest]))]
    with np.errstate(divide="ignore", invalid="ignore"):  # of those left out; nothing is computed
        start = problem.share_for_rate((problem.bits + problem.bits_fixed) / problem.slack_s)
    build = least_maximum if alpha == np.inf else partial(largest_utility, alpha=alpha)
    units, is_sum = partial(pruning_units, alpha=alpha), alpha == 0.0
    return solved_again(problem, low, cap, np.minimum(start, 1.0), build, units, is_sum)


def convex(problem: PruningProblem) -> Solution:
    """Shares and pruning ratios of least weighted pruning; see `solvers.allocate`.

    Raises:
        InfeasibleError: the least shares do not fit.
        UncertifiedError: Clarabel found no answer, or it is off by more than 1e-8.
        ValueError: as `kkt`.
    """
    problem.refuse_levels("convex")
    share, *_, price = best(
        pruning_answers(problem, 0.0), lambda a: _relative_gap(problem, a[0], a[-1])
    )
    rho = problem.rho_at(share)
    proof = certify(problem, share, rho, price)
    return accepted_solution(problem, share, rho, price, proof, "convex", STATIONARITY)


def _relative_gap(problem: PruningProblem, share: Array, price: float) -> float:
    """Duality gap relative to the objective itself, and stationarity in the same measure."""
    rho = problem.rho_at(share)
    proof, scale = certify(problem, share, rho, price), objective_scale(problem, rho)
    gap = proof.gap * scale / max(problem.objective(rho), LEAST * scale, 1e-300)
    return max(abs(gap), proof.dual * GOOD / STATIONARITY)


def convex_fair(problem: PruningProblem) -> Solution:
    """Least maximal rho, ties broken by the least sum.

    The bound on rho is Clarabel's; what the least shares that keep it leave is divided by
    `convex`.

    Raises:
        InfeasibleError, UncertifiedError, ValueError: as `convex`.
    """
    problem.refuse_levels("convex-fair")
    alone = problem.rho_at(np.ones(problem.num_devices))
    floor = float(alone.max(where=problem.feasible, initial=0.0))
    answers = (
        _keeping(problem, max(float(top), floor) + extra)
        for _, top, _ in pruning_answers(problem, np.inf)
        for extra in ROUNDING
    )
    found = best(filter(None, answers), lambda a: a.certificate.gap)
    proven = accepted_solution(
        problem, found.share, found.rho, found.multiplier, found.certificate, "convex-fair", 1.0
    )
    return replace(proven, objective=found.objective)


def _keeping(problem: PruningProblem, bound: float) -> Solution | None:
    """The answer, with its certificate, in which no rho is above the bound; None if none fits."""
    try:
        answer = convex(with_rho_at_most(problem, min(bound, 1.0)))
    except (InfeasibleError, UncertifiedError):
        return None
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
    with np.errstate(divide="ignore"):
        proven = (
            (share, certified_tangent(problem, alpha, share, np.log(price)))
            for share, *_, price in pruning_answers(problem, alpha)
        )
        found = best(proven, lambda a: max(abs(a[1].gap), a[1].dual * GOOD / STATIONARITY))
    return alpha_fair_solution(problem, alpha, *found, "convex-alpha-fair", STATIONARITY)


def convex_latency(problem: PruningProblem) -> Solution:
    """Least maximal finish time, at rho_min.

    Raises:
        UncertifiedError: as `convex`.
        ValueError: as `latency`.
    """
    rho = np.where(problem.feasible, problem.rho_min, problem.rho_max)
    bits, busy_s = upload_work(problem, time_before(problem))
    sends = problem.feasible & (bits > 0)
    work = replace(problem, bits=bits, bits_fixed=np.zeros_like(bits), compute_s=busy_s)
    start = bits / problem.rate_bps / (bits / problem.rate_bps).sum(where=sends)
    found = solved_again(
        work, np.zeros_like(bits), sends.astype(float), start, least_time, time_units
    )
    answers = ((share, *certify_latency(problem, share, rho)) for share, *_ in found)
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

    def gap(choice: Choice) -> float:
        return certify_energy(task, *choice)[1].gap

    def joules(choice: Choice) -> float:
        energy_j, proof = certify_energy(task, *choice)
        return energy_j if proof.gap <= ENERGY_GAP and proof.primal <= LEAST else np.inf

    choices = (
        (share, cpu_hz, power_w, price_covering_marginals(task, share, power_w, price))
        for share, cpu_hz, power_w, price in least_joules(task)
    )
    found = best(choices, gap, joules)
    return energy_solution(task, *found, "convex-energy", ENERGY_GAP)
