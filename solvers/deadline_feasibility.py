"""Whether the least shares fit into the band, and how much more time is needed if not.

With rho_max < 1 (or fixed bits) device k needs at least b = n / (A - c): n seconds of the whole
band for what it must send, c seconds for what it must compute. With time x added,
sum_k n_k / (A_k + x - c_k) <= 1 is a secular equation.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context

import numpy as np

from solvers.arrays import Array, Mask
from solvers.problem import FEASIBILITY_TOLERANCE, PruningProblem
from solvers.solution import InfeasibleError


def fitting_bounds(problem: PruningProblem, most: float = 1.0) -> tuple[Array, Array]:
    """Lower and upper bounds of the shares [K]; the lower ones add up to at most 1.

    Args:
        problem: K devices.
        most: what no upper bound exceeds.

    Raises:
        InfeasibleError: names the devices and the least additional time with which they fit.
        ValueError: a device has no deadline.
    """
    if problem.slack_s.max() == np.inf:
        k = int(np.argmax(np.isinf(problem.slack_s)))
        raise ValueError(
            f"slack_s of device {k} is inf; without a deadline take latency, equal or proportional."
        )
    low, cap = problem.share_bounds(most)
    needed = low.sum()
    if needed > 1 + FEASIBILITY_TOLERANCE:
        raise infeasible_error(problem, low, least_extra_s(problem))
    if needed > 1:  # squeezed into the band: no device is later by more than the tolerance
        low, cap = low / needed, np.where(cap > low, cap, low / needed)
    return low, cap


def least_extra_s(problem: PruningProblem) -> float:
    """Least time, added to every slack, with which the least shares fit into the band, s.

    A device with A <= 0 that the added time brings back must fit as well. The result is rounded
    up until the problem with slack_s + extra_s fits in floating point too.
    """
    extra_s, inside = 0.0, problem.feasible
    while True:
        extra_s = max(extra_s, least_time_s(problem, inside))
        joined = problem.slack_s + extra_s > 0
        if (joined == inside).all():
            break
        inside = joined
    step = float(np.spacing(np.abs(problem.slack_s).max() + extra_s))
    while np.where(inside, problem.share_at(problem.rho_max, extra_s), 0.0).sum() > 1:
        extra_s, step = extra_s + step, 2 * step
        inside = problem.slack_s + extra_s > 0
    return extra_s


def least_time_s(problem: PruningProblem, inside: Mask) -> float:
    """Least x, s, with which the devices `inside` fit: Newton's method on 1 / sum of shares.

    Where noise is a fixed power 1 / sum is concave, and Newton's method climbs to the root
    without overstepping; elsewhere it is bisected.
    """
    kept = 1.0 - problem.rho_max
    bits = kept * problem.bits + problem.bits_fixed
    busy_s = kept * problem.compute_s - problem.slack_s
    alone_s = busy_s + bits / problem.rate_bps  # no device can do with less, alone in the band
    x = below = float(alone_s.max(where=inside, initial=0.0))
    inside, above = inside & (bits > 0), np.inf
    for _ in range(200):
        with np.errstate(divide="ignore"):
            rate_bps = np.where(inside, bits / np.where(inside, x - busy_s, 1.0), 0.0)
        share = problem.share_for_rate(rate_bps)
        used = float(share.sum())
        below, above = (x, above) if used > 1 else (below, x)
        if used == 1 or below >= above * (1 - 2e-16) or not inside.any():
            break
        # 0 / 0 where sending takes no time that shows beside busy_s
        with np.errstate(divide="ignore", invalid="ignore"):
            fall = rate_bps / np.where(inside, problem.slope_at(share) * (x - busy_s), 1.0)
            following = x + used * (used - 1) / fall.sum()
        if not abs(following - x) > 1e-16 * x:
            break
        x = following if below < following < above else 0.5 * (below + above)
    return float(x)


def seconds_rounded_up(seconds: float) -> str:
    """Seconds in six digits, rounded up, as what is advised must be enough."""
    context = Context(prec=6, rounding=ROUND_CEILING)
    return f"{float(context.create_decimal_from_float(seconds)):.6g}"


def infeasible_error(
    problem: PruningProblem, low: Array, extra_s: float, whole: str = ""
) -> InfeasibleError:
    """The error for least shares `low` [K] that do not fit into the band.

    It speaks of pruning where a device named could be pruned more or less.

    Args:
        problem: K devices.
        low: least shares [K].
        extra_s: time with which they fit, s; inf where no time is enough.
        whole: words after "the band".
    """
    devices = np.flatnonzero(low > 1) if (low > 1).any() else np.flatnonzero(low > 0)
    needed = float(low[devices].sum())
    who = "devices {} need" if len(devices) > 1 else "device {} needs"
    need = f"{needed:.6g} times the band{whole}"
    if not np.isfinite(needed):
        need = "more time than there is, with any band"
    advice = "no time is enough: give more blocks"
    if np.isfinite(extra_s):
        advice = f"give {seconds_rounded_up(extra_s)} s more time"
    sentence = f"{who.capitalize()} {need}; {advice}."
    if (problem.rho_max > problem.rho_min)[devices].any():
        sentence = f"Even pruned to rho_max, {who} {need}; {advice} or raise rho_max."
    return InfeasibleError(sentence, tuple(int(k) for k in devices), extra_s)
