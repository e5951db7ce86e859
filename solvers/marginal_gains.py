"""What a little more band is worth to a device, and how much of it the device takes at a price.

    m(b) = -d(w rho)/db = w (A q + f G) R'(b) / (R(b) G + q)^2              Liu, eq. (53), for any rate R

falls with b (where G = 0 and the rate is linear it is constant). At the price lambda the share of least
w rho(b) + lambda b is the root of m(b) = lambda, clipped: Liu (54) with its bounds where the rate is linear; where
noise is a density a Newton search in v = log(1 + snr / b), in which log m is smooth and rising.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvers.problem import Array, PruningProblem
from solvers.shannon import kappa, nats

CLOSE = 4 * float(np.finfo(float).eps)
ALL = slice(None)
HELD = 1e-9  # a ratio or share this close to a bound is held by it
TURNS = 200  # of which bisection alone would need about 60


def marginal(problem: PruningProblem, share: Array) -> Array:
    """m(b) [K], per unit of band; 0 where band is of no use."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        busy = problem.rate_at(share) * problem.compute_s + problem.bits
        return worth(problem, problem.slope_at(share), busy)


def worth(problem: PruningProblem, slope: Array, busy: Array) -> Array:
    """m [K] from R' and R G + q [K]."""
    m = problem.gain / busy
    m *= slope / busy
    return np.fmax(m, 0.0, out=m)  # 0 / 0 where G = q = 0: 0


def inner(problem: PruningProblem, rho: Array) -> Array:
    """Whose ratio is not held by a bound: bool [K]."""
    return (rho > problem.rho_min + HELD) & (rho < problem.rho_max - HELD)


def response(problem: PruningProblem, price: float, low: Array, cap: Array) -> Array:
    """Shares [K] in [low, cap] of least w rho(b) + price b."""
    if price <= 0:
        return cap
    if problem.snr is not None:
        return DensityResponse(problem, low, cap)(price)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        root = np.sqrt(problem.gain * problem.rate_bps / price)
        share = (root - problem.bits) / (
            problem.rate_bps * problem.compute_s
        )  # Liu (54); +-inf or nan where G = 0
    return np.fmin(np.fmax(share, low), cap)


class DensityResponse:
    """price -> shares [K] in [low, cap] of least w rho(b) + price b under a density of noise.

    Remembers where it ended, as the next price is mostly a near one; the answer depends on it in the last digit only.
    """

    def __init__(self, problem: PruningProblem, low: Array, cap: Array):
        self.low, self.cap = low, cap
        self.on = np.flatnonzero((cap > low) & (problem.gain > 0))
        self.curve = log_marginal(problem, self.on)
        snr = problem.snr[self.on]
        self.snr, self.first, self.last = snr, nats(cap[self.on], snr), nats(low[self.on], snr)
        self.at_cap, self.at_low = self.curve(self.first)[0], self.curve(self.last)[0]
        self.v = np.sqrt(self.first * self.last)

    def __call__(self, price: float) -> Array:
        share, aim = self.low.copy(), float(np.log(price))
        v = self.v = self._root(aim)
        inner = np.where(aim <= self.at_cap, self.cap[self.on], self.snr / np.expm1(v))
        share[self.on] = np.where(aim >= self.at_low, self.low[self.on], inner)
        return np.minimum(np.maximum(share, self.low), self.cap)

    def fall(self) -> Array:
        """-db / dlog(price) of the last shares [K]; 0 at a bound."""
        fall, v = np.zeros_like(self.low), self.v
        elasticity = self.curve(v)[1] * -np.expm1(-v)  # -d log m / d log b
        fall[self.on] = np.where(
            (v > self.first) & (v < self.last), self.snr / np.expm1(v) / elasticity, 0.0
        )
        return fall

    def _root(self, aim: float) -> Array:
        """v [S] with log m(v) = aim, or the bound it lies beyond: Newton in a bracket, for those not yet there."""
        low = np.where(aim >= self.at_low, self.last, self.first)
        high = np.where(aim <= self.at_cap, self.first, self.last)
        v, live, noise = (
            np.minimum(np.maximum(self.v, low), high),
            np.arange(len(low)),
            CLOSE * (1.0 + abs(aim)),
        )
        for _ in range(TURNS):
            here = v[live]
            height, slope = self.curve(here, live)
            height -= aim
            below, above = (
                np.where(height <= 0, here, low[live]),
                np.where(height >= 0, here, high[live]),
            )
            step = height / slope  # of log v where log m ~ 2 log v, of v where it is straight
            there = np.where(
                here < 1.0,
                here * np.exp(np.minimum(np.maximum(-step / here, -700.0), 700.0)),
                here - step,
            )
            there = np.where((there > below) & (there < above), there, np.sqrt(below * above))
            done = (
                (np.abs(there - here) <= CLOSE * here)
                | (above <= below * (1.0 + CLOSE))
                | (np.abs(height) <= noise)
            )
            low[live], high[live], v[live] = below, above, np.where(done, here, there)
            live = live[~done]
            if not len(live):
                break
        return v


def log_marginal(problem: PruningProblem, on: Array) -> Callable[..., tuple[Array, Array]]:
    """v [S] -> log m and its derivative by v, of the devices `on` [S] (or those of them at `live`), under a density."""
    bits, compute_s, snr = problem.bits[on], problem.compute_s[on], problem.snr[on]
    unit_bps = problem.rate_bps[on] / np.log1p(snr)  # R = unit b v
    scale, work = np.log(problem.gain[on]) + np.log(unit_bps), unit_bps * snr * compute_s

    def curve(v: Array, live: Array | slice = ALL) -> tuple[Array, Array]:
        k, shrunk = kappa(v), -np.expm1(-v)
        busy = work[live] / np.expm1(v)
        spent = busy * v + bits[live]
        return scale[live] + np.log(k) - 2.0 * np.log(spent), shrunk / k + 2.0 * busy * k / (
            shrunk * spent
        )

    return curve
