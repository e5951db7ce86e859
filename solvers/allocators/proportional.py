"""Shares in proportion to the bits that each device must send."""

from __future__ import annotations

import numpy as np

from solvers.acceptance import feasible_solution
from solvers.problem import PruningProblem
from solvers.solution import Solution


def proportional(problem: PruningProblem) -> Solution:
    """b_k = n_k / sum_j n_j with n = (1 - rho_min) q + f, rho from Liu, eq. (47).

    Rates and deadlines do not count: a device for which rho_max is not enough finishes late, as
    with `equal`. Shares are equal where no device has bits to send. No optimality is claimed.
    """
    bits = (1.0 - problem.rho_min) * problem.bits + problem.bits_fixed
    bits = np.where(problem.feasible, bits, 0.0)
    bits = bits if bits.any() else problem.feasible.astype(float)
    largest = max(float(bits.max()), 1e-300)
    share = bits / largest / max(float((bits / largest).sum()), 1e-300)
    return feasible_solution(problem, share, problem.rho_at(share), float("nan"), "proportional")
