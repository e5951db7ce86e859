"""Liu, eqs. (54) and (58), exactly as printed: for comparison only, as they know no bounds."""

from __future__ import annotations

import numpy as np

from solvers.acceptance import compared_solution
from solvers.problem import PruningProblem
from solvers.solution import Solution


def printed(problem: PruningProblem) -> Solution:
    """b = (sqrt(A q r / lambda) - q) / (r G) with lambda from sum b = 1, and rho from b.

    Nothing is clipped: on most problems shares or ratios are out of their bounds (see
    docs/papers/liu.md), and `certificate.broken` names them. Devices with A <= 0 are left out.

    Raises:
        ValueError: the printed form divides by G and q and knows neither weights, fixed bits,
            levels, a density of noise nor infinite slack.
    """
    problem.refuse_levels("printed")
    on = problem.feasible
    columns = (problem.bits, problem.compute_s, problem.slack_s, problem.rate_bps)
    q, g, a, r = (values[on] for values in columns)
    if (q == 0).any() or (g == 0).any() or np.isinf(a).any():
        raise ValueError(
            "printed needs bits > 0, compute_s > 0 and finite slack_s on every device; "
            "use kkt instead."
        )
    if problem.snr is not None:
        raise ValueError(
            "printed knows noise of a fixed power only; leave snr away or use kkt instead."
        )
    if (problem.weight != 1).any() or problem.bits_fixed.any():
        raise ValueError(
            "printed knows neither weights nor bits_fixed; leave them at 1 and 0 or use kkt."
        )
    share, rho = np.zeros(problem.num_devices), np.array(problem.rho_max)
    multiplier = 0.0
    if on.any():
        multiplier = (np.sum(np.sqrt(a * q / r) / g) / (1.0 + np.sum(q / (r * g)))) ** 2
        share[on] = (np.sqrt(a * q * r / multiplier) - q) / (r * g)  # (54)
        rho[on] = 1.0 - a * share[on] * r / (share[on] * r * g + q)  # (58)
    return compared_solution(problem, share, rho, multiplier, "printed")
