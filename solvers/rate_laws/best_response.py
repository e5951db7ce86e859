"""How much band a device takes at a price: the share of least w rho(b) + price b.

It is the root of m(b) = price, clipped (`solvers.marginal_gains`): Liu, eq. (54), with its bounds
where the rate is linear, and segment by segment where it is piecewise linear. Where noise is a
density it is found by Newton's method in v = log(1 + snr / b), in which log m is smooth and rising.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.arrays import Array
from solvers.marginal_gains import log_marginal_gain
from solvers.problem import PruningProblem
from solvers.rate_laws.efficiency_laws import CappedLaw, HullLaw
from solvers.rates import EfficiencyLaw, snr_log

ROUNDING = float(np.finfo(float).eps)
CLOSE = 4 * ROUNDING
TURNS = 200  # of which bisection alone would need about 60


def best_response(problem: PruningProblem, price: float, low: Array, cap: Array) -> Array:
    """Shares [K] in [low, cap] of least w rho(b) + price b."""
    if price <= 0:
        return cap
    if problem.law is not None and problem.snr is not None:
        return law_response(problem, problem.law, problem.snr, low, cap).at(price**-0.5)[0]
    if problem.snr is not None:
        return DensityResponse(problem, problem.snr, low, cap)(price)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        root = np.sqrt(problem.gain * problem.rate_bps / price)
        # Liu, eq. (54); infinite or nan where G = 0
        share = (root - problem.bits) / (problem.rate_bps * problem.compute_s)
    return np.fmin(np.fmax(share, low), cap)


class HullResponse:
    """Shares [K] in [low, cap] of least w rho(b) + price b where the rate is piecewise linear.

    On a segment R = a b + s c: the linear rate a, with q + s c G bits instead of q. The marginal
    gain falls from segment to segment, so they fill one after the other, and a share is the sum of
    what its segments take: Liu, eq. (54), clipped to each.

    Args:
        problem: K devices.
        law: their spectral efficiency, or a part of it.
        snr: their signal-to-noise ratios over the whole band [K].
        low: least shares [K].
        cap: largest shares [K].
    """

    def __init__(
        self, problem: PruningProblem, law: HullLaw, snr: Array, low: Array, cap: Array
    ) -> None:
        self.low, self.cap = low, cap
        slopes, intercepts = law.lines
        # A narrow share has the largest ratio; beyond the first corner more band brings nothing.
        last = snr[:, None] / law.snr[::-1]
        first = np.maximum(np.pad(last[:, :-1], ((0, 0), (1, 0))), low[:, None])
        np.minimum(last, cap[:, None], out=last)
        self.owner, segment = np.nonzero(last > first)
        self.first, self.last = first[self.owner, segment], last[self.owner, segment]
        line = len(law.snr) - segment
        unit_bps = unit_rate_bps(problem, snr)[self.owner]
        rate_bps, compute_s = unit_bps * intercepts[line], problem.compute_s[self.owner]
        fixed_bps = unit_bps * slopes[line] * snr[self.owner]
        bits, work = problem.bits[self.owner] + compute_s * fixed_bps, rate_bps * compute_s
        root = np.sqrt(problem.gain[self.owner] * rate_bps)
        bent = work > ROUNDING * bits  # else rho is linear in b there, or band is of no use
        with np.errstate(divide="ignore", invalid="ignore"):
            self.slope = np.where(bent, root / work, 0.0)
            offset = np.where(bent, bits / work, 0.0)
            jump = np.where(root > 0.0, bits / root, np.inf)
            self.enter, self.leave = (
                np.where(bent, (edge + offset) / self.slope, jump)
                for edge in (self.first, self.last)
            )
        self.offset, self.straight = offset, ~bent

    def at(self, mu: float) -> tuple[Array, Array]:
        """(b [K], db / dmu [K]) at the price mu^-2."""
        line = mu * self.slope - self.offset
        taken = np.minimum(np.maximum(line, self.first), self.last)
        if self.straight.any():
            taken = np.where(
                self.straight, np.where(mu >= self.enter, self.last, self.first), taken
            )
        rise = np.where((mu > self.enter) & (mu < self.leave), self.slope, 0.0)
        taken -= self.first
        share = np.minimum(self.low + self._per_device(taken), self.cap)
        return share, self._per_device(rise)

    def _per_device(self, values: Array) -> Array:
        return np.bincount(self.owner, values, len(self.low)).astype(float)

    def ends(self) -> tuple[float, float]:
        """mu at which no segment has begun, and at which all are full."""
        most = float(self.leave.max(where=self.leave < np.inf, initial=0.0))
        return 0.5 * float(self.enter.min()), 2.0 * most


class CappedResponse:
    """The same where the rate is b log2(1 + c / b) between a cap of the ratio and a least one.

    Narrow shares, at the cap, are the segment of a hull with one corner.

    Args:
        problem: K devices.
        law: their spectral efficiency.
        snr: their signal-to-noise ratios over the whole band [K].
        low: least shares [K].
        cap: largest shares [K].
    """

    def __init__(
        self, problem: PruningProblem, law: CappedLaw, snr: Array, low: Array, cap: Array
    ) -> None:
        widest = np.minimum(cap, snr / law.least) if law.least else cap
        kink = np.minimum(np.maximum(snr / law.cap, low), np.maximum(widest, low))
        rate_bps = unit_rate_bps(problem, snr) * law.alpha * np.log2(1.0 + snr)
        shannon = replace(problem, rate_bps=rate_bps, law=None)
        self.bent = DensityResponse(shannon, snr, kink, np.maximum(widest, kink))
        self.straight: HullResponse | None = None
        if law.cap < np.inf:
            corner = HullLaw(np.array([law.cap]), law.efficiency(np.array([law.cap])))
            self.straight = HullResponse(problem, corner, snr, low, kink)

    def at(self, mu: float) -> tuple[Array, Array]:
        """(b [K], db / dmu [K]) at the price mu^-2."""
        share, rise = self.bent(mu**-2), 2.0 / mu * self.bent.fall()
        if self.straight is None:
            return share, rise
        narrow, narrow_rise = self.straight.at(mu)
        return np.where(share > self.bent.low, share, narrow), rise + narrow_rise

    def ends(self) -> tuple[float, float]:
        """mu at which nobody takes more than the least, and at which all are full."""
        most, least = self.bent.at_low, self.bent.at_cap
        first = 0.5 * float(np.exp(-0.5 * most.max(initial=-np.inf)))
        last = 2.0 * float(np.exp(-0.5 * least.min(initial=np.inf)))
        if self.straight is None or not self.straight.owner.size:
            return first, last
        narrow = self.straight.ends()
        return min(first, narrow[0]), max(last, narrow[1])


def law_response(
    problem: PruningProblem, law: EfficiencyLaw, snr: Array, low: Array, cap: Array
) -> HullResponse | CappedResponse:
    """Shares by price under a law of spectral efficiency.

    Raises:
        ValueError: a law of another class.
    """
    if isinstance(law, HullLaw):
        return HullResponse(problem, law, snr, low, cap)
    if isinstance(law, CappedLaw):
        return CappedResponse(problem, law, snr, low, cap)
    raise ValueError(f"law is a {type(law).__name__}; allowed are HullLaw and CappedLaw.")


def unit_rate_bps(problem: PruningProblem, snr: Array) -> Array:
    """Rate [K] over the whole band of a spectral efficiency of 1 bit/s/Hz, bit/s."""
    return (
        problem.rate_bps if problem.law is None else problem.rate_bps / problem.law.efficiency(snr)
    )


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
