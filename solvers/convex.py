"""The same problem for a general solver: cvxpy with Clarabel, scaled to order one. The reference, not the fast path.

It states the deadline, the band and the bounds as they are and knows nothing of the clipped closed form.
Clarabel's interior points reach a relative duality gap of about 1e-12 (median) and marginals that equal the multiplier
to about 1e-7. Where rates, sizes and computing times of the devices lie decades apart the gap stays above 1e-8 on 1 to
2 % of the problems, whatever its settings: the certificate then refuses the answer.
As one unit in the tenth digit of rho is many seconds for a device with hardly any band, only the shares and the
multiplier of the band are Clarabel's; rho is what the deadline asks for with these shares, eq. (47).
"""

from __future__ import annotations

import warnings

import numpy as np

from solvers.certify import certified
from solvers.problem import Allocation, Array, PruningProblem, Uncertified
from solvers.pruning import steepest
from solvers.stretch import ROUNDING, fitting_bounds

TIGHT = {
    "tol_gap_abs": 1e-13,
    "tol_gap_rel": 1e-13,
    "tol_feas": 1e-13,
    "static_regularization_constant": 1e-10,  # with the default 1e-8 the gap stays above 1e-6 on some problems
    "static_regularization_proportional": 0.0,
}
STATIONARITY = 1e-4  # the duality gap, which must be below 1e-8, is quadratic in the error of the marginals
FLAT = 1e4  # curvature up to which the first form of the deadline is well scaled


def convex(problem: PruningProblem) -> Allocation:
    """Shares and pruning ratios of least weighted pruning, by cvxpy and Clarabel; see `solvers.allocate`.

    Raises:
        Uncertified: Clarabel gave up, or its answer is off by more than 1e-8.
    """
    low, cap = fitting_bounds(problem)
    on = np.flatnonzero(cap > low)
    share, multiplier = low.copy(), 0.0
    if low.sum() >= 1 - ROUNDING:  # the feasible set is one point: no interior to walk through, nothing to solve
        share, multiplier = low / low.sum(), steepest(problem, low, cap)
    elif len(on):
        raw, multiplier = _clarabel(problem, on, 1.0 - float(low.sum() - low[on].sum()))
        share[on] = np.clip(raw, low[on], cap[on])  # band beyond cap is of no use and is handed back
        share /= max(1.0, float(share.sum()))
    return certified(problem, share, problem.rho_at(share), multiplier, "convex", STATIONARITY)


def _clarabel(problem: PruningProblem, on: Array, band: float) -> tuple[Array, float]:
    """Shares of the devices `on` [S] and the multiplier of sum b <= band."""
    import cvxpy as cp

    weight = problem.weight[on] / problem.weight[on].sum()
    needed = (problem.bits + problem.bits_fixed)[on] / (problem.rate_bps * problem.slack_s)[on]
    unit = np.minimum(1.0, needed)  # the share with which a device without computation would prune nothing
    beta, rho = cp.Variable(len(on)), cp.Variable(len(on))  # b = unit beta: both of order one
    in_band = (unit / unit.max()) @ beta <= band / unit.max()
    bounds = [beta >= 0, cp.multiply(unit, beta) <= 1, rho >= problem.rho_min[on], rho <= problem.rho_max[on]]
    task = cp.Problem(cp.Minimize(weight @ rho), [in_band, *bounds, *_deadline(problem, on, unit, beta, rho)])
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # the certificate decides
            task.solve(solver=cp.CLARABEL, **TIGHT)
    except cp.error.SolverError as error:
        raise Uncertified(f"Clarabel found no answer ({error}); use the method kkt.") from error
    if task.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise Uncertified(f"Clarabel ended with status {task.status}; use the method kkt.")
    return unit * beta.value, float(in_band.dual_value) / unit.max() * float(problem.weight[on].sum())


def _deadline(problem: PruningProblem, on: Array, unit: Array, beta, rho) -> list:
    """rho >= rho(b), Liu (47), in two algebraic forms: one for little, one for much curvature c = r G / q.

    Little:  b / (1 + c b) = b - c y with y (1 + c b) >= b^2, a second-order cone. Much: through 1 / (b + 1 / c).
    """
    import cvxpy as cp

    full = problem.rate_bps[on] * unit * problem.slack_s[on]  # bits that beta = 1 sends within the slack
    u, phi = problem.bits[on] / full, problem.bits_fixed[on] / full
    g = problem.compute_s[on] / problem.slack_s[on]
    rules = []
    flat = np.flatnonzero(g < FLAT * u)
    if len(flat):
        c = g[flat] / u[flat]
        start = 1.0 + phi[flat] / u[flat]
        fall = (1.0 + phi[flat] * c) / u[flat]
        y, span = cp.Variable(len(flat)), 1.0 + cp.multiply(c, beta[flat])
        rules.append(cp.SOC(span + y, cp.vstack([2.0 * beta[flat], span - y])))
        rules.append(rho[flat] >= start - cp.multiply(fall, beta[flat] - cp.multiply(c, y)))
    bent = np.flatnonzero(g >= FLAT * u)
    if len(bent):
        scale = (u[bent] / g[bent] + phi[bent]) / g[bent]
        reach = beta[bent] + u[bent] / g[bent]
        rules.append(rho[bent] >= 1.0 - 1.0 / g[bent] + cp.multiply(scale, cp.inv_pos(reach)))
    return rules
