"""Least maxima in whole resource blocks: `fair` and `latency` with shares of n / N.

A bound on what every device costs is met with the fewest blocks when each device gets just enough
for it, so the least bound whose blocks fit into the band is the exact optimum (`least_max`), and
its proof is short: the blocks that all need to cost less than the largest cost do not fit. What is
left over goes where it lowers the sum most.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from solvers.acceptance import OPTIMALITY_TOLERANCE, feasible_solution
from solvers.allocators.min_max_latency import time_before, upload_work
from solvers.arrays import Array, Counts
from solvers.problem import PruningProblem
from solvers.resource_blocks.integer_block_search import (
    Cost,
    block_bounds,
    check_count,
    fewest_blocks,
    least_max,
    least_sum,
)
from solvers.solution import InfeasibleError, Solution, UncertifiedError

CLAIM = (
    "no blocks lower the largest {}; of those that reach it no block is better placed by the sum"
)


def fair_blocks(problem: PruningProblem, blocks: int) -> Solution:
    """Whole blocks of least maximal rho, ties broken by the least sum of w rho.

    Raises:
        InfeasibleError: the blocks that rho_max needs do not fit.
        UncertifiedError: the largest rho could be lower.
        ValueError: `blocks`, or a problem with levels.
    """
    problem.refuse_levels("fair")
    low, cap = block_bounds(problem, blocks)

    def rho(n: Counts) -> Array:
        return np.where(problem.feasible, problem.rho_at(n / blocks), 0.0)

    def weighted(n: Counts) -> Array:
        return problem.weight * rho(n)

    n = _checked_blocks(rho, weighted, low, cap, blocks)
    largest = float(rho(n).max())
    return _solution(problem, n / blocks, problem.rho_at(n / blocks), "fair", "rho", largest)


def latency_blocks(problem: PruningProblem, blocks: int) -> Solution:
    """Whole blocks with which the last device is back earliest, at rho_min.

    Ties are broken by the sum of finish times.

    Raises:
        UncertifiedError: the last device could be back earlier.
        InfeasibleError: fewer blocks than devices that send; no time would be enough.
        ValueError: `blocks` is no number of blocks.
    """
    check_count(blocks)
    before_s, on = time_before(problem), problem.feasible
    bits, busy_s = upload_work(problem, before_s)
    low = (on & (bits > 0)).astype(np.int64)
    if low.sum() > blocks:
        raise InfeasibleError(
            f"blocks is {blocks}; give at least one to each of the {low.sum()} devices that send.",
            tuple(np.flatnonzero(low).tolist()),
            math.inf,
        )
    cap = np.where(low > 0, blocks, 0)
    rho = np.where(on, problem.rho_min, problem.rho_max)

    def finish_s(n: Counts) -> Array:
        return np.where(low > 0, before_s + problem.finish_s(np.maximum(n, 1) / blocks, rho), 0.0)

    n = _checked_blocks(finish_s, finish_s, low, cap, blocks)
    last_s = max(float(finish_s(n).max()), float(busy_s.max(where=on, initial=0.0)))
    return _solution(problem, n / blocks, rho, "latency", "finish time", last_s)


def _checked_blocks(cost: Cost, tie: Cost, low: Counts, cap: Counts, blocks: int) -> Counts:
    """Blocks [K] of least maximal cost, and of those the ones of least sum of `tie`."""
    n = least_sum(tie, least_max(cost, low, cap, blocks), cap, blocks)
    check_least_max(cost, n, low, cap, blocks)
    top = cost(n).max()
    least = fewest_blocks(lambda m: cost(m) <= top, low, cap)
    check_least_sum(tie, n, least, cap, blocks)
    return n


def check_least_max(cost: Cost, n: Counts, low: Counts, cap: Counts, blocks: int) -> None:
    """Raise UncertifiedError unless n [K] fits and no blocks with a lesser largest cost do."""
    top = float(cost(n).max())
    better = fewest_blocks(lambda n: cost(n) < top, low, cap)
    fits = bool((cost(better) < top).all()) and better.sum() <= blocks
    if fits or n.sum() > blocks or (n < low).any() or (n > cap).any():
        raise UncertifiedError(
            f"The blocks do not have the least maximal cost: {better.sum()} blocks would cost less."
        )


def check_least_sum(cost: Cost, n: Counts, least: Counts, cap: Counts, blocks: int) -> None:
    """Raise UncertifiedError where one block lowers the sum of costs elsewhere.

    The block is idle, or of a device with more than the `least` [K]. The costs are convex: where
    no block does, no blocks between `least` and `cap` [K] have a lesser sum.
    """
    here = cost(n)
    gain = float(np.where(n < cap, here - cost(np.minimum(n + 1, cap)), 0.0).max())
    loss = float(np.where(n > least, cost(np.maximum(n - 1, least)) - here, np.inf).min())
    loss = loss if n.sum() == blocks else 0.0
    if gain - loss > OPTIMALITY_TOLERANCE * float(here.max()):
        raise UncertifiedError(
            f"The blocks do not have the least sum: one elsewhere would lower it by "
            f"{gain - loss:.2g}."
        )


def _solution(
    problem: PruningProblem, share: Array, rho: Array, method: str, what: str, objective: float
) -> Solution:
    """The solution with this objective, and the claim that names what is least."""
    answer = feasible_solution(problem, share, rho, float("nan"), method)
    proof = replace(answer.certificate, claim=CLAIM.format(what))
    return replace(answer, objective=objective, certificate=proof)
