"""The fair allocation: the most pruned device is pruned as little as possible; among such shares the sum is least.

Liu's objective starves the weaker of two similar devices (the first row of the digest's table); this one does not.
Pruning rho needs the share b_k(rho), decreasing and convex, so the least bound t on all rho_k is the root of

    sum_k b_k(clip(t, rho_min_k, rho_max_k)) = 1,     or its floor max_k rho_k(1): nobody gets more than the band.

Ties are broken by Liu's problem with rho_max lowered to t.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from solvers.allocators.kkt import kkt
from solvers.certificate import accepted
from solvers.deadline_feasibility import fitting_bounds
from solvers.marginal_gains import HELD, marginal
from solvers.problem import Array, PruningProblem
from solvers.problem_checks import refuse_levels
from solvers.solution import Certificate, Solution

CLAIM = "no shares lower the largest pruning ratio; of those that reach it none has a lesser weighted sum"
EPS = float(np.finfo(float).eps)


def fair(problem: PruningProblem) -> Solution:
    """Shares and ratios of least maximal rho, ties broken by the least sum of w rho; see `solvers.allocate`.

    The allocation's objective is the largest rho of those served, its multiplier the fall of it per unit of band.

    Raises:
        InfeasibleError: the least shares do not fit into the band.     UncertifiedError: off by more than 1e-8.
    """
    answer = kkt(lowered(problem, least_bound(problem)))
    objective, multiplier, proof = certify_fair(problem, answer)
    answer = accepted(problem, answer.share, answer.rho, multiplier, proof, "fair")
    return replace(answer, objective=objective)


def lowered(problem: PruningProblem, bound: float) -> PruningProblem:
    """The same problem with no rho above the bound, but for devices whose rho_min is."""
    rho_max = np.minimum(problem.rho_max, np.maximum(problem.rho_min, bound))
    return replace(problem, rho_max=np.where(problem.feasible, rho_max, problem.rho_max))


def least_bound(problem: PruningProblem) -> float:
    """The least t such that pruning all to at most t fits into the band: Newton on 1 / sum, kept in a bracket."""
    refuse_levels(problem, "fair")
    fitting_bounds(problem)  # raises where even rho_max does not fit
    on = problem.feasible
    below = float(problem.rho_at(np.ones(problem.num_devices)).max(where=on, initial=0.0))
    above = float(problem.rho_max.max(where=on, initial=0.0))
    t = below
    for _ in range(200):
        share, fall = _shares(problem, t)
        total = float(share.sum())
        below, above = (t, above) if total > 1 else (below, t)
        if total == 1 or above - below <= EPS * above:
            break
        following = t + total * (total - 1) / fall if np.isfinite(total) and fall > 0 else np.inf
        if abs(following - t) <= EPS * above:
            break
        t = following if below < following < above else 0.5 * (below + above)
    return _rounded_up(problem, t)


def _rounded_up(problem: PruningProblem, t: float) -> float:
    """The next t that fits: where hardly anything is kept one unit in the last place of rho is a lot of band."""
    step = EPS
    while t < 1.0 and _shares(problem, t)[0].sum() > 1.0:
        t, step = min(t + step, 1.0), 2.0 * step
    return t


def _shares(problem: PruningProblem, t: float) -> tuple[Array, float]:
    """Shares [K] with which rho is t, within the bounds, and how fast their sum falls with t."""
    rho = np.clip(t, problem.rho_min, problem.rho_max)
    share = np.where(problem.feasible, problem.share_at(rho), 0.0)
    moves = (
        problem.feasible
        & (problem.gain > 0)
        & (problem.rho_min <= t)
        & (t < problem.rho_max)
        & np.isfinite(share)
        & (share > 0)
    )
    steep = marginal(problem, np.where(moves, share, 1.0)) / problem.weight
    return share, float((1.0 / steep[moves]).sum())


def certify_fair(problem: PruningProblem, answer: Solution) -> tuple[float, float, Certificate]:
    """(largest rho, its fall per unit of band, certificate) from shares and ratios [K], evaluated in SI.

    No shares get the largest rho below the `_bounds`, nor below the floor max rho_k(1). gap: the largest rho less the
    best of these, or the gap of the tie-break, whichever is more.
    """
    tie, on = answer.certificate, problem.feasible
    top = float(answer.rho.max(where=on, initial=0.0))
    bound, multiplier = (
        float(problem.rho_at(np.ones(problem.num_devices)).max(where=on, initial=0.0)),
        0.0,
    )
    if top > bound:
        bound, multiplier = max([(bound, multiplier), *_bounds(problem, answer, top)])
    elif (answer.share >= 1.0 - HELD).any():  # more than the whole band would do more
        multiplier = next(_bounds(problem, answer, top), (bound, 0.0))[1]
    gap = max(abs(top - bound), tie.gap)
    return top, multiplier, replace(tie, gap=gap, claim=CLAIM)


def _bounds(problem: PruningProblem, answer: Solution, top: float) -> Iterator[tuple[float, float]]:
    """(lower bound of the largest rho, lambda), with those counted as being at the top that are there but for rounding,
    of rho or, where it falls steeply, of the share.

    rho_k is convex in b_k, so with mu_k = lambda / |rho_k'|, sum mu = 1, the largest rho is at least
    sum mu_k rho_k(b) - lambda (what could still be given to those at the top); which devices these are is free.
    """
    low, _ = problem.share_bounds()
    movable = (
        problem.feasible & (problem.gain > 0) & (answer.rho > problem.rho_min) & (answer.share > 0)
    )
    steep = marginal(problem, answer.share) / problem.weight
    for rounding in (1e-12, 1e-9, 1e-6):
        on = movable & (
            top - answer.rho <= rounding * np.maximum(1.0, steep)
        )  # of rho, or of the band
        if on.any():
            multiplier = 1.0 / float((1.0 / steep[on]).sum())
            left = 1.0 - float(np.where(on, answer.share, low)[problem.feasible].sum())
            yield float(multiplier / steep[on] @ answer.rho[on]) - multiplier * left, multiplier
