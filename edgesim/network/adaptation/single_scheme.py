"""Shares that are sent with one modulation and coding scheme at a time.

A plan counts with the least concave majorant of the schemes, which two of them side by side in one
share achieve (`solvers.rate_laws`). With one at a time the rate is a staircase: on average over the
decibels of NR's 64QAM table 6 % less (256QAM: 8 %), and just below a step up to 24 % (38 %).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fl.contracts import Array
from solvers.rate_laws.efficiency_laws import HullLaw

ROUNDING = 1e-9  # relative error of a ratio


@dataclass(frozen=True, eq=False)
class SingleScheme:
    """The spectral efficiency of the best scheme alone.

    Args:
        majorant: of the schemes. Below its first corner only a part of the share is used, with the
            ratio of that corner.
        best: largest efficiency of one scheme at ratios, linear, any shape to the same shape.
    """

    majorant: HullLaw
    best: Callable[[Array], Array]

    def efficiency(self, snr: Array) -> Array:
        """bit/s/Hz at ratios within the share, linear, same shape."""
        snr = np.asarray(snr, dtype=float)
        above = np.maximum(snr, self.majorant.least)
        alone: Array = self.best(above)
        return np.where(snr < self.majorant.least, self.majorant.efficiency(snr), alone)


def staircase(least_snr: Array, bits: Array) -> Callable[[Array], Array]:
    """The largest of ``bits`` [I] whose ``least_snr`` [I], increasing, is reached; else 0."""
    steps = np.append(0.0, np.maximum.accumulate(bits))
    # A plan likes to put a device on a corner, which rounding must not take away from it.
    return lambda snr: steps[np.searchsorted(least_snr, snr * (1.0 + ROUNDING), side="right")]
