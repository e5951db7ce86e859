"""Shares at a price where noise is a density: Newton's method in v = log(1 + snr / b)."""

from __future__ import annotations

import numpy as np

from solvers.arrays import EPS, Array
from solvers.marginal_gains import log_marginal_gain
from solvers.problem import PruningProblem
from solvers.rates import snr_log

CLOSE = 4 * EPS
TURNS = 200  # of which bisection alone would need about 60


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
