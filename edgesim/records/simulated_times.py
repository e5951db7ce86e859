"""Simulated times compared with times of the scenario, of which sums may fall short by rounding."""

from __future__ import annotations

import math

ROUNDING = 1e-9  # relative, by which a sum of times may fall short of what it stands for


def multiples_passed(time_s: float, every_s: float) -> int:
    """How many multiples of a time have passed by then; one that is reached has.

    Args:
        time_s: simulated time, s.
        every_s: the time between two of them, s.
    """
    return math.floor(time_s / every_s * (1.0 + ROUNDING))
