"""Shares in whole resource blocks of 1 / N: exact optima of costs that depend on blocks.

A cost takes blocks [K] (int) and returns [K]. For a sum of convex costs the best N blocks are those
of largest gain cost(n - 1) - cost(n) (Fox, "Discrete optimization via marginal analysis",
Management Science 1966). They are found without handing out one after the other: by the gain of
the last of them, a selection among K sorted lists.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvers.arrays import Array, Counts, Mask
from solvers.deadline_feasibility import fitting_bounds, infeasible_error, least_extra_s
from solvers.problem import FEASIBILITY_TOLERANCE, PruningProblem
from solvers.solution import InfeasibleError

MOST_BLOCKS = 10**9
LONGEST_S = 1e100
WHOLE = 1e-11  # a share that exceeds a number of blocks by less, relative, is that number
Cost = Callable[[Counts], Array]


def least_sum(cost: Cost, low: Counts, cap: Counts, blocks: int) -> Counts:
    """Blocks [K] of least sum of costs; ties go to the first device.

    Args:
        cost: blocks [K] -> [K], convex and falling.
        low: fewest blocks [K].
        cap: most blocks [K].
        blocks: N, in all.
    """
    few, many = low.copy(), cap.copy()
    if many.sum() <= blocks:
        return many

    def gain(n: Counts) -> Array:
        return cost(n - 1) - cost(n)

    def worth_at_most(price: float, strictly: bool) -> Callable[[Counts], Mask]:
        return lambda n: gain(n + 1) < price if strictly else gain(n + 1) <= price

    while True:  # the best blocks are all those up to `few` and some of those up to `many`
        price = _weighted_median(gain, few + 1, many + 1)
        better = fewest_blocks(worth_at_most(price, False), few, many)
        as_good = fewest_blocks(worth_at_most(price, True), better, many)
        if better.sum() > blocks:
            many = better
        elif as_good.sum() <= blocks:
            few = as_good
        else:
            return better + _hand_out(as_good - better, blocks - int(better.sum()))


def least_max(cost: Cost, low: Counts, cap: Counts, blocks: int) -> Counts:
    """The fewest blocks [K] of least maximal cost; arguments as `least_sum`, convex or not.

    What is left over may go to `least_sum` with these as lower bounds: then ties are broken by
    the sum.
    """

    def costs(bound: float, strictly: bool) -> Callable[[Counts], Mask]:
        return lambda n: cost(n) < bound if strictly else cost(n) <= bound

    best, few = low.copy(), low.copy()
    worst = float(cost(cap).max())  # no device needs to do better than another can
    many = fewest_blocks(costs(worst, False), few, cap)
    if many.sum() <= blocks:
        return many
    # the least bound that fits is the cost of a device with few <= n < many
    while (few < many).any():
        bound = _weighted_median(cost, few, many)
        enough = fewest_blocks(costs(bound, False), few, many)
        if enough.sum() <= blocks:
            best, few = enough, fewest_blocks(costs(bound, True), enough, many)
        else:
            many = enough
    return best


def _weighted_median(value: Cost, start: Counts, stop: Counts) -> float:
    """The median of the middle values of the lists start <= n < stop, weighted by their lengths."""
    length = np.maximum(stop - start, 0)
    on = np.flatnonzero(length)
    values = value(start + length // 2)[on]
    order = np.argsort(values, kind="stable")
    weight = np.cumsum(length[on][order])
    return float(values[order][np.searchsorted(weight, 0.5 * weight[-1])])


def fewest_blocks(holds: Callable[[Counts], Mask], low: Counts, cap: Counts) -> Counts:
    """Least n [K] in [low, cap] for which it holds, cap where for none below; monotone in n."""
    while (low < cap).any():
        middle = (low + cap) // 2
        yes = holds(middle) | (low >= cap)
        low, cap = np.where(yes, low, middle + 1), np.where(yes, np.minimum(middle, cap), cap)
    return low


def _hand_out(room: Counts, count: int) -> Counts:
    """`count` blocks for the first devices that have room [K]."""
    given: Counts = np.clip(count - (np.cumsum(room) - room), 0, room)
    return given


def blocks_for(share: Array, blocks: int) -> Counts:
    """The least number of blocks [K] that is not below these shares [K]."""
    needed: Array = np.ceil(np.minimum(share, 2.0) * blocks * (1.0 - WHOLE))
    return needed.astype(np.int64)


def check_count(blocks: int) -> None:
    """Raise ValueError unless it is a number of resource blocks."""
    whole = isinstance(blocks, int | np.integer) and not isinstance(blocks, bool)
    if not (whole and 1 <= blocks <= MOST_BLOCKS):
        raise ValueError(
            f"blocks is {blocks!r:.40}; give a whole number of resource blocks from 1 to "
            f"{MOST_BLOCKS}."
        )


def block_bounds(problem: PruningProblem, blocks: int) -> tuple[Counts, Counts]:
    """Blocks [K] at which rho is rho_max and rho_min; the fewest fit into the band.

    Raises:
        InfeasibleError: names the devices and the least additional time with which they fit.
        ValueError: `blocks` is no number of blocks.
    """
    check_count(blocks)
    try:
        low, cap = fitting_bounds(problem)
    except InfeasibleError:  # whole blocks need more time still
        low, cap = problem.share_bounds()
    few = blocks_for(low, blocks)
    if few.sum() > blocks:
        low = np.where(low <= 1, few / blocks, low)
        extra_s = _extra_s(problem, blocks)
        raise infeasible_error(problem, low, extra_s, f" in {blocks} blocks")
    return few, np.maximum(np.minimum(blocks_for(cap, blocks), blocks), few)


def _extra_s(problem: PruningProblem, blocks: int) -> float:
    """Least time, added to every slack, with which the fewest blocks fit, s; to 1e-12 of it,
    rounded up.

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
