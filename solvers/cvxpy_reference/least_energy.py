"""`convex-energy`: least energy by Clarabel, certified, in units of its own answer.

Powers and joules are computed here: nothing of the method `energy`, neither its curves nor its
bounds, is used.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from solvers.arrays import Array
from solvers.cvxpy_reference.certified_methods import PASSES, best_certified, filled, shannon_units
from solvers.cvxpy_reference.statements import NODES, least_energy
from solvers.min_energy.allocator import energy_solution, least_shares
from solvers.min_energy.energy_certificate import price_covering_marginals
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.problem import PruningProblem
from solvers.solution import Solution, UncertifiedError

ENERGY_GAP = 1e-4  # allowed; the bound on the joules is linear in the error of the marginals
MOST_EXPONENTIALS = 4000  # what cvxpy keeps grows with their square, to 2 GiB for so many
SHORTEST = 1e-3  # of an air time, that of the next pass


@np.errstate(all="ignore")  # what is not finite is refused
def convex_energy(problem: PruningProblem) -> Solution:
    """Least energy, see `energy`; certified to 1e-4 of the joules.

    Raises:
        InfeasibleError, ValueError: as `energy`.
        UncertifiedError: no answer of Clarabel is that close, or there are too many devices for
            cvxpy.
    """
    task, low = EnergyProblem.of(problem), least_shares(problem)
    count, nodes = int(task.sends.sum()), len(NODES[0])
    if nodes * count > MOST_EXPONENTIALS:
        raise UncertifiedError(
            f"convex-energy states {nodes} exponentials for each of {count} devices, and above "
            f"{MOST_EXPONENTIALS} in all cvxpy takes gigabytes of memory; use energy."
        )

    def certified(share: Array, air_s: Array, power_w: Array, price: float) -> Solution:
        terms = task.terms
        cpu_hz = terms.cycles / np.maximum(task.time_s - air_s, task.tau_min)
        cpu_hz = np.where(problem.feasible & (terms.cycles > 0), cpu_hz, terms.f_max_hz)
        cpu_hz = np.clip(cpu_hz, terms.f_min_hz, terms.f_max_hz)
        price = price_covering_marginals(task, share, power_w, price)
        return energy_solution(task, share, cpu_hz, power_w, price, "convex-energy", ENERGY_GAP)

    return best_certified("convex-energy", "energy", least_joules(task, low), certified)


def least_joules(task: EnergyProblem, low: Array) -> Iterator[tuple[Array, Array, Array, float]]:
    """Shares, air times (s) and powers (W) [K], and the price of the band, J, of every pass.

    Args:
        task: K devices.
        low: shares [K] with which full clocks and powers just meet the deadlines.
    """
    on, density, answer = task.sends, task.problem.snr is not None, np.zeros((3, len(low)))
    if not on.any():
        yield *answer, 0.0
        return
    nats = (np.log1p(task.snr) * task.bits / task.problem.rate_bps)[on]  # bits over the band
    gain, p_max_w, low = task.terms.gain[on], task.terms.p_max_w[on], low[on]
    work = (task.terms.kappa * task.terms.cycles**3)[on]
    time_s, tau_min, tau_max = task.time_s[on], task.tau_min[on], task.tau_max[on]

    def full_power_s(b: Array) -> Array:
        return nats / (b * np.log1p(p_max_w * gain / (b if density else 1.0)))

    def power(b: Array, air_s: Array) -> Array:
        return np.expm1(nats / (b * air_s)) / gain * (b if density else 1.0)

    left = 1.0 - float(low.sum())
    b0 = low + left / len(low)
    t0 = np.maximum(0.5 * (time_s - tau_min), full_power_s(b0))
    for _ in range(PASSES):
        busy_s = np.where(tau_max > 0, np.clip(time_s - t0, tau_min, tau_max), time_s)
        joule = float((power(b0, t0) * t0 + work / busy_s**2).sum())
        values = {
            "air": t0 / time_s,
            "busy": np.where(tau_max > 0, busy_s / time_s, 0.0),
            "v_min": np.where(tau_max > 0, tau_min / busy_s, 0.5),
            "v_max": np.where(tau_max > 0, tau_max / busy_s, 1.0),
            "load": full_power_s(b0) / t0,
            "computing": work / busy_s**2 / joule,
            "x0": nats / (b0 * t0),
            "cost": np.log(nats / gain / (1.0 if density else b0) / joule),
            "b0": b0 / b0.max(),
            "band": 1.0 / b0.max(),
        }
        values |= shannon_units(p_max_w * gain / b0) if density else {}
        try:
            beta, u, price = least_energy(len(b0), density).solve(values)
        except UncertifiedError:
            return
        b0 = low + filled(b0 * beta - low, 1.0 - low, left)
        air_s = np.clip(t0 * u, full_power_s(b0), time_s - tau_min)
        answer[:, on] = b0, air_s, np.minimum(power(b0, air_s), p_max_w)
        yield *answer.copy(), price * values["band"] * joule
        t0 = np.maximum(air_s, SHORTEST * t0)
