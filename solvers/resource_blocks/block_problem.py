"""Shares in whole resource blocks of 1 / N: exact optima of what the devices cost as a function of their blocks.

    least_sum(cost, low, cap, N)   least sum_k cost_k(n_k)   with sum n <= N; cost convex and falling in n
    least_max(cost, low, cap, N)   least max_k cost_k(n_k)   with sum n <= N; cost falling in n
    block_bounds(problem, N)       blocks [K], [K] between which rho falls from rho_max to rho_min; or InfeasibleError

`cost(n)` takes blocks [K] (int) and gives [K]. For a sum of convex costs the best N blocks are those of largest gain
cost(n - 1) - cost(n) (Fox, "Discrete optimization via marginal analysis", 1966; Gross, 1956). They are found without
handing out one after the other: by the gain of the last of them, a selection among K sorted lists.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvers.arrays import Array
from solvers.deadline_feasibility import fitting_bounds, infeasible_error, least_extra_s
from solvers.problem import FEASIBILITY_TOLERANCE, PruningProblem
from solvers.solution import InfeasibleError

MOST = 10**9  # blocks
LONGEST_S = 1e100
WHOLE = 1e-11  # a share that exceeds a number of blocks by less, relative, is that number of blocks


def least_sum(cost: Callable[[Array], Array], low: Array, cap: Array, blocks: int) -> Array:
    """Blocks n [K] of least sum of costs, low <= n <= cap, with at most `blocks` in all; ties: the first device."""
    few, many = np.array(low), np.array(cap)
    if many.sum() <= blocks:
        return many

    def gain(n: Array) -> Array:
        return cost(n - 1) - cost(n)

    while True:  # the best blocks are all those up to `few` and some of those up to `many`
        price = _weighted_median(gain, few + 1, many + 1)
        better = fewest_blocks(lambda n, price=price: gain(n + 1) <= price, few, many)
        as_good = fewest_blocks(lambda n, price=price: gain(n + 1) < price, better, many)
        if better.sum() > blocks:
            many = better
        elif as_good.sum() <= blocks:
            few = as_good
        else:
            return better + _hand_out(as_good - better, blocks - int(better.sum()))


def least_max(cost: Callable[[Array], Array], low: Array, cap: Array, blocks: int) -> Array:
    """The fewest blocks n [K] of least maximal cost, low <= n <= cap, with at most `blocks` in all.

    What is left over may go to `least_sum` with these n as lower bounds: then ties are broken by the sum.
    """
    best, few = np.array(low), np.array(low)
    worst = cost(np.array(cap)).max()  # nobody needs to do better than somebody can
    many = fewest_blocks(lambda n: cost(n) <= worst, few, np.array(cap))
    if many.sum() <= blocks:
        return many
    while (
        few < many
    ).any():  # the least bound that fits is the cost of somebody with few <= n < many
        bound = _weighted_median(cost, few, many)
        enough = fewest_blocks(lambda n, bound=bound: cost(n) <= bound, few, many)
        if enough.sum() <= blocks:
            best, few = enough, fewest_blocks(lambda n, bound=bound: cost(n) < bound, enough, many)
        else:
            many = enough
    return best


def _weighted_median(value: Callable[[Array], Array], start: Array, stop: Array) -> float:
    """The median of the middle values of the lists start <= n < stop, weighted by their lengths."""
    length = np.maximum(stop - start, 0)
    on = np.flatnonzero(length)
    values = value(start + length // 2)[on]
    order = np.argsort(values, kind="stable")
    weight = np.cumsum(length[on][order])
    return float(values[order][np.searchsorted(weight, 0.5 * weight[-1])])


def fewest_blocks(holds: Callable[[Array], Array], low: Array, cap: Array) -> Array:
    """Least n [K] in [low, cap] for which it holds, cap where it holds for none below; monotone in n."""
    while (low < cap).any():
        middle = (low + cap) // 2
        yes = holds(middle) | (low >= cap)
        low, cap = np.where(yes, low, middle + 1), np.where(yes, np.minimum(middle, cap), cap)
    return low


def _hand_out(room: Array, count: int) -> Array:
    """Hands `count` blocks to the first devices that have room."""
    return np.clip(count - (np.cumsum(room) - room), 0, room)


def blocks_for(share: Array, blocks: int) -> Array:
    """The least number of blocks that is not below these shares [K], int."""
    return np.ceil(np.minimum(share, 2.0) * blocks * (1.0 - WHOLE)).astype(np.int64)


def check_count(blocks: int) -> None:
    """Raise ValueError unless it is a number of resource blocks."""
    if (
        isinstance(blocks, bool)
        or not isinstance(blocks, int | np.integer)
        or not 1 <= blocks <= MOST
    ):
        raise ValueError(
            f"blocks is {blocks!r:.40}; give a whole number of resource blocks from 1 to {MOST}."
        )


def block_bounds(problem: PruningProblem, blocks: int) -> tuple[Array, Array]:
    """Blocks [K], [K] between which rho falls from rho_max to rho_min; the fewest fit into the band.

    Raises:
        InfeasibleError: names the devices and the least additional time with which they fit.     ValueError: `blocks`.
    """
    check_count(blocks)
    try:
        low, cap = fitting_bounds(problem)
    except InfeasibleError:  # whole blocks need more time still
        low, cap = problem.share_bounds()
    few = blocks_for(low, blocks)
    if few.sum() > blocks:
        raise infeasible_error(
            problem,
            np.where(low <= 1, few / blocks, low),
            _extra_s(problem, blocks),
            f" in {blocks} blocks",
        )
    return few, np.maximum(np.minimum(blocks_for(cap, blocks), blocks), few)


def _extra_s(problem: PruningProblem, blocks: int) -> float:
    """Least time, added to every slack, with which the fewest blocks fit, s; to 1e-12 of it, rounded up.

    inf where more devices have something to send than there are blocks.
    """

    def fits(extra_s: float) -> bool:
        on = problem.slack_s + extra_s > 0
        low = np.where(on, problem.share_at(problem.rho_max, extra_s), 0.0)
        return bool(
            (low <= 1 + FEASIBILITY_TOLERANCE).all() and blocks_for(low, blocks).sum() <= blocks
        )

    short = least_extra_s(problem)  # enough for shares of any size
    if fits(short):
        return short
    step = max(short, float(np.abs(problem.slack_s).max()))
    long = short + step
    while not fits(long):
        short, step, long = long, 2.0 * step, long + 2.0 * step
        if long > LONGEST_S:
            return float("inf")
    while long - short > 1e-12 * long:
        middle = 0.5 * (short + long)
        short, long = (short, middle) if fits(middle) else (middle, long)
    return long
