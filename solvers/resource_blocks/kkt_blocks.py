"""The pruning problem in whole resource blocks: every share is a multiple of 1 / N.

w rho(n / N) is convex and falling from the least number of blocks that meets the deadline on, so
the best blocks are those of largest gain (`least_sum`), and an allocation that no move of one block
improves is the best of all.
"""

from __future__ import annotations

import numpy as np

from solvers.acceptance import accepted_solution
from solvers.arrays import Array
from solvers.bound_violations import violations
from solvers.certificate import objective_scale
from solvers.problem import PruningProblem
from solvers.resource_blocks.integer_block_search import block_bounds, least_sum
from solvers.solution import Certificate, Solution

CLAIM = (
    "no shares in whole blocks have a lesser weighted sum of rho: no block added or moved "
    "improves it"
)


def kkt_blocks(problem: PruningProblem, blocks: int) -> Solution:
    """Shares n / N and ratios of least weighted pruning.

    The multiplier is N times the best gain of one more block.

    Raises:
        InfeasibleError: the fewest blocks do not fit.
        UncertifiedError: off by more than 1e-8.
        ValueError: `blocks`, a device without a deadline, or a set of levels.
    """
    problem.refuse_levels("kkt")
    low, cap = block_bounds(problem, blocks)
    n = least_sum(lambda n: problem.weight * problem.rho_at(n / blocks), low, cap, blocks)
    share = n / blocks
    rho = problem.rho_at(share)
    proof, price = certify_blocks(problem, share, rho, blocks)
    return accepted_solution(problem, share, rho, price, proof, "kkt", claims_gap=False)


def certify_blocks(
    problem: PruningProblem, share: Array, rho: Array, blocks: int
) -> tuple[Certificate, float]:
    """The certificate of shares n / N [K] and ratios [K], and the price of the band.

    primal: worst excess of a deadline, of the band, of a bound, or distance from whole blocks.
    dual: what moving the worst block to where it gains most improves. complementarity: what an
    idle block would. All relative to the objective as in `certify`. The integer optimum has no
    duality gap to claim: nan. The price is the gain of one more block per unit of band.
    """
    primal, broken = violations(problem, share, rho, problem.finish_s(share, rho))
    low, cap = block_bounds(problem, blocks)
    n, scale = np.rint(share * blocks), max(objective_scale(problem, rho), 1e-300)
    less, asked, more = problem.rho_at(np.stack((np.maximum(n - 1, 0), n, n + 1)) / blocks)
    gain = np.where(n < cap, problem.weight * (rho - more), 0.0).max(initial=0.0)
    loss = np.where(n > low, problem.weight * (less - rho), np.inf).min(initial=np.inf)
    idle, part = blocks - float(n.sum()), float(np.abs(share * blocks - n).max())
    wasted = max(float((rho - asked).max()), gain / scale if idle >= 1 else 0.0)
    moved = max(0.0, gain - loss) / scale
    primal = max(primal, part, -idle / blocks)
    residual = max(primal, moved, wasted)
    proof = Certificate(residual, float("nan"), primal, moved, wasted, broken, CLAIM)
    return proof, float(gain) * blocks
