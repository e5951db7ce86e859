"""Shares in proportion to the bits that each device must send; the pruning that then meets the deadline."""

from __future__ import annotations

import numpy as np

from solvers.certificate import feasible
from solvers.problem import PruningProblem
from solvers.solution import Solution


def proportional(problem: PruningProblem) -> Solution:
    """b_k = n_k / sum_j n_j with n = (1 - rho_min) q + f, the bits of the least pruned upload; rho from Liu, eq. (47).

    Blind to rates and deadlines: a device for which rho_max is not enough finishes late, as with `equal`. Equal shares
    where nobody has anything to send. Claims no optimality: dual, complementarity and gap of the certificate are nan.
    """
    bits = np.where(
        problem.feasible, (1.0 - problem.rho_min) * problem.bits + problem.bits_fixed, 0.0
    )
    bits = bits if bits.any() else problem.feasible.astype(float)
    unit = max(float(bits.max()), 1e-300)
    share = bits / unit / max(float((bits / unit).sum()), 1e-300)
    return feasible(problem, share, problem.rho_at(share), float("nan"), "proportional")
