"""Least energy by Clarabel, solved again in units of its own answer.

Powers and joules are computed here: nothing of the method `energy`, neither its curves nor its
bounds, is used.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from solvers.arrays import Array
from solvers.cvxpy_reference.passes import filled, shannon_units
from solvers.cvxpy_reference.statements import least_energy
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.solution import UncertifiedError

PASSES = 6  # at most
MOST_EXPONENTIALS = 4000  # what cvxpy keeps grows with their square, to 2 GiB for so many
SHORTEST = 1e-3  # of an air time, that of the next pass
REACH = {8: 4.0, 12: 12.0, 16: 25.0, 20: 42.0, 24: 53.0, 32: 120.0}
"""Number of nodes -> x up to which their sum is exact to 1e-13."""
Choice = tuple[Array, Array, Array, float]


class Senders:
    """The devices [S] that send, at rho_min: how much, until when, at which cost.

    Args:
        task: K devices.
    """

    def __init__(self, task: EnergyProblem) -> None:
        p, terms, on = task.problem, task.terms, task.sends
        self.density, self.gain, self.p_max_w = p.snr is not None, terms.gain[on], terms.p_max_w[on]
        self.nats_s = (np.log1p(task.snr) * task.bits / p.rate_bps)[on]  # bits over the band
        self.work = (terms.kappa * terms.cycles**3)[on]
        self.tau_min, self.tau_max, self.time_s = (
            each[on] for each in (task.tau_min, task.tau_max, task.time_s)
        )
        self.low = p.share_at(p.rho_min)[on]

    def power_w(self, share: Array, air_s: Array) -> Array:
        """Least powers [S] that send the bits on these shares in these times, W."""
        level = np.expm1(self.nats_s / (share * air_s)) / self.gain
        return share * level if self.density else level

    def nats_at_full_power(self, share: Array) -> Array:
        """x [S] at full power."""
        return np.log1p(self.p_max_w * self.gain / (share if self.density else 1.0))

    def full_power_s(self, share: Array) -> Array:
        """Air times [S] at full power, s."""
        return self.nats_s / (share * self.nats_at_full_power(share))

    def nodes(self) -> int:
        """Nodes that are exact for every x of the power limit in the least shares."""
        most = float(self.nats_at_full_power(self.low).max())
        return next((count for count, reach in REACH.items() if most <= reach), max(REACH))

    def units(self, b0: Array, air_s: Array) -> tuple[dict[str, Array], Array, float]:
        """Parameters in units of these shares and air times [S], computing times and joules."""
        computes = self.tau_max > 0
        left_s = np.clip(self.time_s - air_s, self.tau_min, self.tau_max)
        busy_s = np.where(computes, left_s, self.time_s)
        x, computing = self.nats_s / (b0 * air_s), self.work / busy_s**2
        # between all the energy and what the band is worth, so that neither is lost in rounding
        sending = self.power_w(b0, air_s) * air_s
        steep = sending * x / -np.expm1(-x) - (sending if self.density else 0.0)
        joule = float(np.sqrt((sending + computing).sum() * steep.sum()))
        values = {
            "air": air_s / self.time_s,
            "busy": np.where(computes, busy_s / self.time_s, 0.0),
            "v_min": np.where(computes, self.tau_min / busy_s, 0.5),
            "v_max": np.where(computes, self.tau_max / busy_s, 1.0),
            "load": self.full_power_s(b0) / air_s,
            "computing": computing / joule,
            "x": x,
            "cost": np.log(self.nats_s / self.gain / (1.0 if self.density else b0) / joule),
        }
        if self.density:
            values |= shannon_units(self.p_max_w * self.gain / b0)
        return values, busy_s, joule


def least_joules(task: EnergyProblem) -> Iterator[Choice]:
    """Shares, clocks (Hz) and powers (W) [K] of least energy and the price of the band, J.

    The first pass measures in shares between equal ones and the least ones.

    Raises:
        UncertifiedError: Clarabel found no answer; more devices than cvxpy has memory for.
    """
    on, terms = task.sends, task.terms
    share, air_s, power_w, price = *np.zeros((3, len(on))), 0.0
    for found in _of_senders(Senders(task)) if on.any() else [(0.0, 0.0, 0.0, 0.0)]:
        share[on], air_s[on], power_w[on], price = found
        cpu_hz = terms.cycles / np.maximum(task.time_s - air_s, task.tau_min)
        cpu_hz = np.where(task.problem.feasible & (terms.cycles > 0), cpu_hz, terms.f_max_hz)
        cpu_hz = np.clip(cpu_hz, terms.f_min_hz, terms.f_max_hz)
        yield share.copy(), cpu_hz, power_w.copy(), price


def _of_senders(cell: Senders) -> Iterator[Choice]:
    """Shares, air times (s) and powers (W) [S], and the price, of one pass after the other."""
    count, nodes = len(cell.low), cell.nodes()
    if nodes * count > MOST_EXPONENTIALS:
        raise UncertifiedError(
            f"convex-energy states {nodes} exponentials for each of {count} devices, and above "
            f"{MOST_EXPONENTIALS} in all cvxpy takes gigabytes of memory; use energy."
        )
    statement, longest_s = least_energy(count, cell.density, nodes), cell.time_s - cell.tau_min
    b0 = np.maximum(np.sqrt(cell.low) / np.sqrt(cell.low).sum(), cell.low)
    t0 = np.maximum(0.5 * longest_s, cell.full_power_s(b0))
    for _ in range(PASSES):
        values, busy0_s, joule = cell.units(b0, t0)
        widest = float(b0.max())
        beta, u, v, price = statement.solve(values | {"part": b0 / widest, "band": 1 / widest})
        air_s, busy_s = t0 * u, np.clip(busy0_s * v, cell.tau_min, cell.tau_max)
        # of air and computing time it is the shorter that has the digits
        left_s = np.minimum(cell.time_s - busy_s, longest_s)
        b0 = filled(b0 * beta, cell.low, np.ones_like(b0))
        air_s = np.maximum(np.where(busy_s < air_s, left_s, air_s), cell.full_power_s(b0))
        yield b0, air_s, np.minimum(cell.power_w(b0, air_s), cell.p_max_w), price / widest * joule
        t0 = np.clip(air_s, SHORTEST * t0, longest_s)
