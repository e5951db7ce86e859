"""How much band a device takes at a price: the share of least w rho(b) + price b.

It is the root of m(b) = price, clipped (`solvers.marginal_gains`): Liu, eq. (54), with its bounds
where the rate is linear, and segment by segment where it is piecewise linear. Where noise is a
density it is found by Newton's method in v = log(1 + snr / b), in which log m is smooth and rising.
Narrow shares, whose rate is linear by power control or at the largest efficiency, come before wide
ones: the rate is concave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Array
from solvers.problem import PruningProblem
from solvers.rate_laws.density_response import DensityResponse
from solvers.rate_laws.efficiency_laws import CappedLaw, HullLaw
from solvers.rate_laws.segment_response import (
    SegmentResponse,
    Shares,
    linear_response,
)

SHANNON = CappedLaw()


def best_response(problem: PruningProblem, price: float, low: Array, cap: Array) -> Array:
    """Shares [K] in [low, cap] of least w rho(b) + price b."""
    if price <= 0:
        return cap
    if problem.has_kinks and problem.snr is not None:
        return law_response(problem, problem.snr, low, cap).at(price**-0.5)[0]
    if problem.snr is not None:
        return DensityResponse(problem, problem.snr, low, cap)(price)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        root = np.sqrt(problem.gain * problem.rate_bps / price)
        # Liu, eq. (54); infinite or nan where G = 0
        share = (root - problem.bits) / (problem.rate_bps * problem.compute_s)
    return np.fmin(np.fmax(share, low), cap)


@dataclass(frozen=True, eq=False)
class SmoothResponse:
    """The response of `DensityResponse` by mu."""

    bent: DensityResponse

    def at(self, mu: float) -> Shares:
        """The shares at the price mu^-2."""
        share = self.bent(mu**-2)
        return Shares(share, 2.0 / mu * self.bent.fall(), self.bent.low, self.bent.cap)

    def ends(self) -> tuple[float, float]:
        """mu at which nobody takes more than the least, and at which all are full."""
        most, least = self.bent.at_low, self.bent.at_cap
        first = 0.5 * float(np.exp(-0.5 * most.max(initial=-np.inf)))
        return first, 2.0 * float(np.exp(-0.5 * least.min(initial=np.inf)))


@dataclass(frozen=True, eq=False)
class JoinedResponse:
    """Narrow shares, where the rate is linear, and then wide ones.

    Args:
        narrow: between the least shares and those of the kinks.
        wide: between those and the largest.
        kink: shares of the kinks [K].
    """

    narrow: SegmentResponse
    wide: SmoothResponse | SegmentResponse
    kink: Array

    def at(self, mu: float) -> Shares:
        """The shares at the price mu^-2."""
        few, many = self.narrow.at(mu), self.wide.at(mu)
        few = few._replace(last=np.minimum(few.last, self.kink))
        many = many._replace(first=np.maximum(many.first, self.kink))
        is_wide = many.share > self.kink
        return Shares(*(np.where(is_wide, b, a) for a, b in zip(few, many, strict=True)))

    def ends(self) -> tuple[float, float]:
        """mu at which nobody takes more than the least, and at which all are full."""
        few, many = self.narrow.ends(), self.wide.ends()
        return min(few[0], many[0]), max(few[1], many[1])


Response = SegmentResponse | SmoothResponse | JoinedResponse


def law_response(problem: PruningProblem, snr: Array, low: Array, cap: Array) -> Response:
    """Shares by price under a law of spectral efficiency, or power control, or both.

    Raises:
        ValueError: a law of another class.
    """
    law = SHANNON if problem.law is None else problem.law
    if not isinstance(law, HullLaw | CappedLaw):
        raise ValueError(f"law is a {type(law).__name__}; allowed are HullLaw and CappedLaw.")
    if isinstance(law, HullLaw) and problem.full_power_share is None:
        return SegmentResponse(problem, low, cap, snr, problem.unit_bps, law.segments)
    # the largest ratio that a device gets: that of the narrowest share with all its power
    most = np.full(len(snr), law.cap if isinstance(law, CappedLaw) else np.inf)
    if problem.full_power_share is not None:
        most = np.minimum(most, snr / problem.full_power_share)
    widest = np.minimum(cap, np.maximum(snr / law.least, snr / most)) if law.least else cap
    kink = np.minimum(np.maximum(snr / most, low), np.maximum(widest, low))
    wide: SmoothResponse | SegmentResponse
    if isinstance(law, HullLaw):
        most_share = np.maximum(cap, kink)
        wide = SegmentResponse(problem, kink, most_share, snr, problem.unit_bps, law.segments)
    else:
        rate_bps = problem.unit_bps * law.alpha * np.log1p(snr) / np.log(2.0)
        shannon = replace(problem, rate_bps=rate_bps, law=None)
        wide = SmoothResponse(DensityResponse(shannon, snr, kink, np.maximum(widest, kink)))
    if np.isinf(most).all():
        return wide
    narrow_bps = problem.unit_bps * law.efficiency(most)
    return JoinedResponse(linear_response(problem, narrow_bps, low, kink), wide, kink)
