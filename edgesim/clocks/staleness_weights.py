"""What staleness leaves of an update: s(tau), a factor of its change.

tau is the number of versions that were made between the download and the use of an update, so that
an update of the version that is current has tau = 0 and s(0) = 1.
"""

from __future__ import annotations

from collections.abc import Callable

StalenessWeight = Callable[[int], float]  # tau -> s(tau) in [0, 1]


def constant(tau: int) -> float:
    """s = 1: stale updates count in full."""
    return 1.0


def polynomial(tau: int, exponent: float = 0.5) -> float:
    """s = (1 + tau)^-a: Xie et al., 2019, Section 5; Nguyen et al., AISTATS 2022, with a = 1/2.

    Example:
        >>> polynomial(3)
        0.5
    """
    return float((1.0 + tau) ** -exponent)


def hinge(tau: int, slope: float = 10.0, start: int = 4) -> float:
    """s = 1 up to tau = b, then 1 / (a (tau - b) + 1): Xie et al., 2019, Section 5.

    Args:
        tau: staleness, versions.
        slope: a, at least 0.
        start: b, largest staleness that is not damped.

    Example:
        >>> hinge(4), hinge(5) == 1 / 11
        (1.0, True)
    """
    return 1.0 if tau <= start else 1.0 / (slope * (tau - start) + 1.0)
