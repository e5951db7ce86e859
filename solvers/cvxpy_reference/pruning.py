"""Liu's problem by cvxpy and Clarabel, solved again in units of its own answer until nothing is lost in rounding.

Where weights, sizes and rates lie decades apart, one device's last digit is all that another has. So every pass

    - measures shares in those of the pass before, and rho in what such a share changes of it;
    - leaves out who is known to be at a bound: whose marginal there is above, or below, the price by a clear margin,
      where the price itself is known only to `NOISE` of the scale of the pass; the others then are all there is.

There is no root search; of closed forms only the bounds of a share and the marginals there are used, to leave devices
out. Which answer is the best, and whether it is good enough, its certificate says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.certificate import certify, unit
from solvers.cvxpy_reference.models import pruning_model
from solvers.marginal_gains import marginal
from solvers.problem import Array, PruningProblem
from solvers.solution import UncertifiedError

PASSES = 10  # at most
EXACT = 1e-9  # duality gap relative to the objective that is good enough
STATIONARITY = (
    1e-4  # the duality gap, which must be below 1e-8, is quadratic in the error of the marginals
)
LEAST = 1e-12  # of its unit that an objective can be told from zero
NOISE = 1e-6  # of the largest weight: what a price is worth that Clarabel finds beside it
CLEARLY = 1.5  # a marginal beyond the price by this factor holds a device at its bound
FILLED = 1e-9  # a band with more than this left has no price
ROUNDS = 4  # of handing back
CURVED = (
    1.0  # curvature R G / q from which the second form of the deadline is the better scaled one
)
WIDEST = 1e4  # bands, in units of the largest share: more than any of them needs
IDLE = {
    "c": 0.0, "c_on": 0.0, "on": 1.0, "off": 0.0, "shift": 1.0, "bent_on": 0.0, "bent_off": 1.0, "z_min": -1.0,
    "beta_min": 0.0, "log_snr": 1.0, "noise": 0.5, "signal": 0.5, "part": 0.0, "unit": 1e-3,
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """Shares [K], a price, and how far from proven they are: the worse of gap and marginals, in units of `EXACT`."""

    off: float
    share: Array
    price: float


def least_pruning(
    problem: PruningProblem, on: Array, low: Array, cap: Array
) -> tuple[Array, float]:
    """(shares [K], multiplier): the best of all passes. on: those with low < cap.

    Raises:
        UncertifiedError: Clarabel found no first answer.
    """
    at_low, at_cap = marginal(problem, low)[on], marginal(problem, cap)[on]
    live, held, measure, answers = (
        np.ones(len(on), dtype=bool),
        low.copy(),
        usual_shares(problem, on),
        [],
    )
    for _ in range(PASSES):
        scaled = Pass(problem, on, live, held, low, cap, measure)
        try:
            answer, price, noise = scaled.solve()
        except UncertifiedError:
            if answers:
                break
            raise
        answers.append(answer)
        if answer.off <= 1.0:
            break
        measure = np.where(answer.share[on] > 0, answer.share[on], measure)
        few, many = at_low * CLEARLY < price - noise, at_cap > (price + noise) * CLEARLY
        bound = low.copy()
        bound[on] = np.where(many, cap[on], low[on])
        if bound.sum() < 1.0 and not (few | many).all():
            live, held = ~(few | many), bound
    best = min(answers, key=lambda answer: answer.off)
    return best.share, best.price


@dataclass(frozen=True)
class Pass:
    """One pass: the devices `live` [S] of those `on` share what the others leave, who hold `held` [K]; they stay in
    the model, which would be built anew otherwise, but idle. measure [S]: the units of the shares."""

    problem: PruningProblem
    on: Array
    live: Array
    held: Array
    low: Array
    cap: Array
    measure: Array

    @cached_property
    def values(self) -> dict[str, Array | float]:
        values = pruning_values(self.problem, self.on, self.low, self.measure)
        left = 1.0 - self.held.sum() + self.held[self.on][self.live].sum()
        values["part"] = self.measure / self.widest
        idle = {
            name: np.where(self.live, values[name], other)
            for name, other in IDLE.items()
            if name in values
        }
        return values | idle | {"band": min(left / self.widest, WIDEST)}

    @property
    def widest(self) -> float:
        """The unit of the band."""
        return float(self.measure[self.live].max())

    def solve(self) -> tuple[Answer, float, float]:
        """(answer, price of the band, noise of the price)."""
        worth = self.problem.weight[self.on] * self.values["per"]
        scale = worth[self.live].max()
        model = pruning_model(len(self.on), self.problem.snr is not None, *forms(self.values))
        beta, dual = model.solve(weight=np.where(self.live, worth / scale, 1.0), **self.values)
        price, noise = (each / self.widest * scale for each in (dual, NOISE))
        return self.answer(beta, price), price, noise

    def answer(self, beta: Array, price: float) -> Answer:
        """The shares that these are when they fill the band, and what the certificate says of them."""
        chosen = np.zeros(self.problem.num_devices, dtype=bool)
        chosen[self.on[self.live]] = True
        share = self.held.copy()
        share[chosen] = (self.measure * beta)[self.live]
        share = filling(
            share, np.where(chosen, self.low, self.held), np.where(chosen, self.cap, self.held)
        )
        price = price if share.sum() >= 1.0 - FILLED else 0.0
        rho = self.problem.rho_at(share)
        proof, scale = certify(self.problem, share, rho, price), unit(self.problem, rho)
        gap = proof.gap * scale / max(self.problem.objective(rho), LEAST * scale)
        return Answer(max(gap / EXACT, proof.dual / STATIONARITY), share, price)


def filling(share: Array, low: Array, cap: Array) -> Array:
    """Shares [K] made feasible exactly: what is above `low` is scaled to the band; what is beyond `cap` handed back."""
    share = np.clip(share, low, cap)
    for _ in range(ROUNDS):
        above, left = share - low, 1.0 - float(low.sum())
        rises = above.sum() < left
        moves = (share < cap) if rises else (above > 0)
        wanted, moving = left - float(above[~moves].sum()), float(above[moves].sum())
        if moving <= 0:
            break
        share = np.where(moves, np.minimum(low + above * (wanted / moving), cap), share)
    return share


def usual_shares(problem: PruningProblem, on: Array) -> Array:
    """Shares [S] with which the devices `on` [S] would prune nothing if they had nothing to compute."""
    rate_bps = np.zeros(problem.num_devices)
    rate_bps[on] = (problem.bits[on] + problem.bits_fixed[on]) / problem.slack_s[on]
    return np.minimum(1.0, problem.share_for_rate(rate_bps)[on])


def pruning_values(
    problem: PruningProblem, on: Array, low: Array, measure: Array
) -> dict[str, Array | float]:
    """Parameters of the pruning models for the devices `on` [S], with shares in units `measure` [S]."""
    bits, fixed, slack_s = problem.bits[on], problem.bits_fixed[on], problem.slack_s[on]
    full = rates(problem, on, measure) * slack_s  # bits that beta = 1 sends within the slack
    u, phi, g = bits / full, fixed / full, problem.compute_s[on] / slack_s
    flat = g < CURVED * u
    with np.errstate(divide="ignore", invalid="ignore"):
        c = np.where(flat, g / u, 0.0)
        base = np.where(flat, 1.0 + phi / u, 1.0 - 1.0 / g)
        per = np.where(flat, (1.0 + phi * c) / u, (u / g + phi) / g)
        shift = np.where(flat, 1.0, u / g)
    z_min = np.maximum(
        (problem.rho_min[on] - base) / per, np.where(flat, -1.0 / measure, 0.0)
    )  # none is below anyway
    bent_off = np.where(flat, np.maximum(1.0, -z_min), 0.0)
    values = {
        "base": base, "per": per, "z_min": z_min, "beta_min": low[on] / measure,
        "c": c, "c_on": c, "on": 1.0 * flat, "off": 1.0 * ~flat,
        "shift": shift, "bent_on": 1.0 * ~flat, "bent_off": bent_off,
    }  # fmt: skip
    return band_values(problem, on, measure, 1.0 - float(low.sum() - low[on].sum())) | values


def forms(values: dict[str, Array]) -> tuple[bool, bool]:
    """Is there a device with little, and one with much curvature?"""
    return bool((values["on"] > 0).any()), bool((values["on"] == 0).any())


def band_values(
    problem: PruningProblem, on: Array, measure: Array, band: float
) -> dict[str, Array | float]:
    values = {"part": measure / measure.max(), "band": band / measure.max(), "unit": measure}
    if problem.snr is None:
        return values
    snr = problem.snr[on] / measure
    return values | {
        "log_snr": np.log1p(snr),
        "noise": 1.0 / (1.0 + snr),
        "signal": snr / (1.0 + snr),
    }


def rates(problem: PruningProblem, on: Array, share: Array) -> Array:
    """R(share) of the devices `on` [S], bit/s."""
    every = np.ones(problem.num_devices)
    every[on] = share
    return problem.rate_at(every)[on]
