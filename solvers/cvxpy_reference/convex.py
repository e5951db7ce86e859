"""The same problems for a general solver: cvxpy with Clarabel. The reference, not the fast path.

    convex            least weighted pruning, as `kkt`         convex-fair       as `fair`
    convex-latency    as `latency`                             convex-energy     as `energy` (`convex_energy`)

Clarabel's interior points reach a relative duality gap of about 1e-12 (median) and marginals that equal the multiplier
to about 1e-7; where weights, rates, sizes and computing times of the devices lie decades apart not in one pass, so
least pruning takes several (`convex_pruning`). What is not good enough after that the certificate refuses.
As one unit in the tenth digit of rho is many seconds for a device with hardly any band, only the shares and the
multiplier of the band are Clarabel's; rho is what the deadline asks for with these shares, eq. (47).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.allocators.fair import certify_fair, lowered
from solvers.allocators.kkt import steepest
from solvers.allocators.min_max_latency import certify_latency, time_before, work
from solvers.certificate import accepted, certified, certify
from solvers.cvxpy_reference.models import fair_model, latency_model, one_at_a_time
from solvers.cvxpy_reference.pruning import (
    EXACT,
    STATIONARITY,
    band_values,
    filling,
    forms,
    least_pruning,
    pruning_values,
    rates,
    usual_shares,
)
from solvers.deadline_feasibility import fitting_bounds
from solvers.marginal_gains import full_price, marginal
from solvers.problem import ALLOWED, Array, PruningProblem
from solvers.problem_checks import refuse_levels
from solvers.solution import Solution

PASSES = 3  # of fair and latency: again in units of the last shares
DIGITS = 1e-15  # of rho
FILLED = 1e-6  # shares that add up to this far from one are taken to fill the band


@one_at_a_time
def convex(problem: PruningProblem) -> Solution:
    """Shares and pruning ratios of least weighted pruning, by cvxpy and Clarabel; see `solvers.allocate`.

    Raises:
        UncertifiedError: Clarabel gave up, or its answer is off by more than 1e-8.     ValueError: as `kkt`.
    """
    refuse_levels(problem, "convex")
    low, cap = fitting_bounds(problem)
    on = np.flatnonzero(cap > low)
    share, multiplier = low.copy(), 0.0
    if (
        low.sum() >= 1 - ALLOWED
    ):  # the feasible set is all but one point: no interior to walk through
        keenest = int(np.argmax(np.where(cap > low, marginal(problem, low), 0.0)))
        share[keenest] = min(
            low[keenest] + max(1.0 - low.sum(), 0.0), max(cap[keenest], low[keenest])
        )
        multiplier = steepest(problem, low, cap)
    elif len(on):
        share, multiplier = least_pruning(problem, on, low, cap)
    rho = problem.rho_at(share)
    return certified(
        problem, share, rho, full_price(problem, share, rho, multiplier), "convex", STATIONARITY
    )


@one_at_a_time
def convex_fair(problem: PruningProblem) -> Solution:
    """Least maximal rho by cvxpy and Clarabel, ties broken by the least sum, by `convex`.

    Clarabel's is the bound on rho; the least shares that keep it fill the band, or leave room for the tie-break.
    """
    refuse_levels(problem, "convex-fair")
    low, cap = fitting_bounds(problem)
    on, answers = np.flatnonzero(cap > low), []
    floor = float(problem.rho_at(cap).max(where=problem.feasible, initial=0.0))
    if low.sum() >= 1 - ALLOWED or not len(on):
        answers.append(_keeping(problem, floor, low))
    else:
        measure = usual_shares(problem, on)
        for _ in range(PASSES):
            values = pruning_values(problem, on, low, measure)
            _, rho, _ = fair_model(len(on), problem.snr is not None, *forms(values)).solve(**values)
            answers.append(_keeping(problem, max(floor, float(rho.max())), low))
            if answers[-1].certificate.gap <= EXACT:
                break
            measure = np.where(answers[-1].share[on] > 0, answers[-1].share[on], measure)
    best = min(answers, key=lambda answer: answer.certificate.gap)
    proven = accepted(
        problem, best.share, best.rho, best.multiplier, best.certificate, "convex-fair", 1.0
    )
    return replace(proven, objective=best.objective)


def _keeping(problem: PruningProblem, bound: float, low: Array) -> Solution:
    """The answer, with its certificate, in which nobody's rho is above the bound."""
    bound = min(
        bound + DIGITS, 1.0
    )  # else one who sends nothing may be late by rounding, with any band
    least = lowered(problem, bound).share_bounds()[0] if low.sum() < 1 - ALLOWED else low
    answer = (
        _filled(problem, least, low)
        if least.sum() >= 1 - FILLED
        else convex(lowered(problem, bound))
    )
    objective, multiplier, proof = certify_fair(problem, answer)
    return replace(answer, objective=objective, multiplier=multiplier, certificate=proof)


def _filled(problem: PruningProblem, least: Array, low: Array) -> Solution:
    """The least shares; what they leave or lack, next to nothing, is spread so that it moves all rho alike.

    Nobody gets less than the share `low` [K] with which rho_max is in time.
    """
    steep = marginal(problem, least) / problem.weight
    softness = np.divide(1.0, steep, out=np.zeros_like(steep), where=(steep > 0) & (least > low))
    share = least + (1.0 - least.sum()) * softness / max(softness.sum(), 1e-300)
    share = filling(share, low, np.ones_like(low))
    rho = problem.rho_at(share)
    tied = lowered(problem, float(rho.max(where=problem.feasible, initial=0.0)))
    multiplier = steepest(tied, *tied.share_bounds())
    proof = certify(tied, share, rho, multiplier)
    return Solution(share, rho, multiplier, proof, (), "convex-fair", problem.objective(rho))


@one_at_a_time
def convex_latency(problem: PruningProblem) -> Solution:
    """Least maximal finish time by cvxpy and Clarabel, at rho_min."""
    on = problem.feasible
    bits, busy_s = work(problem, time_before(problem))
    sends, share = np.flatnonzero(on & (bits > 0)), np.zeros(problem.num_devices)
    rho, answers = np.where(on, problem.rho_min, problem.rho_max), []
    measure = (bits / problem.rate_bps)[sends]
    for _ in range(PASSES):
        if len(sends):
            measure = measure / measure.sum()
            share = np.zeros(problem.num_devices)
            share[sends] = _soonest(problem, sends, bits[sends], busy_s[sends], measure)
        answers.append((share, *certify_latency(problem, share, rho)))
        if not answers[-1][-1].gap > EXACT:
            break
        measure = np.where(share[sends] > 0, share[sends], measure)
    share, objective, multiplier, proof = min(answers, key=lambda answer: answer[-1].gap)
    return replace(
        accepted(problem, share, rho, multiplier, proof, "convex-latency"), objective=objective
    )


def _soonest(
    problem: PruningProblem, sends: Array, bits: Array, busy_s: Array, measure: Array
) -> Array:
    """Shares [S] of Clarabel, of one band, with which the last of those who send is back."""
    upload_s = bits / rates(problem, sends, measure)
    second = float((busy_s + upload_s).max())
    values = band_values(problem, sends, measure, 1.0)
    model = latency_model(len(sends), problem.snr is not None)
    beta, _ = model.solve(busy=busy_s / second, upload=upload_s / second, **values)
    share = np.maximum(measure * beta, 0.0)
    return share / share.sum()
