"""Equal shares of the band: the "equal-resource" scheme of Liu, Table I."""

from __future__ import annotations

import numpy as np

from solvers.acceptance import feasible_solution
from solvers.problem import PruningProblem
from solvers.solution import Solution


def equal(problem: PruningProblem, slots: int = 1) -> Solution:
    """b = 1 / S over the S devices with time left, rho from Liu, eq. (47), within its bounds.

    With more ``slots`` than S, b = 1 / slots: the rest of the band stays for others.

    Without a deadline (slack inf) rho is rho_min. A device for which rho_max is not enough
    finishes late. No optimality is claimed: dual, complementarity and gap are nan.
    """
    served = problem.feasible
    share = np.where(served, 1.0 / max(int(served.sum()), slots), 0.0)
    return feasible_solution(problem, share, problem.rho_at(share), float("nan"), "equal")
