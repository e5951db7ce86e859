"""Least energy by Clarabel, solved again in units of its own answer.

Times, powers and joules are computed here from `PruningProblem` and `EnergyTerms`: nothing of the
method `energy`, neither its curves nor its bounds, is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from solvers.arrays import Array
from solvers.cvxpy_reference.pruning_and_latency import band_units, filled
from solvers.cvxpy_reference.statements import least_energy
from solvers.energy_terms import EnergyTerms
from solvers.problem import PruningProblem
from solvers.solution import UncertifiedError

PASSES = 6  # at most
MOST_EXPONENTIALS = 4000  # what cvxpy keeps grows with their square, to 2 GiB for so many
SHORTEST = 1e-3  # of an air time, that of the next pass
REACH = {8: 4.0, 12: 12.0, 16: 25.0, 20: 42.0, 24: 53.0, 32: 120.0}
"""Number of nodes -> x up to which their sum is exact to 1e-13."""


class Choice(NamedTuple):
    """Shares, clocks (Hz) and powers (W) [K], and the price of the band, J."""

    share: Array
    cpu_hz: Array
    power_w: Array
    price: float


class Cell:
    """The devices at rho_min: what they send and compute, and until when.

    Args:
        problem: K devices.
        terms: their clocks and powers, [K].
    """

    def __init__(self, problem: PruningProblem, terms: EnergyTerms) -> None:
        kept = 1.0 - problem.rho_min
        bits = kept * problem.bits + problem.bits_fixed
        self.problem, self.terms, self.density = problem, terms, problem.snr is not None
        self.sends = problem.feasible & (bits > 0)
        self.snr = terms.p_max_w * terms.gain
        self.nats_s = np.log1p(self.snr) * bits / problem.rate_bps  # bits over the band, s
        self.work = terms.kappa * terms.cycles**3
        self.tau_min = terms.cycles / terms.f_max_hz
        self.time_s = problem.slack_s - kept * problem.compute_s + self.tau_min
        slowest_s = np.where(terms.cycles > 0, terms.cycles / terms.f_min_hz, 0.0)
        self.tau_max = np.minimum(slowest_s, np.maximum(self.time_s, self.tau_min))
        self.longest_s = self.time_s - self.tau_min
        self.low = np.where(self.sends, problem.share_at(problem.rho_min), 0.0)

    def power_w(self, share: Array, air_s: Array) -> Array:
        """Least powers [K] that send the bits on these shares in these times, W."""
        level = np.expm1(self.nats_s / (share * air_s)) / self.terms.gain
        return share * level if self.density else level

    def full_power_s(self, share: Array) -> Array:
        """Air times [K] at full power, s."""
        return self.nats_s / (share * np.log1p(self.snr / share if self.density else self.snr))

    def nodes(self) -> int:
        """Nodes that are exact for every x of the power limit in the least shares."""
        x = np.log1p(self.snr / self.low if self.density else self.snr)
        most = float(x.max(where=self.sends, initial=0.0))
        return next((count for count, reach in REACH.items() if most <= reach), max(REACH))

    def start(self) -> tuple[Array, Array]:
        """Shares and air times [K] to measure in: between equal and least shares, and in time."""
        root = np.sqrt(self.low)
        share = np.where(self.sends, np.maximum(root / root.sum(), self.low), 1.0)
        return share, np.maximum(0.5 * self.longest_s, self.full_power_s(share))

    def choice(self, share: Array, air_s: Array, price: float) -> Choice:
        """Clocks and powers that take all of the time, within their limits."""
        terms, sends = self.terms, self.sends
        air_s = np.where(sends, np.maximum(air_s, self.full_power_s(share)), 0.0)
        power_w = np.where(sends, np.minimum(self.power_w(share, air_s), terms.p_max_w), 0.0)
        busy = self.problem.feasible & (terms.cycles > 0)
        cpu_hz = terms.cycles / np.maximum(self.time_s - air_s, self.tau_min)
        cpu_hz = np.clip(np.where(busy, cpu_hz, terms.f_max_hz), terms.f_min_hz, terms.f_max_hz)
        return Choice(np.where(sends, share, 0.0), cpu_hz, power_w, price)

    def values(self, b0: Array, air_s: Array) -> tuple[dict[str, Array], float]:
        """Parameters in units of these shares and air times [K], and the unit of energy, J."""
        on, computes = self.sends, self.tau_max > 0
        busy_s = self.busy_s(air_s)
        x, computing = self.nats_s / (b0 * air_s), self.work / busy_s**2
        cost = self.nats_s / self.terms.gain / (1.0 if self.density else b0)
        # between all the energy and what the band is worth, so that neither is lost in rounding
        sending = self.power_w(b0, air_s) * air_s
        steep = sending * x / -np.expm1(-x) - (sending if self.density else 0.0)
        joule = float(np.sqrt((sending + computing)[on].sum() * steep[on].sum()))
        values = {
            "part": b0 / b0[on].max(),
            "air": air_s / self.time_s,
            "busy": np.where(computes, busy_s / self.time_s, 0.0),
            "v_min": np.where(computes, self.tau_min / busy_s, 0.5),
            "v_max": np.where(computes, self.tau_max / busy_s, 1.0),
            "load": self.full_power_s(b0) / air_s,
            "computing": computing / joule,
            "x": x,
            "cost": np.log(cost / joule),
        }
        return values | band_units(self.problem, b0), joule

    def busy_s(self, air_s: Array) -> Array:
        """The unit of computing times [K], s; any where there is nothing to compute."""
        left_s = np.clip(self.time_s - air_s, self.tau_min, self.tau_max)
        return np.where(self.tau_max > 0, left_s, self.time_s)


def least_joules(problem: PruningProblem, terms: EnergyTerms) -> Iterator[Choice]:
    """Shares, clocks and powers of least energy, from one pass after the other.

    The first pass measures in shares between equal ones and the least ones.

    Raises:
        UncertifiedError: Clarabel found no answer; more devices than cvxpy has memory for.
    """
    cell = Cell(problem, terms)
    if not cell.sends.any():
        yield cell.choice(np.ones(len(cell.low)), cell.low, 0.0)
        return
    on, nodes = cell.sends, cell.nodes()
    count = int(on.sum())
    if nodes * count > MOST_EXPONENTIALS:
        raise UncertifiedError(
            f"convex-energy states {nodes} exponentials for each of {count} devices, and above "
            f"{MOST_EXPONENTIALS} in all cvxpy takes gigabytes of memory; use energy."
        )
    statement = least_energy(count, cell.density, nodes)
    b0, unit_s = cell.start()
    for _ in range(PASSES):
        values, joule = cell.values(b0, unit_s)
        values = {name: value[on] for name, value in values.items()}
        widest = float(b0[on].max())
        beta, u, v, price = statement.solve(**values, band=1.0 / widest)
        share, air_s, busy_s = b0.copy(), unit_s.copy(), cell.busy_s(unit_s)
        share[on] *= beta
        air_s[on] *= u
        busy_s[on] *= v
        busy_s = np.clip(busy_s, cell.tau_min, cell.tau_max)
        # of air and computing time it is the shorter that has the digits
        left_s = np.minimum(cell.time_s - busy_s, cell.longest_s)
        air_s = np.where(on & (busy_s < air_s), left_s, air_s)
        share = filled(np.where(on, share, 0.0), cell.low, on.astype(float))
        yield cell.choice(np.where(on, share, 1.0), air_s, price / widest * joule)
        b0 = np.where(share > 0, share, b0)
        air_s = np.maximum(air_s, cell.full_power_s(b0))
        unit_s = np.where(on, np.clip(air_s, SHORTEST * unit_s, cell.longest_s), unit_s)
