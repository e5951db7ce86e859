"""The exact pruning and bandwidth allocation: Liu, eqs. (43)-(58), with the bounds that (54) leaves out.

The optimal share is (54) clipped to its bounds. In mu = lambda^(-1/2) it is a clipped straight line,

    b_k(mu) = clip(mu s_k - o_k, low_k, cap_k),     s_k = sqrt(w (A q + f G) / r) / G,    o_k = q / (r G),

so that sum_k b_k(mu) = 1 is piecewise linear and increasing: Newton steps, kept inside a bracket, end at the root.
Where G = 0, rho is linear in b and b_k(mu) jumps from low to cap at mu_k = sqrt(r) q / sqrt(w (A q + f G)).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvers.certify import certified
from solvers.problem import FULL, Allocation, Array, PruningProblem
from solvers.stretch import fitting_bounds

EPS = float(np.finfo(float).eps)


def kkt(problem: PruningProblem) -> Allocation:
    """Shares and pruning ratios of least weighted pruning, from the KKT conditions; see `solvers.allocate`."""
    low, cap = fitting_bounds(problem)
    if cap.sum() <= 1:
        share, multiplier = cap, 0.0  # everybody gets all that is of use
    elif low.sum() >= FULL:
        share, multiplier = low, steepest(problem, low, cap)  # nobody can get more than the least
    else:
        share, multiplier = _fill(problem, low, cap)
    return certified(problem, share, problem.rho_at(share), multiplier, "kkt")


def steepest(problem: PruningProblem, low: Array, cap: Array) -> float:
    """A multiplier that holds everybody at the lower bound: the largest marginal there."""
    on = cap > low
    gain = _gain(problem)[on]
    spent = (problem.rate_bps * problem.compute_s * low + problem.bits)[on]
    return float((gain / spent * (problem.rate_bps[on] / spent)).max(initial=0.0))


def _gain(problem: PruningProblem) -> Array:
    """w (A q + f G): numerator of the marginal -d(w rho)/db = r w (A q + f G) / (r G b + q)^2."""
    return problem.weight * (problem.slack_s * problem.bits + problem.bits_fixed * problem.compute_s)


def _fill(problem: PruningProblem, low: Array, cap: Array) -> tuple[Array, float]:
    """Shares that fill the band exactly, and lambda. Works in units of the largest slack and weight."""
    unit_s, unit_weight = problem.slack_s.max(), problem.weight.max()
    u = problem.bits / problem.rate_bps / unit_s
    phi = problem.bits_fixed / problem.rate_bps / unit_s
    g, a = problem.compute_s / unit_s, problem.slack_s / unit_s
    varies = cap > low
    linear = varies & (g <= EPS * u)  # curvature below rounding
    bent = varies & ~linear
    root = np.sqrt(np.where(varies, problem.weight / unit_weight * (a * u + phi * g), 0.0))
    slope = np.divide(root, g, out=np.zeros_like(g), where=bent)
    offset = np.divide(u, g, out=np.zeros_like(g), where=bent)
    jump = np.divide(u, root, out=np.full_like(g, np.inf), where=linear)

    def shares(mu: float) -> Array:
        b = np.minimum(np.maximum(mu * slope - offset, low), cap)
        return np.where(mu >= jump, cap, b) if linear.any() else b

    enter = np.where(bent, low + offset, np.inf) / np.where(bent, slope, 1.0)
    leave = np.where(bent, cap + offset, 0.0) / np.where(bent, slope, 1.0)
    below = 0.5 * min(enter.min(), jump.min())
    above = 2.0 * max(leave.max(), np.where(linear, jump, 0.0).max())
    start = (1.0 + offset.sum()) / slope.sum() if bent.any() else below
    share, mu = _balance(shares, slope, low, cap, below, above, start)
    return share, float(unit_weight / mu**2)


def _balance(
    shares: Callable, slope: Array, low: Array, cap: Array, below: float, above: float, mu: float
) -> tuple[Array, float]:
    """Newton for sum b(mu) = 1 within [below, above]; a bisection of log mu where Newton leaves it or is slow."""
    mu = mu if below < mu < above else float(np.sqrt(below * above))
    for turn in range(400):
        b = shares(mu)
        excess = b.sum() - 1.0
        below, above = (below, mu) if excess > 0 else (mu, above)
        inside = slope.sum(where=(b > low) & (b < cap))
        following = mu - excess / inside if inside > 0 else np.inf  # a step out of the bracket
        if abs(following - mu) <= 2 * EPS * mu or above <= below * (1 + 4 * EPS):
            break
        if not below < following < above or turn % 4 == 3:
            following = float(np.sqrt(below) * np.sqrt(above))
        mu = following
    return _between(shares, below, above, mu), mu


def _between(shares: Callable, below: float, above: float, mu: float) -> Array:
    """Fill the band to the last bit: a mixture of the shares at two neighbouring mu, one short and one in excess.

    Every mixture has its marginals between the two multipliers, so it satisfies the KKT conditions to rounding;
    at a jump this is what splits the band that is left among the devices with G = 0 that are equally good.
    """
    width = 4 * EPS
    while True:
        short, full = shares(max(below, mu * (1 - width))), shares(min(above, mu * (1 + width)))
        total_short, total_full = short.sum(), full.sum()
        if (total_short <= 1 <= total_full and total_short < total_full) or width > 1:
            break
        width *= 4
    mixture = (1 - total_short) / (total_full - total_short) if total_full > total_short else 0.0
    return short + mixture * (full - short)
