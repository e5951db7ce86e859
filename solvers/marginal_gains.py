"""What a little more band is worth to a device, and how much band it takes at a price.

    m(b) = -d(w rho)/db = w (A q + f G) R'(b) / (R(b) G + q)^2        Liu, eq. (53), for any rate R

falls with b; where G = 0 and the rate is linear it is constant. At the price lambda the share of
least w rho(b) + lambda b is the root of m(b) = lambda, clipped: Liu, eq. (54), with its bounds
where the rate is linear. Where noise is a density it is found by Newton's method in
v = log(1 + snr / b), in which log m is smooth and rising.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvers.arrays import Array, Counts, Mask
from solvers.problem import PruningProblem
from solvers.rates import kappa, snr_log

CLOSE = 4 * float(np.finfo(float).eps)
ALL = slice(None)
HELD = 1e-9  # a ratio or share this close to a bound is held by it
BISECTIONS = 400
SHRINK = 2.0**-8  # of a share whose lower bound is 0, in a step of bisection
SMALLEST = 1e-30  # a share below is none
TURNS = 200  # of which bisection alone would need about 60


def marginal_gain(problem: PruningProblem, share: Array, more: bool = False) -> Array:
    """m(b) [K], per unit of band; 0 where band is of no use.

    Args:
        problem: K devices.
        share: b [K].
        more: at a kink of the rate, what more band is worth; else what the last of it is worth.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        busy = problem.rate_at(share) * problem.compute_s + problem.bits
        return marginal_from_slope(problem, problem.slope_at(share, more), busy)


def marginal_from_slope(problem: PruningProblem, slope: Array, busy: Array) -> Array:
    """m [K] from R' [K] and R G + q [K]."""
    m: Array = problem.gain / busy
    m *= slope / busy
    return np.fmax(m, 0.0, out=m)  # 0 / 0 where G = q = 0: 0


def strictly_inside(problem: PruningProblem, rho: Array) -> Mask:
    """Whose ratio is not held by a bound: bool [K]."""
    return (rho > problem.rho_min + HELD) & (rho < problem.rho_max - HELD)


def best_response(problem: PruningProblem, price: float, low: Array, cap: Array) -> Array:
    """Shares [K] in [low, cap] of least w rho(b) + price b."""
    if price <= 0:
        return cap
    if problem.law is not None:
        return kinked_response(problem, price, low, cap)
    if problem.snr is not None:
        return DensityResponse(problem, problem.snr, low, cap)(price)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        root = np.sqrt(problem.gain * problem.rate_bps / price)
        # Liu, eq. (54); infinite or nan where G = 0
        share = (root - problem.bits) / (problem.rate_bps * problem.compute_s)
    return np.fmin(np.fmax(share, low), cap)


def kinked_response(problem: PruningProblem, price: float, low: Array, cap: Array) -> Array:
    """The largest shares [K] in [low, cap] of which the last part is worth the price: bisection.

    For any concave rate, with kinks: m falls with b, by steps at kinks.
    """
    below, above = low.copy(), cap.copy()
    at_cap = marginal_gain(problem, cap) >= price
    for _ in range(BISECTIONS):
        # geometric where the share may be anything from next to nothing
        middle = np.where(below > 0.0, np.sqrt(below) * np.sqrt(above), above * SHRINK)
        middle = np.where(above <= 2.0 * below, 0.5 * (below + above), middle)
        worth = marginal_gain(problem, middle) >= price
        below, above = np.where(worth, middle, below), np.where(worth, above, middle)
        if ((above - below <= CLOSE * above) | (above <= SMALLEST) | at_cap).all():
            break
    return np.where(at_cap, cap, np.where(above <= SMALLEST, low, below))


class DensityResponse:
    """Shares [K] in [low, cap] of least w rho(b) + price b under a density of noise.

    Remembers where it ended, as the next price is mostly a near one; the answer depends on that
    in the last digit only.

    Args:
        problem: K devices.
        snr: their signal-to-noise ratios over the whole band [K].
        low: least shares [K].
        cap: largest shares [K].
    """

    def __init__(self, problem: PruningProblem, snr: Array, low: Array, cap: Array) -> None:
        self.low, self.cap = low, cap
        self.on = np.flatnonzero((cap > low) & (problem.gain > 0))
        self.snr = snr[self.on]
        self.curve = log_marginal_gain(problem, self.snr, self.on)
        self.first, self.last = snr_log(cap[self.on], self.snr), snr_log(low[self.on], self.snr)
        self.at_cap, self.at_low = self.curve(self.first)[0], self.curve(self.last)[0]
        self.v = np.sqrt(self.first * self.last)

    def __call__(self, price: float) -> Array:
        """The shares [K] at this price."""
        share, aim = self.low.copy(), float(np.log(price))
        v = self.v = self._root(aim)
        inside = np.where(aim <= self.at_cap, self.cap[self.on], self.snr / np.expm1(v))
        share[self.on] = np.where(aim >= self.at_low, self.low[self.on], inside)
        return np.minimum(np.maximum(share, self.low), self.cap)

    def fall(self) -> Array:
        """-db / dlog(price) of the last shares [K]; 0 at a bound."""
        fall, v = np.zeros_like(self.low), self.v
        elasticity = self.curve(v)[1] * -np.expm1(-v)  # -d log m / d log b
        inside = (v > self.first) & (v < self.last)
        fall[self.on] = np.where(inside, self.snr / np.expm1(v) / elasticity, 0.0)
        return fall

    def _root(self, aim: float) -> Array:
        """v [S] with log m(v) = aim, or the bound it lies beyond: Newton's method in a bracket."""
        low = np.where(aim >= self.at_low, self.last, self.first)
        high = np.where(aim <= self.at_cap, self.first, self.last)
        v, live = np.minimum(np.maximum(self.v, low), high), np.arange(len(low))
        noise = CLOSE * (1.0 + abs(aim))
        for _ in range(TURNS):
            here = v[live]
            height, slope = self.curve(here, live)
            height -= aim
            below = np.where(height <= 0, here, low[live])
            above = np.where(height >= 0, here, high[live])
            # a step of log v where log m ~ 2 log v, of v where log m is straight
            step = height / slope
            change = np.exp(np.minimum(np.maximum(-step / here, -700.0), 700.0))
            there = np.where(here < 1.0, here * change, here - step)
            there = np.where((there > below) & (there < above), there, np.sqrt(below * above))
            done = np.abs(there - here) <= CLOSE * here
            done |= (above <= below * (1.0 + CLOSE)) | (np.abs(height) <= noise)
            low[live], high[live], v[live] = below, above, np.where(done, here, there)
            live = live[~done]
            if not len(live):
                break
        return v


def log_marginal_gain(
    problem: PruningProblem, snr: Array, on: Counts
) -> Callable[..., tuple[Array, Array]]:
    """Function of v [S] that returns log m and its derivative by v, under a density of noise.

    Args:
        problem: K devices.
        snr: signal-to-noise ratios over the whole band of the devices `on` [S].
        on: indices of the devices [S]; the function takes indices into these as `live`.
    """
    bits, compute_s = problem.bits[on], problem.compute_s[on]
    unit_bps = problem.rate_bps[on] / np.log1p(snr)  # R = unit b v
    scale, work = np.log(problem.gain[on]) + np.log(unit_bps), unit_bps * snr * compute_s

    def curve(v: Array, live: Counts | slice = ALL) -> tuple[Array, Array]:
        k, shrunk = kappa(v), -np.expm1(-v)
        busy = work[live] / np.expm1(v)
        spent = busy * v + bits[live]
        height = scale[live] + np.log(k) - 2.0 * np.log(spent)
        return height, shrunk / k + 2.0 * busy * k / (shrunk * spent)

    return curve
