"""`convex`, `convex-fair`, `convex-alpha-fair`, `convex-latency`, `convex-energy`, certified.

A statement is solved under one setting of Clarabel after the other until the certificate accepts
the answer. Ratios are the least that meet the deadlines with the shares: Liu, eq. (47).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from solvers.allocators.alpha_fair import alpha_fair_solution, certified_tangent
from solvers.allocators.fair import certify_fair, with_rho_at_most
from solvers.allocators.min_max_latency import certify_latency, time_before, upload_work
from solvers.arrays import Array, Mask
from solvers.certificate import accepted_solution, certify, objective_scale
from solvers.cvxpy_reference import statements
from solvers.deadline_feasibility import fitting_bounds
from solvers.marginal_gains import marginal_gain
from solvers.min_energy.allocator import clocks, energy_solution, least_shares
from solvers.min_energy.energy_certificate import price_covering_marginals
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.problem import PruningProblem
from solvers.solution import InfeasibleError, Solution, UncertifiedError

GOOD = 1e-9  # gap that ends the search
GAP = 1e-8  # allowed, relative to the objective itself, which can be far below its scale
ENERGY_GAP = 1e-4  # allowed; the bound on the joules is linear in the error of the marginals
STATIONARITY = 1.0  # what a device without weight would give for band is no part of the claim
ROUNDING = 1e-15
SPENT = 1e-6  # what least shares leave goes to whom it is worth most
PASSES = 4  # of `largest_sum`, each in units of the answer before
LEAST_UNIT = 1e-3  # of kept shares
NEXT_TO_NOTHING = 1e-12  # of a share, or of a deadline
NONE = 1e-60  # stands for zero, which has no logarithm
MOST_EXPONENTIALS = 4000  # what cvxpy keeps grows with their square, to 2 GiB for so many
Answers = Iterator[tuple[Array, float]]


def best_certified(
    method: str, exact: str, answers: Iterable[Any], certified: Callable[..., Solution]
) -> Solution:
    """The first answer of which the gap is `GOOD`, else the best of those that are certified.

    Raises:
        UncertifiedError: names the method and the exact one to use.
    """
    best: Solution | None = None
    for answer in answers:
        try:
            found = certified(*answer)
        except UncertifiedError:
            continue
        if best is None or found.certificate.gap < best.certificate.gap:
            best = found
        if best.certificate.gap <= GOOD:
            break
    if best is None:
        raise UncertifiedError(
            f"{method} finds no answer that its certificate accepts, as may be where the inputs of "
            f"devices lie many decades apart; use {exact}."
        )
    return best


class Choice:
    """The devices whose shares are to be chosen, in the band that the least shares of others leave.

    Args:
        problem: K devices.
        on: which of them, N: bool [K].
        low: least shares [K].
        cap: largest shares [K].
    """

    def __init__(self, problem: PruningProblem, on: Mask, low: Array, cap: Array) -> None:
        rows = {field.name: getattr(problem, field.name) for field in fields(problem)}
        rows = {name: row[on] for name, row in rows.items() if isinstance(row, np.ndarray)}
        self.problem, self.low, self.cap = replace(problem, **rows), low[on], cap[on]
        self.band = 1.0 - float(low[~on].sum())
        self.size = int(on.sum()), problem.snr is not None

    def filled(self, share: Array) -> Array:
        """Shares [N] between their bounds, what is above the least ones scaled to fill the band."""
        room, left = self.cap - self.low, self.band - float(self.low.sum())
        extra = np.clip(share - self.low, 0.0, room)
        for _ in range(4):
            free = extra < room
            times = (left - float(extra[~free].sum())) / max(float(extra[free].sum()), 1e-300)
            extra = np.where(free, np.clip(extra * times, 0.0, room), extra)
        return self.low + extra

    def logarithms(self, **values: Array) -> dict[str, Any]:
        """Parameters of a geometric program: those of the band, of the rates, and these [N]."""
        values |= {"band": np.asarray(self.band)}
        if (snr := self.problem.snr) is not None:
            values |= {"snr": snr, "per_nat": 1.0 / np.log1p(snr)}
        return {name: np.log(np.maximum(value, NONE)) for name, value in values.items()}


def most_utility(choice: Choice, alpha: float) -> Answers:
    """Shares [N] and price of `largest_utility`."""
    p = choice.problem
    values = choice.logarithms(
        compute=p.compute_s / p.slack_s,
        upload=p.bits / p.rate_bps / p.slack_s,
        fixed=p.bits_fixed / p.rate_bps / p.slack_s,
        x_min=1.0 - p.rho_max,
        x_max=1.0 - p.rho_min,
        log_weight=p.weight,
    )
    heaviest = float(p.weight.max())
    values |= {"weight": p.weight / heaviest}
    statement = statements.largest_utility(*choice.size, alpha)
    for log_b, multiplier, value in statement.answers(values):
        unit = np.exp(value) / (alpha - 1.0) if alpha > 1.0 else heaviest
        yield choice.filled(np.exp(log_b)), float(multiplier * unit / choice.band)


def largest_sums(choice: Choice, alpha: float) -> Answers:
    """Shares [N] and price of `largest_sum` in units of the answer before, at first of alpha 1."""
    p, statement = choice.problem, statements.largest_sum(*choice.size, alpha)
    b0, _ = next(most_utility(choice, 1.0), (choice.filled(choice.cap), 0.0))
    for _ in range(PASSES):
        rate_bps = p.rate_at(b0)
        busy = p.compute_s * rate_bps + p.bits
        x0 = (p.slack_s * rate_bps - p.bits_fixed) / busy
        x_unit = np.maximum(x0, LEAST_UNIT)
        weight = p.weight * x_unit ** (1.0 - alpha)
        heaviest, widest = float(weight.max()), float(b0.max())
        values: dict[str, Any] = {
            "unit": b0 / widest,
            "band": choice.band / widest,
            "kappa": p.compute_s * rate_bps / busy,
            "x0": x0 / x_unit,
            "slope": p.gain / p.weight * rate_bps / busy**2 / x_unit,
            "x_min": (1.0 - p.rho_max) / x_unit,
            "x_max": (1.0 - p.rho_min) / x_unit,
            "weight": weight / heaviest,
        }
        if p.snr is not None:
            c = p.snr / b0
            values |= {"log_snr": np.log1p(c), "noise": 1.0 / (1.0 + c), "signal": c / (1.0 + c)}
        answer = next(statement.answers(values), None)
        if answer is None:
            return
        beta, multiplier, _ = answer
        b = choice.filled(b0 * beta)
        yield b, float(multiplier * heaviest / widest / (1.0 - alpha))
        b0 = np.maximum(b, NEXT_TO_NOTHING * b0)


def pruning_answers(problem: PruningProblem, alpha: float) -> Answers:
    """Shares [K] that fill the band, and their price, of one answer after the other."""
    low, cap = fitting_bounds(problem)
    on, left, share = cap > low, 1.0 - float(low.sum()), low.copy()
    if left <= SPENT or not on.any():
        worth = np.where(on, marginal_gain(problem, low) / (1.0 - problem.rho_max) ** alpha, 0.0)
        k = int(worth.argmax())
        share[k] += min(max(left, 0.0), cap[k] - low[k])
        yield share.copy(), float(worth[k])
    if left <= ROUNDING or not on.any():
        return
    choice = Choice(problem, on, low, cap)
    for share[on], price in (largest_sums if alpha < 1.0 else most_utility)(choice, alpha):
        yield share.copy(), price if share.sum() >= 1.0 - GAP else 0.0  # of band left over: none


def convex(problem: PruningProblem) -> Solution:
    """Shares and pruning ratios of least weighted pruning; see `solvers.allocate`.

    Raises:
        InfeasibleError: the least shares do not fit.
        UncertifiedError: no answer of Clarabel is within 1e-8 of the optimum.
        ValueError: as `kkt`.
    """
    problem.refuse_levels("convex")

    def certified(share: Array, price: float) -> Solution:
        rho = problem.rho_at(share)
        proof, scale = certify(problem, share, rho, price), objective_scale(problem, rho)
        if not proof.gap * scale <= GAP * problem.objective(rho) + ROUNDING * scale:
            raise UncertifiedError("far from the optimum, relative to the objective")
        return accepted_solution(problem, share, rho, price, proof, "convex", STATIONARITY)

    return best_certified("convex", "kkt", pruning_answers(problem, 0.0), certified)


def convex_fair(problem: PruningProblem) -> Solution:
    """Least maximal rho, ties broken by the least sum: by `convex`, with no rho above that.

    Raises:
        InfeasibleError, UncertifiedError, ValueError: as `convex`.
    """
    problem.refuse_levels("convex-fair")

    def certified(share: Array, _: float) -> Solution:
        top = float(problem.rho_at(share).max(where=problem.feasible, initial=0.0))
        try:
            tied = convex(with_rho_at_most(problem, top + ROUNDING))
        except InfeasibleError as squeezed:
            raise UncertifiedError("no shares reach the largest rho but for rounding") from squeezed
        objective, price, proof = certify_fair(problem, tied)
        found = accepted_solution(problem, tied.share, tied.rho, price, proof, "convex-fair", 1.0)
        return replace(found, objective=objective)

    return best_certified("convex-fair", "fair", pruning_answers(problem, np.inf), certified)


def convex_alpha_fair(problem: PruningProblem, alpha: float = 1.0) -> Solution:
    """The largest weighted sum of U(1 - rho), as `solvers.allocators.alpha_fair`.

    Raises:
        InfeasibleError, UncertifiedError, ValueError: as `convex`.
    """
    if alpha in (0.0, np.inf):
        return convex(problem) if alpha == 0 else convex_fair(problem)
    problem.refuse_levels("convex-alpha-fair")
    method = "convex-alpha-fair"

    def certified(share: Array, price: float) -> Solution:
        with np.errstate(divide="ignore"):
            proof = certified_tangent(problem, alpha, share, np.log(price))
        return alpha_fair_solution(problem, alpha, share, proof, method, STATIONARITY)

    return best_certified(method, "alpha-fair", pruning_answers(problem, alpha), certified)


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
