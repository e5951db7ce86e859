"""`convex-latency` and `convex-energy`: the shortest round, and the least joules, certified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from solvers.acceptance import accepted_solution
from solvers.allocators.min_max_latency import certify_latency, time_before, upload_work
from solvers.arrays import Array
from solvers.cvxpy_reference import statements
from solvers.cvxpy_reference.answers import NEXT_TO_NOTHING, Choice, best_certified
from solvers.min_energy.allocator import clocks, energy_solution, least_shares
from solvers.min_energy.energy_certificate import price_covering_marginals
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.problem import PruningProblem
from solvers.solution import Solution, UncertifiedError

ENERGY_GAP = 1e-4  # allowed; the bound on the joules is linear in the error of the marginals
MOST_EXPONENTIALS = 4000  # what cvxpy keeps grows with their square, to 2 GiB for so many


def convex_latency(problem: PruningProblem) -> Solution:
    """Least maximal finish time, at rho_min.

    Raises:
        UncertifiedError: as `convex`.
        ValueError: as `latency`.
    """
    rho = np.where(problem.feasible, problem.rho_min, problem.rho_max)
    bits, busy_s = upload_work(problem, time_before(problem))
    on = problem.feasible & (bits > 0)

    def answers() -> Iterator[tuple[Array]]:
        share = np.zeros_like(bits)
        if not on.any():
            yield (share,)
            return
        choice = Choice(problem, on, share, np.ones_like(share))
        upload_s = bits[on] / choice.problem.rate_bps
        values = choice.logarithms(busy=busy_s[on], upload=upload_s)
        for log_b, *_ in statements.least_time(*choice.size).answers(values):
            share[on] = choice.filled(np.exp(log_b))
            yield (share.copy(),)

    def certified(share: Array) -> Solution:
        objective, price, proof = certify_latency(problem, share, rho)
        found = accepted_solution(problem, share, rho, price, proof, "convex-latency")
        return replace(found, objective=objective)

    return best_certified("convex-latency", "latency", answers(), certified)


@np.errstate(all="ignore")  # what is not finite is refused
def convex_energy(problem: PruningProblem) -> Solution:
    """Least energy, see `energy`; certified to 1e-4 of the joules.

    Raises:
        InfeasibleError, ValueError: as `energy`.
        UncertifiedError: no answer of Clarabel is that close, or there are too many devices for
            cvxpy.
    """
    task, low = EnergyProblem.of(problem), least_shares(problem)
    on, radio, nodes = task.sends, task.radio, len(statements.NODES[0])
    if nodes * int(on.sum()) > MOST_EXPONENTIALS:
        raise UncertifiedError(
            f"convex-energy states {nodes} exponentials for each of {int(on.sum())} devices, and "
            f"above {MOST_EXPONENTIALS} in all cvxpy takes gigabytes of memory; use energy."
        )

    def answers() -> Iterator[tuple[Array, Array, Array, float]]:
        share, air_s, power_w = np.zeros((3, len(on)))
        if not on.any():
            yield share, air_s, power_w, 0.0
            return
        # where clocks have no choice, the longest air time alone decides
        time_s = np.where(radio.tau_max > radio.tau_min, 1.0, 2.0) * radio.time_s
        choice = Choice(problem, on, low, np.ones_like(low))
        values = choice.logarithms(
            nats=radio.s,
            cost=radio.s / radio.gain,
            full_power=radio.snr if radio.density else radio.x_max,
            time=time_s,
            longest=radio.longest_s,
            busy_max=np.maximum(radio.tau_max, NEXT_TO_NOTHING * time_s),
            work=radio.work,
        )
        statement = statements.least_energy(*choice.size)
        for log_b, log_air, multiplier, value in statement.answers(values):
            b = choice.filled(np.exp(log_b))
            t = np.clip(np.exp(log_air), radio.full_power_s(b), radio.longest_s)
            share[on], air_s[on] = b, t
            power_w[on] = task.sent_w(np.minimum(radio.power(b, t), radio.p_max))
            yield share.copy(), air_s.copy(), power_w.copy(), float(multiplier * np.exp(value))

    def certified(share: Array, air_s: Array, power_w: Array, price: float) -> Solution:
        price = price_covering_marginals(task, share, power_w, price)
        cpu_hz = clocks(task, air_s)
        return energy_solution(task, share, cpu_hz, power_w, price, "convex-energy", ENERGY_GAP)

    return best_certified("convex-energy", "energy", answers(), certified)
