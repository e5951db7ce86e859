"""Do the least shares fit into the band, and if not, how much more time is needed?

With rho_max < 1 (or fixed bits) device k needs at least b = n / (A - c): n seconds of the whole band for what it must
send, c seconds for what it must compute. Added time x gives sum_k n_k / (A_k + x - c_k) <= 1, a secular equation.
"""

from __future__ import annotations

import numpy as np

from solvers.problem import Array, Infeasible, PruningProblem

ROUNDING = 1e-9  # least shares that exceed the band by less are squeezed into it


def fitting_bounds(problem: PruningProblem) -> tuple[Array, Array]:
    """Bounds of the share [K], [K]; the lower ones add up to at most 1.

    Raises:
        Infeasible: names the devices and the least additional time with which they fit.
        ValueError: a device has no deadline.
    """
    if np.isinf(problem.slack_s).any():
        k = int(np.argmax(np.isinf(problem.slack_s)))
        raise ValueError(f"slack_s of device {k} is inf; without a deadline only the method equal can share the band.")
    low, cap = problem.share_bounds()
    total = low.sum()
    if total > 1 + ROUNDING:
        raise _infeasible(problem, low, total)
    if total > 1:
        low, cap = low / total, np.where(cap > low, cap, low / total)
    return low, cap


def least_extra_s(problem: PruningProblem) -> float:
    """Least time, added to every slack, with which the least shares fit into the band, s.

    A device with A <= 0 that the added time brings back must fit as well. The result is rounded up until the
    problem with slack_s + extra_s fits in floating point too.
    """
    kept = 1.0 - problem.rho_max
    band_s = (kept * problem.bits + problem.bits_fixed) / problem.rate_bps
    busy_s = kept * problem.compute_s
    extra_s, inside = 0.0, problem.feasible
    while True:
        extra_s = max(extra_s, _root(band_s[inside], (busy_s - problem.slack_s)[inside]))
        joined = problem.slack_s + extra_s > 0
        if (joined == inside).all():
            break
        inside = joined
    step = float(np.spacing(np.abs(problem.slack_s).max() + extra_s))
    while _total(band_s, busy_s, problem.slack_s + extra_s) > 1:
        extra_s, step = extra_s + step, 2 * step
    return extra_s


def _total(band_s: Array, busy_s: Array, slack_s: Array) -> float:
    left_s = slack_s - busy_s
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where((band_s == 0) & (left_s >= 0), 0.0, np.where(left_s > 0, band_s / left_s, np.inf))
    return float(np.where(slack_s > 0, share, 0.0).sum())  # as share_bounds and sum do it, to the last bit


def _root(n: Array, c: Array) -> float:
    """Least x with x >= c and sum n / (x - c) <= 1, by Newton on 1 / sum, which is concave: it climbs to the root."""
    x = float((c + n).max(initial=0.0))  # nobody can do with less, alone in the band
    n, c = n[n > 0], c[n > 0]
    for _ in range(100):
        part = n / (x - c)
        total = part.sum()
        if total <= 1:
            break
        step = total * (total - 1) / (part / (x - c)).sum()
        x += step
        if step <= 1e-16 * x:
            break
    return x


def _infeasible(problem: PruningProblem, low: Array, total: float) -> Infeasible:
    extra_s = least_extra_s(problem)
    devices = np.flatnonzero(low > 1) if (low > 1).any() else np.flatnonzero(low > 0)
    names = ", ".join(str(k) for k in devices[:8]) + (f" and {len(devices) - 8} more" if len(devices) > 8 else "")
    need = f"{total:.6g} times the band" if np.isfinite(total) else "more time than they have, with any band"
    return Infeasible(
        f"Even pruned to rho_max, device(s) {names} need {need}; give {extra_s:.6g} s more time or raise rho_max.",
        tuple(int(k) for k in devices),
        extra_s,
    )
