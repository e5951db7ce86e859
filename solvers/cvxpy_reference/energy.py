"""Least energy by cvxpy and Clarabel under both noises, solved again in units of its own answer.

With x = s / (b t), nats per second and hertz, the energy of sending under a density of noise is

    b t (e^x - 1) / g = (s / g) (e^x - 1) / x = (s / g) integral of e^(u x), u from 0 to 1,

a sum of exponentials at the nodes u of Gauss and Legendre; under noise of a fixed power it is that over b, and
e^(u x) / b = e^(u x - log b) is convex as well. x >= s / (b t) is a cone, as sqrt(b t) is concave. Full power in the
least share holds x down, which says how many nodes are needed. There is no root search, and nothing of the answer of
`energy` is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.cvxpy_reference.models import energy_model, one_at_a_time
from solvers.cvxpy_reference.pruning import band_values, filling
from solvers.min_energy.allocator import clocks, least_shares
from solvers.min_energy.energy_certificate import certified_energy, certify_energy, raised
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.problem import ALLOWED, Array, PruningProblem
from solvers.shannon import nats
from solvers.solution import Certificate, Solution, UncertifiedError

PASSES = 6  # at most
EXACT = 1e-9  # duality gap that ends them
TERMS = 4000  # at most: what cvxpy keeps grows with their square, to about 2 GiB for so many
ENERGY_GAP = 1e-4  # allowed; the bound on the joules is linear in the error of the marginals
SHORT = 1e-3  # of the last unit of an air time that the next one is not less than
REACH = {
    8: 4.0,
    12: 12.0,
    16: 25.0,
    20: 42.0,
    24: 53.0,
    32: 120.0,
}  # nodes -> x up to which they are exact to 1e-13


@dataclass(frozen=True)
class Answer:
    """Shares [K], clocks [K], Hz, powers [K], W, and the price, with what they take, J, and the proof of it."""

    share: Array
    cpu_hz: Array
    power_w: Array
    price: float
    joules: float
    proof: Certificate

    @property
    def rank(self) -> tuple[bool, float]:
        """Less is better: the joules of those that will be certified, before the gap of the others."""
        good = self.proof.primal <= ALLOWED and self.proof.gap <= ENERGY_GAP
        return not good, self.joules if good else float(np.nan_to_num(self.proof.gap, nan=np.inf))


@one_at_a_time
@np.errstate(all="ignore")  # what is not finite is refused
def convex_energy(problem: PruningProblem) -> Solution:
    """Least energy by cvxpy and Clarabel, see `energy`; certified to 1e-4 of the joules.

    Raises:
        InfeasibleError, ValueError: as `energy`.
        UncertifiedError: Clarabel gave up, its answer is off by more, or there are too many devices for cvxpy.
    """
    task, on = EnergyProblem.of(problem), problem.feasible
    low = least_shares(problem)
    best = min(passes(task, low[task.sends]), key=lambda answer: answer.rank)
    joules, proof = certified_energy(
        task, best.share, best.cpu_hz, best.power_w, best.price, ENERGY_GAP
    )
    rho, left_out = (
        np.where(on, problem.rho_min, problem.rho_max),
        tuple(np.flatnonzero(~on).tolist()),
    )
    chosen = best.cpu_hz, best.power_w, problem
    return Solution(best.share, rho, best.price, proof, left_out, "convex-energy", joules, *chosen)


def passes(task: EnergyProblem, low: Array) -> list[Answer]:
    """One answer per pass, measured in shares and times of the one before; first in shares between equal ones and the
    least ones low [S], and again nearer to equal ones where Clarabel finds nothing.

    Raises:
        UncertifiedError: Clarabel found no answer; more devices than cvxpy has memory for.
    """
    if not task.sends.any():
        return [answer(task, *np.zeros((2, 0)), 0.0)]
    nodes, answers, failed = node_count(task, low), [], None
    if nodes * len(low) > TERMS:
        raise UncertifiedError(
            f"convex-energy states {nodes} exponentials for each of {len(low)} devices, and above {TERMS} in all cvxpy "
            "takes gigabytes of memory; use energy."
        )
    share, air_s = start(task, low, low)
    for _ in range(PASSES):
        try:
            answers.append(Pass(task, low, share, air_s, nodes).solved())
        except UncertifiedError as error:
            failed, (share, air_s) = error, start(task, low, share)
            continue
        if answers[-1].proof.gap <= EXACT:
            break
        found = answers[-1].share[task.sends]
        share = np.where(found > 0, found, share)
        found_s = task.air_s(answers[-1].share, answers[-1].power_w)[task.sends]
        air_s = np.clip(found_s, SHORT * air_s, task.radio.longest_s)
    if not answers:
        raise failed
    return answers


def start(task: EnergyProblem, low: Array, share: Array) -> tuple[Array, Array]:
    """Shares and air times [S] to measure in: nearer to equal than `share`, and in time."""
    share = np.sqrt(share)
    share = np.maximum(share / share.sum(), low)
    return share, np.maximum(0.5 * task.radio.longest_s, full_power_s(task, share))


@dataclass(frozen=True)
class Pass:
    """The problem in units of these shares and air times [S], s; low [S]: least shares."""

    task: EnergyProblem
    low: Array
    share: Array
    air_s: Array
    nodes: int

    @cached_property
    def busy_s(self) -> Array:
        """The unit of computing times [S], s; any where there is nothing to compute."""
        radio = self.task.radio
        left_s = np.clip(radio.time_s - self.air_s, radio.tau_min, radio.tau_max)
        return np.where(radio.tau_max > 0, left_s, radio.time_s)

    @cached_property
    def joule(self) -> float:
        """The unit of energy, J: between all of it and what the band is worth, of which either may be next to nothing
        beside the other, so that neither is lost in rounding."""
        radio = self.task.radio
        total = radio.power(self.share, self.air_s) * self.air_s + radio.work / self.busy_s**2
        worth = -radio.slopes(self.share, self.air_s)[0] * self.share
        return float(np.sqrt(total.sum() * worth.sum()))

    def values(self) -> dict[str, Array | float]:
        """Parameters of the model."""
        radio = self.task.radio
        computes = radio.tau_max > 0
        cost = radio.s / radio.gain / (1.0 if radio.density else self.share)
        return band_values(self.task.problem, np.flatnonzero(self.task.sends), self.share, 1.0) | {
            "sends": self.air_s / radio.time_s,
            "busy": np.where(computes, self.busy_s / radio.time_s, 0.0),
            "v_min": np.where(computes, radio.tau_min / self.busy_s, 0.5),
            "v_max": np.where(computes, radio.tau_max / self.busy_s, 1.0),
            "load": full_power_s(self.task, self.share) / self.air_s,
            "computing": radio.work / self.busy_s**2 / self.joule,
            "x": radio.s / (self.share * self.air_s),
            "cost": np.log(cost / self.joule),
        }

    def solved(self) -> Answer:
        """Clarabel's answer. Of air and computing time it is the shorter that has the digits."""
        radio, count = self.task.radio, len(self.share)
        beta, u, v, price = energy_model(count, radio.density, self.nodes).solve(**self.values())
        air_s, busy_s = self.air_s * u, np.clip(self.busy_s * v, radio.tau_min, radio.tau_max)
        air_s = np.where(busy_s < air_s, np.minimum(radio.time_s - busy_s, radio.longest_s), air_s)
        share = filling(self.share * beta, self.low, np.ones(count))
        return answer(self.task, share, air_s, price / self.share.max() * self.joule)


def answer(task: EnergyProblem, share: Array, air_s: Array, price: float) -> Answer:
    """What shares and air times of those who send [S] come to, certified or not."""
    shares, powers, times = np.zeros((3, len(task.sends)))
    if len(share):
        air_s = np.maximum(air_s, full_power_s(task, share))
        shares[task.sends], times[task.sends] = share, air_s
        powers[task.sends] = np.minimum(task.radio.power(share, air_s), task.radio.p_max)
        price = raised(task, shares, powers, price)
    cpu_hz = clocks(task, times)
    return Answer(
        shares, cpu_hz, powers, price, *certify_energy(task, shares, cpu_hz, powers, price)
    )


def full_power_s(task: EnergyProblem, share: Array) -> Array:
    """Air time at full power with these shares [S], s."""
    radio = task.radio
    return radio.s / (share * (nats(share, radio.snr) if radio.density else radio.x_max))


def node_count(task: EnergyProblem, low: Array) -> int:
    """Nodes with which (e^x - 1) / x is exact to 1e-13 for every x that full power allows in the least share [S]."""
    radio = task.radio
    x = float((nats(low, radio.snr) if radio.density else radio.x_max).max())
    return next((count for count, reach in REACH.items() if x <= reach), max(REACH))
