"""The least latency of a round at given pruning ratios: min max_k of Liu, eq. (28), over shares.

With c_k seconds spent before the upload and n_k bits to send, device k is back at T with the share

    b_k(T) = R_k^-1(n_k / (T - c_k)),

decreasing in T under both noises. The least T is the root of sum_k b_k(T) = 1, where all devices
that send are back together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.acceptance import accepted_solution
from solvers.arrays import Array, Mask
from solvers.bound_violations import check_feasible
from solvers.deadline_feasibility import least_time_s
from solvers.problem import PruningProblem
from solvers.problem_checks import range_error
from solvers.solution import Certificate, Solution

CLAIM = "no shares bring the last device back earlier, at these pruning ratios"


@np.errstate(all="ignore")  # what is not finite is refused
def latency(problem: PruningProblem) -> Solution:
    """Shares with which the last device is back as early as possible, at rho_min.

    That is what FedAvg and personalisation without pruning need (rho_min = rho_max = 0). A device
    is back after `before_s` + finish_s. A deadline is no bound here: with a budget that is too
    short devices finish late, as with `equal`. The objective is the time at which the last device
    is back, s, the multiplier the seconds it falls by per unit of band.

    Raises:
        UncertifiedError: the answer is off by more than 1e-8.
        ValueError: before_s is neither given nor implied; numbers so far apart that they leave
            the range of doubles.
    """
    before_s, on = time_before(problem), problem.feasible
    bits, busy_s = upload_work(problem, before_s)
    sends = on & (bits > 0)
    share = np.zeros(problem.num_devices)
    if sends.any():
        upload_s = np.where(sends, _upload_s(problem, bits, busy_s, sends), 1.0)
        share = problem.share_for_rate(np.where(sends, bits / upload_s, 0.0))
        share = share / share.sum()
        if not np.isfinite(share).all():
            raise range_error("latency", problem)
    rho = np.where(on, problem.rho_min, problem.rho_max)
    objective, multiplier, proof = certify_latency(problem, share, rho)
    answer = accepted_solution(problem, share, rho, multiplier, proof, "latency")
    return replace(answer, objective=objective)


def _upload_s(problem: PruningProblem, bits: Array, busy_s: Array, sends: Mask) -> Array:
    """Upload times [K] of those who send, with which all are back together in the full band, s.

    Times count from where the last of them starts: what follows may be far below the digits of
    the time before.
    """
    start_s = busy_s - float(busy_s.max(where=sends, initial=0.0))
    upload = PruningProblem(bits, 0.0, -start_s, problem.rate_bps, rho_max=0.0, snr=problem.snr)
    return least_time_s(upload, sends) - start_s


def time_before(problem: PruningProblem) -> Array:
    """Time [K] of the work before that of the problem, s: `before_s`, or what the slack implies.

    Where all devices have the same threshold, it is T_th - A_k but for a constant.

    Raises:
        ValueError: some devices have a deadline and others have none.
    """
    if problem.before_s is not None:
        return problem.before_s
    endless = np.isinf(problem.slack_s)
    if endless.all():
        return np.zeros(problem.num_devices)
    if endless.any():
        k = int(np.argmax(endless))
        raise ValueError(
            f"slack_s of device {k} is inf and others are not; give all a deadline, or none, "
            "or before_s."
        )
    before_s: Array = problem.slack_s.max() - problem.slack_s
    return before_s


def upload_work(problem: PruningProblem, before_s: Array) -> tuple[Array, Array]:
    """Bits to send [K] and seconds before the upload starts [K], at rho_min."""
    kept = 1.0 - problem.rho_min
    return kept * problem.bits + problem.bits_fixed, before_s + kept * problem.compute_s


def certify_latency(
    problem: PruningProblem, share: Array, rho: Array
) -> tuple[float, float, Certificate]:
    """Certificate of least latency, evaluated in SI units from shares [K] and ratios [K].

    The finish F_k is convex in b_k, so every weighting mu >= 0 with sum mu = 1 bounds the last
    finish from below: max F >= sum mu_k F_k(b*) >= sum mu_k F_k(b) - lambda (1 - sum b), with
    mu_k = lambda / |F_k'(b)| over those who send in time left (A > 0), and the sum over their
    shares, as what others hold is lost. The gap is the last finish less that bound, relative.
    dual is zero by the choice of mu. complementarity: band that is idle, devices that are back
    before the last of those who send, pruning above rho_min.

    Returns:
        Last finish, s; multiplier, s per unit of band; the certificate.
    """
    check_feasible(problem, share, rho, "latency")
    on, before_s = problem.feasible, time_before(problem)
    bits, busy_s = upload_work(problem, before_s)
    sends = on & (bits > 0)
    finish_s = before_s + problem.finish_s(share, rho)
    last_s = float(finish_s.max(where=on, initial=0.0))
    primal = max(0.0, float(share.sum()) - 1.0, -float(share.min(initial=0.0)))
    idle_s = float(busy_s.max(where=on & ~sends, initial=0.0))  # no band brings these back earlier
    lavish = float((rho - problem.rho_min).max(where=on, initial=0.0))
    all_back = np.isfinite(last_s) and bool((share[sends] > 0).all())
    if not (sends.any() and all_back):
        gap = (last_s - idle_s) / max(last_s, 1e-300) if all_back else np.inf
        return last_s, 0.0, Certificate(max(primal, lavish), gap, primal, 0.0, lavish, claim=CLAIM)
    steep = (problem.slope_at(share) * bits)[sends] / problem.rate_at(share)[sends] ** 2  # |F'|
    soft = float((1.0 / steep).sum())
    if not 0.0 < soft < np.inf:
        raise range_error("latency", problem)
    price = 1.0 / soft
    mu, idle = price / steep, 1.0 - float(share[sends].sum())
    bound_s = float(mu @ finish_s[sends]) - price * idle
    # of those who send, which is also best where the last device only computes
    latest_s = float(finish_s[sends].max())
    unused_s = max(float((mu * (latest_s - finish_s[sends])).max()), price * max(idle, 0.0))
    complementarity = max(unused_s / max(last_s, 1e-300), lavish)
    gap = abs(latest_s - bound_s) / max(last_s, 1e-300)
    residual = max(primal, complementarity)
    proof = Certificate(residual, gap, primal, 0.0, complementarity, claim=CLAIM)
    return last_s, price if latest_s >= idle_s else 0.0, proof
