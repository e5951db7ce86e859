"""Shares at a price where the rate is piecewise linear: Liu, eq. (54), segment by segment.

On a segment R = a b + s c: the linear rate a, with q + s c G bits instead of q. The marginal gain
falls from segment to segment, so they fill one after the other: a share at the price mu^-2 is on
the last segment that has begun, or at its end, and Liu, eq. (54), is a line in mu there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvers.arrays import Array
from solvers.problem import PruningProblem
from solvers.rate_laws.efficiency_laws import Segments, segments

STEEPEST = 1e150  # of db / dmu
ENDLESS = segments(np.zeros(1), np.ones(1), np.ones(1))  # one: eta is 1 at every ratio


class Shares(NamedTuple):
    """Shares at a price, and how they move with it.

    Args:
        share: b [K].
        rise: db / dmu [K]; 0 on a kink and at a bound.
        first: from where on that holds, within the bounds [K].
        last: up to where it holds, within the bounds [K].
    """

    share: Array
    rise: Array
    first: Array
    last: Array


class SegmentResponse:
    """Shares [K] in [low, cap] of least w rho(b) + price b, for R = u b eta(c / b).

    eta is piecewise linear: from corner to corner in the order of rising shares, and constant
    before the first. What is below ``low`` or above ``cap`` is cut off: the sum is convex in b.

    Args:
        problem: K devices.
        low: least shares [K].
        cap: largest shares [K].
        snr: c, ratios over the whole band [K].
        unit_bps: u, rate over the whole band of 1 bit/s/Hz [K], bit/s.
        pieces: of eta.
    """

    def __init__(
        self,
        problem: PruningProblem,
        low: Array,
        cap: Array,
        snr: Array,
        unit_bps: Array,
        pieces: Segments,
    ) -> None:
        self.low, self.cap, self.snr, self.pieces = low, cap, snr, pieces
        self._bits, self._work = problem.bits, unit_bps * problem.compute_s
        self._root = np.sqrt(problem.gain * unit_bps)
        # mu at which each segment begins [I + 1, K]: (R G + q) / sqrt(w (A q + f G) a)
        self._begin = np.zeros((len(pieces.first), len(snr)))
        begin = self._begin[1:]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            np.multiply.outer(pieces.carried, self._work * snr, out=begin[1:])
            begin += self._bits
            begin *= pieces.per_root[1:, None]
            begin /= self._root
            # where the rate of a device counts alone, it takes a segment at once
            self._slope = np.fmin(self._root / self._work, STEEPEST)
        if not self._root.all():
            begin[:, self._root == 0] = np.inf  # band is of no use
        self._column = np.arange(len(snr))

    def at(self, mu: float) -> Shares:
        """The shares at the price mu^-2."""
        begun = np.add.reduce(self._begin <= mu, axis=0, dtype=np.int16)
        segment = begun.astype(np.intp) - 1
        first = self.snr * self.pieces.first.take(segment)
        last = self.snr * self.pieces.last.take(segment)
        slope = self._slope * self.pieces.per_root.take(segment)
        line = mu - self._begin[segment, self._column]
        line *= slope
        line += first
        share = np.minimum(line, last)
        np.maximum(share, self.low, out=share)
        np.minimum(share, self.cap, out=share)
        return Shares(share, np.where(share == line, slope, 0.0), first, last)

    def ends(self) -> tuple[float, float]:
        """mu at which no device has more than the least, and at which all are full."""
        moves = (self._root > 0) & (self.cap > self.low)
        pieces, work = self.pieces, self._work
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # R G at these shares is between what the least and the largest eta give
            full = pieces.full * (work * self.snr)
            least = np.fmin(full, pieces.least * (work * self.low))
            most = np.fmin(full, pieces.most * (work * self.cap))
            first = (self._bits + least) * pieces.per_root[1] / self._root
            last = (self._bits + most) * pieces.per_root[-1] / self._root
        first_mu = float(first.min(where=moves, initial=np.inf))
        return 0.5 * first_mu, 2.0 * float(last.max(where=moves, initial=0.0))


def linear_response(
    problem: PruningProblem, rate_bps: Array, low: Array, cap: Array
) -> SegmentResponse:
    """The response where R = a b, a [K] bit/s, between shares."""
    return SegmentResponse(problem, low, cap, np.ones(len(low)), rate_bps, ENDLESS)
