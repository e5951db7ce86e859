"""Least maxima in whole resource blocks: `fair` and `latency` with shares that are multiples of 1 / N.

A bound on what every device costs is met with the fewest blocks when each gets just enough for it, so the least bound
whose blocks fit into the band is the exact optimum (`blocks.least_max`), and its proof is short: the blocks that all
need to cost less than the largest cost do not fit. What is left over goes where it lowers the sum most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from solvers.allocators.min_max_latency import time_before, upload_work
from solvers.arrays import Array
from solvers.certificate import OPTIMALITY_TOLERANCE, feasible_solution
from solvers.problem import PruningProblem
from solvers.resource_blocks.block_problem import (
    block_bounds,
    check_count,
    fewest_blocks,
    least_max,
    least_sum,
)
from solvers.solution import Solution, UncertifiedError

CLAIM = (
    "no blocks lower the largest {}; of those that reach it no block is better placed by the sum"
)


def fair_blocks(problem: PruningProblem, blocks: int) -> Solution:
    """Whole blocks of least maximal rho, ties broken by the least sum of w rho.

    Raises:
        InfeasibleError: the blocks that rho_max needs do not fit.     ValueError: `blocks`, or a problem with levels.
        UncertifiedError: the largest rho could be lower.
    """
    problem.refuse_levels("fair")
    low, cap = block_bounds(problem, blocks)
    on = problem.feasible

    def rho(n: Array) -> Array:
        return np.where(on, problem.rho_at(n / blocks), 0.0)

    def weighted(n: Array) -> Array:
        return problem.weight * rho(n)

    n = least_sum(weighted, least_max(rho, low, cap, blocks), cap, blocks)
    check_least_max(rho, n, low, cap, blocks)
    check_least_sum(
        weighted, n, fewest_blocks(lambda m: rho(m) <= rho(n).max(), low, cap), cap, blocks
    )
    return _answer(
        problem, n / blocks, problem.rho_at(n / blocks), "fair", "rho", float(rho(n).max())
    )


def latency_blocks(problem: PruningProblem, blocks: int) -> Solution:
    """Whole blocks with which the last device is back earliest, at rho_min; ties broken by the sum of finish times.

    Raises:
        ValueError: `blocks`, or fewer of them than devices that send.
        UncertifiedError: the last device could be back earlier.
    """
    check_count(blocks)
    before_s, on = time_before(problem), problem.feasible
    bits, busy_s = upload_work(problem, before_s)
    low = (on & (bits > 0)).astype(np.int64)
    if low.sum() > blocks:
        raise ValueError(
            f"blocks is {blocks}; give at least one to each of the {low.sum()} devices that send."
        )
    cap = np.where(low > 0, blocks, 0)
    rho = np.where(on, problem.rho_min, problem.rho_max)

    def finish_s(n: Array) -> Array:
        return np.where(low > 0, before_s + problem.finish_s(np.maximum(n, 1) / blocks, rho), 0.0)

    n = least_sum(finish_s, least_max(finish_s, low, cap, blocks), cap, blocks)
    check_least_max(finish_s, n, low, cap, blocks)
    check_least_sum(
        finish_s,
        n,
        fewest_blocks(lambda m: finish_s(m) <= finish_s(n).max(), low, cap),
        cap,
        blocks,
    )
    last_s = max(float(finish_s(n).max()), float(busy_s.max(where=on, initial=0.0)))
    return _answer(problem, n / blocks, rho, "latency", "finish time", last_s)


def check_least_max(
    cost: Callable[[Array], Array], n: Array, low: Array, cap: Array, blocks: int
) -> None:
    """Raise UncertifiedError unless n [K] fits and the blocks for which all cost less than the largest cost do not."""
    top = float(cost(n).max())
    better = fewest_blocks(lambda n: cost(n) < top, low, cap)
    fits = bool((cost(better) < top).all()) and better.sum() <= blocks
    if fits or n.sum() > blocks or (n < low).any() or (n > cap).any():
        raise UncertifiedError(
            f"The blocks do not have the least maximal cost: {better.sum()} blocks would cost less."
        )


def check_least_sum(
    cost: Callable[[Array], Array], n: Array, least: Array, cap: Array, blocks: int
) -> None:
    """Raise UncertifiedError where one block, idle or of a device with more than the `least` [K], lowers the sum elsewhere.

    The costs are convex: where no block does, no blocks between `least` and `cap` [K] have a lesser sum.
    """
    here = cost(n)
    gain = float(np.where(n < cap, here - cost(np.minimum(n + 1, cap)), 0.0).max())
    loss = float(np.where(n > least, cost(np.maximum(n - 1, least)) - here, np.inf).min())
    loss = loss if n.sum() == blocks else 0.0
    if gain - loss > OPTIMALITY_TOLERANCE * float(here.max()):
        raise UncertifiedError(
            f"The blocks do not have the least sum: one elsewhere would lower it by {gain - loss:.2g}."
        )


def _answer(
    problem: PruningProblem, share: Array, rho: Array, method: str, what: str, objective: float
) -> Solution:
    answer = feasible_solution(problem, share, rho, float("nan"), method)
    return replace(
        answer,
        objective=objective,
        certificate=replace(answer.certificate, claim=CLAIM.format(what)),
    )
