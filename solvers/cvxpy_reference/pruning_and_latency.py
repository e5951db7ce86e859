"""Least pruning, least maximal pruning and least latency by Clarabel, in units of the last answer.

Where the inputs of devices lie decades apart, the last digit of one device is all that another
has. So every problem is solved again in units of its own answer. Least pruning then also leaves
out the devices that are held at a bound, where the marginal -d(w rho)/db differs from the price
by more than a factor. Every answer is given, and the certificate of the caller chooses.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from solvers.arrays import Array
from solvers.cvxpy_reference.statements import (
    largest_utility,
    least_maximum,
    least_sum,
    least_time,
)
from solvers.problem import PruningProblem

PASSES = 10  # at most
CLEARLY = 1.5  # factor between marginal and price that holds a device at its bound
NOISE = 1e-6  # accuracy of a price, relative to the largest weight of the statement
FAR = 1e4  # no share grows or shrinks by more in one pass
LEAST_UNIT = 1e-3  # of the kept share
FULL = 1.0 - 1e-9  # a band that is filled less has the price 0
IDLE = {
    "part": 0.0, "weight": 0.0, "kappa": 0.0, "t_max": 1.0, "t_min": -1.0, "rho0": 0.0,
    "slope": 0.0, "start": 1.0, "turn": 0.0, "log_snr": 1.0, "noise": 0.5, "signal": 0.5,
}  # fmt: skip


def band_units(problem: PruningProblem, b0: Array) -> dict[str, Array]:
    """Parameters of the rates at the shares b0 [K]."""
    if problem.snr is None:
        return {}
    snr = problem.snr / b0
    return {"log_snr": np.log1p(snr), "noise": 1.0 / (1.0 + snr), "signal": snr / (1.0 + snr)}


def pruning_units(problem: PruningProblem, b0: Array) -> dict[str, Array]:
    """Parameters of the kept part of the model around the shares b0 [K]."""
    sent = problem.rate_at(b0) * problem.slack_s  # bits, within the slack
    g = problem.compute_s / problem.slack_s
    tau, phi = problem.bits / sent, problem.bits_fixed / sent
    x0, slope = (1.0 - phi) / (g + tau), (tau + g * phi) / (g + tau) ** 2
    return band_units(problem, b0) | {
        "kappa": g / (g + tau),
        "weight": problem.weight * slope,
        "rho0": 1.0 - x0,
        "slope": slope,
        "t_max": np.clip((1.0 - problem.rho_min - x0) / slope, -FAR, FAR),
        "t_min": np.clip((1.0 - problem.rho_max - x0) / slope, -FAR, FAR),
    }


def marginal_gain(problem: PruningProblem, share: Array) -> Array:
    """-d(w rho)/db [K] per unit of band."""
    at = pruning_units(problem, share)
    per_rate = at["weight"] / share
    if problem.snr is None:
        return per_rate
    return per_rate * (1.0 - at["signal"] / at["log_snr"])


class Range:
    """Shares [K] between which the pruning ratio falls from rho_max to rho_min."""

    def __init__(self, problem: PruningProblem) -> None:
        sends = problem.feasible & ~problem.needs_no_band
        self.low = np.where(sends, problem.share_at(problem.rho_max), 0.0)
        self.cap = np.where(sends, np.minimum(problem.share_at(problem.rho_min), 1.0), 0.0)
        self.cap = np.maximum(self.cap, self.low)
        self.live = self.cap > self.low

    def start(self, problem: PruningProblem) -> Array:
        """Shares [K] that send the unpruned model in time if nothing is computed, in one band."""
        slack_s = np.where(self.live, problem.slack_s, 1.0)
        b0 = problem.share_for_rate((problem.bits + problem.bits_fixed) / slack_s)
        b0 = np.where(self.live, np.minimum(b0, 1.0), 1.0)
        held = float(self.low[~self.live].sum())
        return b0 / max(float(b0[self.live].sum()) / (1.0 - held), 1.0)


def filled(share: Array, low: Array, cap: Array) -> Array:
    """Shares [K] in [low, cap] that fill the band: what is above `low` is scaled."""
    for _ in range(4):
        share = np.clip(share, low, cap)
        above, left = share - low, 1.0 - float(low.sum())
        moves = (share < cap) if above.sum() < left else (above > 0)
        moving = float(above[moves].sum())
        if moving <= 0:
            break
        share = np.where(moves, low + above * ((left - float(above[~moves].sum())) / moving), share)
    return np.clip(share, low, cap)


def spread(problem: PruningProblem, share: Array, low: Array) -> Array:
    """Shares [K] that fill the band: what is left or missing moves all rho above `low` alike."""
    moves = share > low
    per_share = np.where(moves, marginal_gain(problem, np.where(moves, share, 1.0)), np.inf)
    soft = problem.weight / per_share
    share = share + (1.0 - share.sum()) * soft / max(soft.sum(), 1e-300)
    return filled(share, low, np.ones_like(low))


def least_pruning(problem: PruningProblem) -> Iterator[tuple[Array, float]]:
    """(shares [K], price of the band) of least weighted pruning, from one pass after the other.

    Raises:
        UncertifiedError: Clarabel found no answer.
    """
    bounds = Range(problem)
    low, cap, live = bounds.low, bounds.cap, bounds.live
    b0, held = bounds.start(problem), low
    if not live.any():
        yield low, 0.0
        return
    statement = least_sum(len(low), problem.snr is not None)
    for _ in range(PASSES):
        values, widest = pruning_units(problem, b0), float(b0[live].max())
        unit = float(values["weight"][live].max()) / widest
        values |= {"part": b0 / widest, "weight": values["weight"] / (unit * widest)}
        values = {name: np.where(live, value, IDLE[name]) for name, value in values.items()}
        band = 1.0 - float(held[~live].sum())
        beta, price = statement.solve(**values, band=min(band / widest, FAR))
        price *= unit
        share = np.where(live, b0 * beta, held)
        share = filled(share, np.where(live, low, held), np.where(live, cap, held))
        yield share, price if share.sum() >= FULL else 0.0
        b0 = np.where(live, np.clip(share, b0 / FAR, b0 * FAR), b0)
        starved = (
            marginal_gain(problem, np.maximum(low, 1e-9 * b0)) * CLEARLY < price - NOISE * unit
        )
        served = marginal_gain(problem, cap) > (price + NOISE * unit) * CLEARLY
        ends = np.where(served & bounds.live, cap, low)
        inside = bounds.live & ~starved & ~served
        if inside.any() and ends.sum() < 1.0:
            live, held = inside, ends


def least_largest(problem: PruningProblem) -> Iterator[float]:
    """The least bound on all pruning ratios that fits into the band, from one pass after another.

    Raises:
        UncertifiedError: Clarabel found no answer.
    """
    bounds = Range(problem)
    low, cap, live = bounds.low, bounds.cap, bounds.live
    floor = float(problem.rho_at(cap).max(where=problem.feasible, initial=0.0))
    if not live.any():
        yield floor
        return
    statement, b0 = least_maximum(len(low), problem.snr is not None), bounds.start(problem)
    for _ in range(PASSES):
        values, widest = pruning_units(problem, b0), float(b0[live].max())
        values = {name: np.where(live, value, IDLE[name]) for name, value in values.items()}
        band = (1.0 - float(low[~live].sum())) / widest
        part = np.where(live, b0 / widest, 0.0)
        beta, top, _ = statement.solve(**values, part=part, band=min(band, FAR))
        yield max(floor, float(top))
        share = filled(np.where(live, b0 * beta, low), low, cap)
        b0 = np.where(live, np.clip(share, b0 / FAR, b0 * FAR), b0)


def most_utility(problem: PruningProblem, alpha: float) -> Iterator[tuple[Array, float]]:
    """(shares [K], logarithm of the price of the band) of the largest sum of w U(1 - rho).

    Raises:
        UncertifiedError: Clarabel found no answer.
    """
    bounds = Range(problem)
    low, cap, live = bounds.low, bounds.cap, bounds.live
    if not live.any():
        yield low, -np.inf
        return
    statement, b0 = largest_utility(len(low), problem.snr is not None, alpha), bounds.start(problem)
    for _ in range(PASSES):
        at, widest = pruning_units(problem, b0), float(b0[live].max())
        unit = np.maximum(1.0 - at["rho0"], LEAST_UNIT)
        weight = problem.weight * unit ** (1.0 - alpha)
        scale = float(weight[live].max())
        values = at | {
            "start": (1.0 - at["rho0"]) / unit,
            "turn": at["slope"] / unit,
            "weight": weight / scale,
            "part": b0 / widest,
        }
        values = {name: np.where(live, value, IDLE[name]) for name, value in values.items()}
        values = {name: values[name] for name in statement.parameters if name != "band"}
        band = (1.0 - float(low[~live].sum())) / widest
        beta, price = statement.solve(**values, band=min(band, FAR))
        share = filled(np.where(live, b0 * beta, low), low, cap)
        known = price > 0 and share.sum() >= FULL
        yield share, float(np.log(price * scale / widest)) if known else -np.inf
        b0 = np.where(live, np.clip(share, b0 / FAR, b0 * FAR), b0)


def least_latency(problem: PruningProblem, bits: Array, busy_s: Array) -> Iterator[Array]:
    """Shares [K] with which the last device is back earliest, from one pass after the other.

    Args:
        problem: K devices.
        bits: bits to send [K].
        busy_s: time before the upload [K], s.

    Raises:
        UncertifiedError: Clarabel found no answer.
    """
    sends = problem.feasible & (bits > 0)
    if not sends.any():
        yield np.zeros(len(bits))
        return
    b0 = np.where(sends, bits / problem.rate_bps, 0.0)
    b0 = np.where(sends, b0 / b0.sum(), 1.0)
    statement = least_time(len(bits), problem.snr is not None)
    for _ in range(PASSES):
        upload_s = bits / problem.rate_at(b0)
        second, widest = float((busy_s + upload_s).max(where=sends, initial=0.0)), b0[sends].max()
        values = {"busy": busy_s / second, "upload": upload_s / second, "part": b0 / widest}
        values = {name: np.where(sends, value, 0.0) for name, value in values.items()}
        beta, _ = statement.solve(**values, **band_units(problem, b0), band=1.0 / widest)
        share = np.where(sends, np.maximum(b0 * beta, 0.0), 0.0)
        share /= share.sum()
        yield share
        b0 = np.where(share > 0, share, b0)
