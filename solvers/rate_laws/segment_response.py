"""Shares at a price where the rate is piecewise linear: Liu, eq. (54), segment by segment.

On a segment R = a b + s c: the linear rate a, with q + s c G bits instead of q. The marginal gain
falls from segment to segment, so they fill one after the other, and a share is the sum of what its
segments take: Liu, eq. (54), clipped to each.
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Array, Counts
from solvers.problem import PruningProblem
from solvers.rate_laws.efficiency_laws import HullLaw

ROUNDING = float(np.finfo(float).eps)


class SegmentResponse:
    """Shares [K] in [low, cap] of least w rho(b) + price b on given segments.

    Args:
        problem: K devices.
        low: least shares [K].
        cap: largest shares [K].
        owner: device of every segment, in rising order of shares for each, int [N].
        first: where the segments begin [N].
        last: where they end [N].
        rate_bps: a [N], bit/s.
        fixed_bps: s c [N], bit/s.
    """

    def __init__(
        self,
        problem: PruningProblem,
        low: Array,
        cap: Array,
        owner: Counts,
        first: Array,
        last: Array,
        rate_bps: Array,
        fixed_bps: Array,
    ) -> None:
        self.low, self.cap = low, cap
        self.owner, self.first, self.last = owner, first, last
        compute_s = problem.compute_s[owner]
        bits, work = problem.bits[owner] + compute_s * fixed_bps, rate_bps * compute_s
        root = np.sqrt(problem.gain[owner] * rate_bps)
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
        return 0.5 * float(self.enter.min(initial=np.inf)), 2.0 * most


def unit_rate_bps(problem: PruningProblem, snr: Array) -> Array:
    """Rate [K] over the whole band of a spectral efficiency of 1 bit/s/Hz, bit/s."""
    if problem.law is None:
        shannon: Array = np.log1p(snr) / np.log(2.0)
        return problem.rate_bps / shannon
    return problem.rate_bps / problem.law.efficiency(snr)


def hull_response(
    problem: PruningProblem, law: HullLaw, snr: Array, low: Array, cap: Array
) -> SegmentResponse:
    """The response on the segments of a hull between shares.

    Args:
        problem: K devices.
        law: their spectral efficiency.
        snr: their signal-to-noise ratios over the whole band [K].
        low: least shares [K].
        cap: largest shares [K].
    """
    slopes, intercepts = law.lines
    # A narrow share has the largest ratio; beyond the first corner more band brings nothing.
    last = snr[:, None] / law.snr[::-1]
    first = np.maximum(np.pad(last[:, :-1], ((0, 0), (1, 0))), low[:, None])
    np.minimum(last, cap[:, None], out=last)
    owner, segment = np.nonzero(last > first)
    first, last = first[owner, segment], last[owner, segment]
    line, unit_bps = len(law.snr) - segment, unit_rate_bps(problem, snr)[owner]
    fixed_bps = unit_bps * slopes[line] * snr[owner]
    rates = unit_bps * intercepts[line], fixed_bps
    return SegmentResponse(problem, low, cap, owner, first, last, *rates)


def linear_response(
    problem: PruningProblem, rate_bps: Array, low: Array, cap: Array
) -> SegmentResponse:
    """The response where R = a b, a [K] bit/s, between shares."""
    owner = np.flatnonzero(cap > low)
    ends = low[owner], cap[owner]
    return SegmentResponse(problem, low, cap, owner, *ends, rate_bps[owner], np.zeros(len(owner)))
