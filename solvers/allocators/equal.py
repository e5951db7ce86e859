"""Equal shares of the band; the pruning that then meets the deadline: Liu, the "equal-resource" scheme of Table I."""

from __future__ import annotations

import numpy as np

from solvers.certificate import feasible
from solvers.problem import PruningProblem
from solvers.solution import Solution


def equal(problem: PruningProblem) -> Solution:
    """b = 1 / S over the S devices with time left, rho from (47) clipped to its bounds.

    Without a deadline (slack inf) rho = rho_min. A device for which rho_max is not enough finishes late (erratum 4).
    Claims no optimality: dual, complementarity and gap of the certificate are nan.
    """
    served = problem.feasible
    share = np.where(served, 1.0 / max(int(served.sum()), 1), 0.0)
    return feasible(problem, share, problem.rho_at(share), float("nan"), "equal")
