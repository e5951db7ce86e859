"""The round of least energy within the latency budget, over band, CPU frequency and transmit power.

After Yang, Chen, Saad, Hong, Shikh-Bahaei, "Energy efficient federated learning over wireless communication networks",
IEEE Trans. Wireless Commun. 2021, for one round at given pruning ratios (rho_min):

    minimise    sum_k  kappa_k C_k f_k^2 + p_k t_k                       C: cycles of the round
    subject to  C_k / f_k + t_k <= A_k                                   A: the latency budget
                t_k b_k B log2(1 + p_k g_k / n(b_k)) >= n_k              n = 1: noise of a fixed power; n = b: a density
                sum_k b_k <= 1,  f_min <= f_k <= f_max,  0 <= p_k <= p_max

In share, air time t and computing time C / f it is convex, so a KKT point is an optimum. A price on the band decides
for each device by itself (`energy_curve`); the band is worth the price at which the shares fill it (`energy_price`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.deadline_feasibility import at_least, fitting_bounds
from solvers.min_energy.band_price import balances
from solvers.min_energy.energy_certificate import certified_energy, raised
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.problem import Array, PruningProblem
from solvers.solution import InfeasibleError, Solution, UncertifiedError

FULL_POWER = 1.0 - 1e-12  # a power this close to its limit is at it
SPENT = 1.0 - 1e-6  # least shares that add up to this leave next to nothing to choose from


@np.errstate(all="ignore")  # what is not finite is refused
def energy(problem: PruningProblem) -> Solution:
    """Shares, clocks and powers of least total joules within the deadlines; nobody is pruned more than rho_min.

    Needs `problem.energy`, an `EnergyTerms`. The allocation has cpu_hz [K] and power_w [K] as well; its objective is
    the energy, J, its multiplier the joules that it falls by per unit of band.

    Raises:
        InfeasibleError: not even full clocks and powers meet the deadlines; says how much more time would do.
        UncertifiedError: the answer is off by more than 1e-8.
        ValueError: the problem has no energy terms, a device no deadline, or numbers that leave the range of doubles.
    """
    task, low = EnergyProblem.of(problem), least_shares(problem)
    if not task.sends.any():
        return _certified(task, *np.zeros((2, 0)), 0.0)
    first = None
    for found in balances(task, low[task.sends]):
        try:
            return _certified(task, *found)
        except UncertifiedError as off:
            first = first or off
    raise _nearly_all(low, first) from first


def _certified(task: EnergyProblem, b: Array, t: Array, price: float) -> Solution:
    """The allocation with these shares, air times (s) and price of those who send [S]."""
    problem, on = task.problem, task.problem.feasible
    share, air_s, power_w = np.zeros((3, len(on)))
    share[task.sends], air_s[task.sends] = b, t
    power, most = task.radio.power(b, t), task.radio.p_max
    held = power >= most * FULL_POWER
    power_w[task.sends] = np.where(held, most, power)
    air_s[task.sends] = np.where(held, task.air_s(share, power_w)[task.sends], t)
    price = raised(task, share, power_w, price)
    cpu_hz = clocks(task, air_s)
    joules, proof = certified_energy(task, share, cpu_hz, power_w, price)
    rho = np.where(on, problem.rho_min, problem.rho_max)
    left_out = tuple(np.flatnonzero(~on).tolist())
    return Solution(share, rho, price, proof, left_out, "energy", joules, cpu_hz, power_w, problem)


def _nearly_all(low: Array, off: UncertifiedError) -> UncertifiedError:
    """Who it is that leaves no choice, where the least shares low [K] all but fill the band; else what was said."""
    k = int(np.argmax(low))
    if low.sum() < SPENT:
        return off
    return UncertifiedError(
        f"At full clock and power all devices need {100 * low.sum():.10g} % of the band, device {k} alone "
        f"{100 * low[k]:.4g} %: too little is left to choose from for energy to be certified (gap or residual above "
        f"1e-8); give more time, or leave device {k} out."
    )


def clocks(task: EnergyProblem, air_s: Array) -> Array:
    """Frequencies [K] that take all the time the upload leaves, within their bounds, Hz; f_max without cycles."""
    tau = np.maximum(task.time_s - air_s, task.tau_min)
    busy = task.problem.feasible & (task.terms.cycles > 0)
    cpu_hz = np.divide(task.terms.cycles, tau, out=task.terms.f_max_hz.copy(), where=busy)
    return np.clip(cpu_hz, task.terms.f_min_hz, task.terms.f_max_hz)


def least_shares(problem: PruningProblem) -> Array:
    """Shares [K] with which full clocks and powers just meet the deadlines."""
    try:
        return fitting_bounds(replace(problem, rho_max=problem.rho_min, levels=None))[0]
    except InfeasibleError as short:
        many = len(short.devices) > 1
        names = f"device{'s' if many else ''} {', '.join(map(str, short.devices[:8]))} {'are' if many else 'is'}"
        raise InfeasibleError(
            f"At full clock and power {names} late with any share{'s' if many else ''} of the band; "
            f"give {at_least(short.extra_s)} s more time or raise rho_min.",
            short.devices,
            short.extra_s,
        ) from short
