"""Every problem is solved again in units of its own answer.

Where the inputs of devices lie decades apart, the last digit of one device is all that another
has. Least pruning then also leaves out the devices that are held at a bound, where the marginal
-d(w rho)/db differs from the price by more than a factor. Every answer is given; the certificate
of the caller chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from solvers.arrays import Array, Mask
from solvers.cvxpy_reference.statements import Statement
from solvers.problem import PruningProblem

PASSES = 10  # at most
CLEARLY = 1.5  # factor between marginal and price that holds a device at its bound
NOISE = 1e-6  # accuracy of a price, relative to the largest weight of the statement
FAR = 1e4  # no share grows or shrinks by more in one pass
LEAST_UNIT = 1e-3  # of the kept share
FULL = 1.0 - 1e-9  # a band that is filled less has the price 0
FIELDS = (
    "bits", "compute_s", "slack_s", "rate_bps", "weight", "rho_min", "rho_max", "bits_fixed", "snr",
)  # fmt: skip
Units = dict[str, Any]


def chosen(problem: PruningProblem, on: Mask) -> PruningProblem:
    """The problem of the devices `on` [K] alone."""
    columns = ((name, getattr(problem, name)) for name in FIELDS)
    given: Units = {name: row[on] for name, row in columns if row is not None}
    return PruningProblem(**given)


def shannon_units(snr: Array) -> Units:
    """Parameters of the rates where noise is a density, at these ratios within the shares [K]."""
    return {"log_snr": np.log1p(snr), "noise": 1.0 / (1.0 + snr), "signal": snr / (1.0 + snr)}


def pruning_units(problem: PruningProblem, b0: Array, alpha: float = 0.0) -> Units:
    """Parameters of the kept part of the model and of its utility around the shares b0 [K]."""
    sent = problem.rate_at(b0) * problem.slack_s  # bits, within the slack
    g = problem.compute_s / problem.slack_s
    tau, phi = problem.bits / sent, problem.bits_fixed / sent
    x0, slope = (1.0 - phi) / (g + tau), (tau + g * phi) / (g + tau) ** 2
    near = np.maximum(x0, LEAST_UNIT) if 0.0 < alpha < np.inf else np.ones_like(x0)
    weight = problem.weight * (slope if alpha == 0 else near ** (1.0 - min(alpha, 1e3)))
    return {
        "kappa": g / (g + tau),
        "start": x0 / near,
        "turn": slope / near,
        "weight": weight,
        "t_max": np.clip((1.0 - problem.rho_min - x0) / slope, -FAR, FAR),
        "t_min": np.clip((1.0 - problem.rho_max - x0) / slope, -FAR, FAR),
    }


def time_units(problem: PruningProblem, b0: Array) -> Units:
    """Parameters of the times at the shares b0 [K]; compute_s is all the time before the upload."""
    upload_s = problem.bits / problem.rate_at(b0)
    second = float((problem.compute_s + upload_s).max())
    values = {"busy": problem.compute_s / second, "upload": upload_s / second}
    return values | {"weight": np.ones_like(b0)}


def marginal_gain(problem: PruningProblem, share: Array) -> Array:
    """-d(w rho)/db [K] per unit of band."""
    gain: Array = pruning_units(problem, share)["weight"] / share
    if problem.snr is None:
        return gain
    rates = shannon_units(problem.snr / share)
    gain *= 1.0 - rates["signal"] / rates["log_snr"]
    return gain


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


def solved_again(
    problem: PruningProblem,
    low: Array,
    cap: Array,
    start: Array,
    build: Callable[[int, bool], Statement],
    units: Callable[[PruningProblem, Array], Units],
    is_sum: bool = False,
) -> Iterator[tuple[Any, ...]]:
    """Shares [K] that fill the band, other results, and the price, of one pass after the other.

    Args:
        problem: K devices.
        low: least shares [K].
        cap: largest shares [K]; the statement is about those of whom it is more.
        start: shares [K] to measure in, times any number.
        build: the statement of so many devices, under a density of noise or not.
        units: parameters in units of shares of some devices.
        is_sum: whether what is least is the sum of w rho.

    Raises:
        UncertifiedError: Clarabel found no answer.
    """
    least, most = low, cap
    if not (cap > low).any():
        yield low, 0.0, 0.0
        return
    b0 = start * min(1.0, (1.0 - low[cap <= low].sum()) / start[cap > low].sum())
    for _ in range(PASSES):
        on = most > least
        few, b, band = chosen(problem, on), b0[on], 1.0 - float(least[~on].sum())
        values = units(few, b)
        unit = float(values["weight"].max())
        values |= {"weight": values["weight"] / unit, "part": b / b.max()}
        values |= {} if few.snr is None else shannon_units(few.snr / b)
        values |= {"band": min(band / b.max(), FAR)}
        beta, *others, price = build(len(b), few.snr is not None).solve(values)
        unit /= float(b.max())
        share = least.copy()
        share[on] = b * beta
        share = filled(share, least, most)
        yield share, *others, price * unit if share.sum() >= FULL else 0.0
        b0 = np.where(on, np.clip(share, b0 / FAR, b0 * FAR), b0)
        if is_sum:
            price, noise = price * unit, NOISE * unit
            starved = marginal_gain(problem, np.maximum(low, 1e-9 * b0)) * CLEARLY < price - noise
            served = marginal_gain(problem, cap) > (price + noise) * CLEARLY
            above, below = np.where(served, cap, low), np.where(starved, low, cap)
            if (below > above).any() and above.sum() < 1.0:
                least, most = above, below
