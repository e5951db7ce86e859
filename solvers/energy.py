"""The round of least energy within the latency budget, over band, CPU frequency and transmit power.

After Yang, Chen, Saad, Hong, Shikh-Bahaei, "Energy efficient federated learning over wireless communication networks",
IEEE Trans. Wireless Commun. 2021, for one round at given pruning ratios (rho_min):

    minimise    sum_k  kappa_k C_k f_k^2 + p_k t_k                       C: cycles of the round
    subject to  C_k / f_k + t_k <= A_k                                   A: the latency budget
                t_k b_k B log2(1 + p_k g_k / n(b_k)) >= n_k              n = 1: noise of a fixed power; n = b: a density
                sum_k b_k <= 1,  f_min <= f_k <= f_max,  0 <= p_k <= p_max

In share, air time t and computing time C / f it is convex, so a KKT point is an optimum. A price on the band decides
for each device by itself (`energy_curve`); what the band is worth is the root at which the shares fill it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.answer import Allocation, Infeasible, Uncertified
from solvers.certify_energy import certified_energy, raised
from solvers.energy_curve import Radio
from solvers.energy_terms import Task
from solvers.problem import FULL, Array, PruningProblem
from solvers.stretch import at_least, fitting_bounds

EPS = float(np.finfo(float).eps)
SPENT = 1.0 - 1e-6  # least shares that add up to this leave next to nothing to choose from


def energy(problem: PruningProblem) -> Allocation:
    """Shares, clocks and powers of least total joules within the deadlines; nobody is pruned more than rho_min.

    Needs `problem.energy`, an `EnergyTerms`. The allocation has cpu_hz [K] and power_w [K] as well; its objective is
    the energy, J, its multiplier the joules that it falls by per unit of band.

    Raises:
        Infeasible: not even full clocks and powers meet the deadlines; says how much more time would do.
        Uncertified: the answer is off by more than 1e-8.
        ValueError: the problem has no energy terms, or a device no deadline.
    """
    task, on = Task.of(problem), problem.feasible
    low = least_shares(problem)
    share, air_s, power_w, price = *np.zeros((3, len(on))), 0.0
    if task.sends.any():
        b, t, price = balance(task.radio, low[task.sends])
        share[task.sends], air_s[task.sends] = b, t
        power_w[task.sends] = np.minimum(task.radio.power(b, t), task.radio.p_max)
        price = raised(task, share, power_w, price)
    cpu_hz = clocks(task, air_s)
    try:
        joules, proof = certified_energy(task, share, cpu_hz, power_w, price)
    except Uncertified as off:
        raise _nearly_all(low, off) from off
    rho = np.where(on, problem.rho_min, problem.rho_max)
    left_out = tuple(np.flatnonzero(~on).tolist())
    return Allocation(share, rho, price, proof, left_out, "energy", joules, cpu_hz, power_w, problem)


def _nearly_all(low: Array, off: Uncertified) -> Uncertified:
    """Who it is that leaves no choice, where the least shares low [K] all but fill the band; else what was said."""
    k = int(np.argmax(low))
    if low.sum() < SPENT:
        return off
    return Uncertified(
        f"At full clock and power all devices need {100 * low.sum():.10g} % of the band, device {k} alone "
        f"{100 * low[k]:.4g} %: too little is left to choose from for energy to be certified (gap or residual above "
        f"1e-8); give more time, or leave device {k} out."
    )


def clocks(task: Task, air_s: Array) -> Array:
    """Frequencies [K] that take all the time the upload leaves, within their bounds, Hz; f_max without cycles."""
    tau = np.maximum(task.time_s - air_s, task.tau_min)
    busy = task.problem.feasible & (task.terms.cycles > 0)
    cpu_hz = np.divide(task.terms.cycles, tau, out=task.terms.f_max_hz.copy(), where=busy)
    return np.clip(cpu_hz, task.terms.f_min_hz, task.terms.f_max_hz)


def least_shares(problem: PruningProblem) -> Array:
    """Shares [K] with which full clocks and powers just meet the deadlines."""
    try:
        return fitting_bounds(replace(problem, rho_max=problem.rho_min, levels=None))[0]
    except Infeasible as short:
        many = len(short.devices) > 1
        names = f"device{'s' if many else ''} {', '.join(map(str, short.devices[:8]))} {'are' if many else 'is'}"
        raise Infeasible(
            f"At full clock and power {names} late with any share{'s' if many else ''} of the band; "
            f"give {at_least(short.extra_s)} s more time or raise rho_min.",
            short.devices,
            short.extra_s,
        ) from short


def balance(radio: Radio, low: Array) -> tuple[Array, Array, float]:
    """(shares [S], air times [S], s, price, J per unit of band): the best responses to the price that fill the band."""
    from scipy.optimize import brentq

    start, end = radio.ends()
    if low.sum() >= FULL:  # nobody can get more than the least
        return low / low.sum(), radio.longest_s, float(np.exp(radio.at(end)[2].max()))
    known = {-np.inf: (start, radio.at(start)[2]), np.inf: (end, radio.at(end)[2])}  # price -> (u, its price), in logs
    shares = {}

    def excess(log_price: float) -> float:
        if log_price not in shares:  # what is known already narrows the search
            below, above = max(p for p in known if p < log_price), min(p for p in known if p > log_price)
            u, met = radio.response(log_price, *known[below], *known[above])
            known[log_price], shares[log_price] = (u, met), radio.at(u)
        return float(np.log(shares[log_price][0].sum()))

    low_price = high_price = _usual(radio, start, end)
    step = 0.25
    while excess(low_price) < 0:
        low_price, high_price, step = low_price - step, low_price, 2.0 * step
    while excess(high_price) > 0:
        low_price, high_price, step = high_price, high_price + step, 2.0 * step
    log_price = brentq(excess, low_price, high_price, xtol=1e-14, rtol=4 * EPS)
    share, air_s, _ = shares[log_price]
    return share / share.sum(), air_s, float(np.exp(log_price))


def _usual(radio: Radio, start: Array, end: Array) -> float:
    """The logarithm of a price of about the right size: the mean where the shares are about equal."""
    met = radio.at(np.clip(2.0 * len(start) * start, np.sqrt(start * end), end))[2]
    met = np.where(np.isfinite(met), met, radio.at(end)[2])
    return float(met.mean())
