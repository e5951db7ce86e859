"""What more band, time or rate would be worth to a plan."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fl.contracts import Array, RoundPlan
from solvers import Allocation


@dataclass(frozen=True)
class PricedPlan(RoundPlan):
    """A plan for gains that were given.

    Args:
        price: derivative of the objective by the logarithm of each planned rate [S]; nan: not
            known.
        extra_s: by which the threshold is stretched, s.
    """

    price: Array | None = None
    extra_s: float = 0.0


def slopes(answer: Allocation, bandwidth_hz: float, extra_s: float = 0.0) -> tuple[float, float]:
    """Change of the summed pruning per hertz of B and per second of T_th; nan: not known.

    Beside promises the band of the problem is beta B, and beta stays as it is.

    Args:
        answer: of the allocator.
        bandwidth_hz: B, Hz.
        extra_s: by which the threshold is stretched, s: then more band would shorten the plan, and
            nobody would be pruned less.
    """
    if extra_s or not answer.is_differentiable:
        return math.nan, math.nan
    found = answer.sensitivity(bandwidth_hz)
    return found.per_hz, found.per_s


def rate_prices(answer: Allocation, extra_s: float) -> Array:
    """Derivative of the objective by the logarithm of each planned rate [K]; nan: not known.

    Args:
        answer: of the allocator.
        extra_s: by which the threshold is stretched, s.
    """
    if extra_s or not answer.is_differentiable:
        return np.full(len(answer.share), math.nan)
    return answer.sensitivity().rates
