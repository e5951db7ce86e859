"""The round of least energy within the latency budget, over band, CPU frequency and power.

After Yang, Chen, Saad, Hong, Shikh-Bahaei, "Energy efficient federated learning over wireless
communication networks", IEEE Trans. Wireless Commun. 2021, for one round at given pruning ratios
(rho_min):

    minimise    sum_k  kappa_k C_k f_k^2 + a_k p_k t_k                   C: cycles of the round
    subject to  C_k / f_k + t_k <= A_k                                   A: the latency budget
                t_k b_k B log2(1 + p_k g_k / n(b_k)) >= bits_k
                sum_k b_k <= 1,  f_min <= f_k <= f_max,  0 <= p_k <= p_max

with n = 1 where noise is a fixed power and n = b where it is a density. a is the part of the upload
in which a device is on the air, 1 but for TDD patterns, and B log2(...) the rate averaged over all
of it. In share, time t of the upload and computing time C / f it is convex, so a KKT point is an
optimum. At a price of the band each device decides by itself (`energy_curve`); the band is worth
the price at which the shares fill it (`band_price`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.arrays import Array
from solvers.deadline_feasibility import fitting_bounds, seconds_rounded_up
from solvers.min_energy.band_price import band_filling_shares
from solvers.min_energy.energy_certificate import (
    OPTIMALITY_TOLERANCE,
    certified_energy,
    price_covering_marginals,
)
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.problem import PruningProblem
from solvers.solution import InfeasibleError, Solution, UncertifiedError

FULL_POWER = 1.0 - 1e-12  # a power this close to its limit is at it
SPENT = 1.0 - 1e-6  # least shares that add up to this leave next to nothing to choose from


@np.errstate(all="ignore")  # what is not finite is refused
def energy(problem: PruningProblem) -> Solution:
    """Shares, clocks and powers of least total joules within the deadlines, at rho_min.

    Needs `problem.energy`. The solution has cpu_hz [K] and power_w [K]; its objective is the
    energy, J, its multiplier the joules that it falls by per unit of band.

    Raises:
        InfeasibleError: not even full clocks and powers meet the deadlines; says how much more
            time would be enough.
        UncertifiedError: the answer is off by more than 1e-8.
        ValueError: the problem has no energy terms, a device no deadline, or numbers that leave
            the range of doubles.
    """
    task, low = EnergyProblem.of(problem), least_shares(problem)
    if not task.sends.any():
        return _certified(task, np.zeros(0), np.zeros(0), 0.0)
    refused: list[UncertifiedError] = []
    for found in band_filling_shares(task, low[task.sends]):
        try:
            return _certified(task, *found)
        except UncertifiedError as off:
            refused.append(off)
    raise _nearly_all(low, refused[0]) from refused[0]


def _certified(task: EnergyProblem, b: Array, t: Array, price: float) -> Solution:
    """The solution with these shares, air times (s) and price of those who send [S]."""
    share, air_s, power_w = np.zeros((3, task.problem.num_devices))
    share[task.sends], air_s[task.sends] = b, t
    power, most = task.radio.power(b, t), task.radio.p_max
    held = power >= most * FULL_POWER
    power_w[task.sends] = task.sent_w(np.where(held, most, power))
    air_s[task.sends] = np.where(held, task.air_s(share, power_w)[task.sends], t)
    price = price_covering_marginals(task, share, power_w, price)
    return energy_solution(task, share, clocks(task, air_s), power_w, price, "energy")


def energy_solution(
    task: EnergyProblem,
    share: Array,
    cpu_hz: Array,
    power_w: Array,
    price: float,
    method: str,
    tolerance: float = OPTIMALITY_TOLERANCE,
) -> Solution:
    """The solution with these shares, clocks, powers [K] and price, if it can be certified.

    Raises:
        UncertifiedError: see `certified_energy`.
    """
    joules, proof = certified_energy(task, share, cpu_hz, power_w, price, tolerance)
    problem, on = task.problem, task.problem.feasible
    rho = np.where(on, problem.rho_min, problem.rho_max)
    left_out = tuple(np.flatnonzero(~on).tolist())
    return Solution(share, rho, price, proof, left_out, method, joules, problem, cpu_hz, power_w)


def _nearly_all(low: Array, off: UncertifiedError) -> UncertifiedError:
    """An error with the device that leaves no choice where least shares all but fill the band."""
    k = int(np.argmax(low))
    if low.sum() < SPENT:
        return off
    return UncertifiedError(
        f"At full clock and power all devices need {100 * low.sum():.10g} % of the band, device "
        f"{{}} alone {100 * low[k]:.4g} %: too little is left to choose from for energy to be "
        f"certified (gap or residual above 1e-8); give more time, or leave device {{}} out.",
        (k, k),
    )


def clocks(task: EnergyProblem, air_s: Array) -> Array:
    """Frequencies [K] that take all the time the upload leaves, Hz; f_max without cycles."""
    tau = np.maximum(task.time_s - air_s, task.tau_min)
    busy = task.problem.feasible & (task.terms.cycles > 0)
    cpu_hz = np.divide(task.terms.cycles, tau, out=task.terms.f_max_hz.copy(), where=busy)
    return np.minimum(np.maximum(cpu_hz, task.terms.f_min_hz), task.terms.f_max_hz)


def least_shares(problem: PruningProblem) -> Array:
    """Shares [K] with which full clocks and powers just meet the deadlines.

    Raises:
        InfeasibleError: they do not fit into the band.
    """
    try:
        return fitting_bounds(replace(problem, rho_max=problem.rho_min, levels=None))[0]
    except InfeasibleError as short:
        who, shares = "device {} is", "share"
        if len(short.devices) > 1:
            who, shares = "devices {} are", "shares"
        less = (problem.rho_max > problem.rho_min)[[*short.devices]].any()
        raise InfeasibleError(
            f"At full clock and power {who} late with any {shares} of the band; "
            f"give {seconds_rounded_up(short.extra_s)} s more time"
            f"{' or raise rho_min' if less else ''}.",
            short.devices,
            short.extra_s,
        ) from short
