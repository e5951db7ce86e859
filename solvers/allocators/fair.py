"""The fair allocation: the most pruned device is pruned as little as possible.

Among such shares the weighted sum is least. Liu's objective starves the weaker of two similar
devices; this one does not. Pruning rho needs the share b_k(rho), decreasing and convex, so the
least bound t on all rho_k is the root of

    sum_k b_k(clip(t, rho_min_k, rho_max_k)) = 1,

or max_k rho_k(1), as no device gets more than the band. Ties are broken by Liu's problem with
rho_max lowered to t.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from solvers.acceptance import accepted_solution
from solvers.allocators.kkt import kkt
from solvers.arrays import EPS, Array
from solvers.deadline_feasibility import fitting_bounds
from solvers.marginal_gains import HELD, marginal_gain
from solvers.problem import PruningProblem
from solvers.solution import Certificate, Solution

CLAIM = (
    "no shares lower the largest pruning ratio; of those that reach it none has a lesser "
    "weighted sum"
)
ROUNDING = (1e-12, 1e-9, 1e-6)  # distances from the largest ratio that may count as none


def fair(problem: PruningProblem) -> Solution:
    """Shares and ratios of least maximal rho, ties broken by the least sum of w rho.

    The objective is the largest rho of those served, the multiplier its fall per unit of band.

    Raises:
        InfeasibleError: the least shares do not fit into the band.
        UncertifiedError: off by more than 1e-8.
        ValueError: a device has no deadline, or a set of levels.
    """
    answer = kkt(with_rho_at_most(problem, least_largest_rho(problem)))
    objective, multiplier, proof = certify_fair(problem, answer)
    accepted = accepted_solution(problem, answer.share, answer.rho, multiplier, proof, "fair")
    return replace(accepted, objective=objective)


def with_rho_at_most(problem: PruningProblem, bound: float) -> PruningProblem:
    """The same problem with no rho above the bound, but for devices whose rho_min is."""
    rho_max = np.minimum(problem.rho_max, np.maximum(problem.rho_min, bound))
    return replace(problem, rho_max=np.where(problem.feasible, rho_max, problem.rho_max))


def least_largest_rho(problem: PruningProblem) -> float:
    """The least t such that pruning all to at most t fits: Newton's method, kept in a bracket."""
    problem.refuse_levels("fair")
    fitting_bounds(problem)  # raises where even rho_max does not fit
    below = _rho_alone(problem)
    above = float(problem.rho_max.max(where=problem.feasible, initial=0.0))
    t = below
    for _ in range(200):
        share, fall = _shares_at(problem, t)
        total = float(share.sum())
        below, above = (t, above) if total > 1 else (below, t)
        if total == 1 or above - below <= EPS * above:
            break
        following = t + total * (total - 1) / fall if np.isfinite(total) and fall > 0 else np.inf
        if abs(following - t) <= EPS * above:
            break
        t = following if below < following < above else 0.5 * (below + above)
    # where hardly anything is kept one unit in the last place of rho is a lot of band
    step = EPS
    while t < 1.0 and _shares_at(problem, t)[0].sum() > 1.0:
        t, step = min(t + step, 1.0), 2.0 * step
    return t


def _rho_alone(problem: PruningProblem) -> float:
    """The largest of the ratios that devices have with the whole band each."""
    alone = problem.rho_at(np.ones(problem.num_devices))
    return float(alone.max(where=problem.feasible, initial=0.0))


def _shares_at(problem: PruningProblem, t: float) -> tuple[Array, float]:
    """Shares [K] with which rho is t, within the bounds, and how fast their sum falls with t."""
    rho = np.clip(t, problem.rho_min, problem.rho_max)
    share = np.where(problem.feasible, problem.share_at(rho), 0.0)
    moves = problem.feasible & (problem.gain > 0) & (problem.rho_min <= t) & (t < problem.rho_max)
    moves &= np.isfinite(share) & (share > 0)
    steep = marginal_gain(problem, np.where(moves, share, 1.0)) / problem.weight
    return share, float((1.0 / steep[moves]).sum())


def certify_fair(problem: PruningProblem, answer: Solution) -> tuple[float, float, Certificate]:
    """Certificate of least maximal rho, evaluated in SI units from shares and ratios.

    No shares get the largest rho below the `_lower_bounds`, nor below max rho_k(1). The gap is
    that between the largest rho and the best of these, or that of the tie-break, if it is more.

    Args:
        problem: K devices.
        answer: shares and ratios, with the certificate of the tie-break.

    Returns:
        Largest rho, its fall per unit of band, the certificate.
    """
    tie = answer.certificate
    top = float(answer.rho.max(where=problem.feasible, initial=0.0))
    bound, multiplier = _rho_alone(problem), 0.0
    if top > bound:
        bound, multiplier = max([(bound, multiplier), *_lower_bounds(problem, answer, top)])
    elif (answer.share >= 1.0 - HELD).any():  # more than the whole band would do more
        multiplier = next(_lower_bounds(problem, answer, top), (bound, 0.0))[1]
    gap = max(abs(top - bound), tie.gap)
    return top, multiplier, replace(tie, gap=gap, claim=CLAIM)


def _lower_bounds(
    problem: PruningProblem, answer: Solution, top: float
) -> Iterator[tuple[float, float]]:
    """Lower bounds of the largest rho, each with its lambda.

    rho_k is convex in b_k, so with mu_k = lambda / |rho_k'|, sum mu = 1, the largest rho is at
    least sum mu_k rho_k(b) - lambda (what could still be given to those at the top). Which devices
    these are is free: those that are there but for rounding of rho or, where it falls steeply, of
    the share.
    """
    low, _ = problem.share_bounds()
    steep = marginal_gain(problem, answer.share) / problem.weight
    # whoever has nothing falls as steeply as at 0, which under a density is infinitely steep
    movable = problem.feasible & (problem.gain > 0) & np.isfinite(steep)
    movable &= answer.rho > problem.rho_min
    for rounding in ROUNDING:
        on = movable & (top - answer.rho <= rounding * np.maximum(1.0, steep))
        if on.any():
            multiplier = 1.0 / float((1.0 / steep[on]).sum())
            left = 1.0 - float(np.where(on, answer.share, low)[problem.feasible].sum())
            yield float(multiplier / steep[on] @ answer.rho[on]) - multiplier * left, multiplier
