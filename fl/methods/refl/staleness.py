"""How much an update that comes rounds late still counts: REFL, Abdelmoniem et al., EuroSys 2023 (fedlps.md, 10.4).

Plain arithmetic on arrays [P], numpy or torch alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any

Values = Any  # [P], a numpy array or a torch tensor


def weight(rounds: int, deviation: float, beta: float = 0.35, scale: float = 1.0) -> float:
    """w_s = (1 - beta) / (tau + 1) + beta (1 - exp(-Lambda / Lambda_max) / c), against 1 for a fresh update.

    Args:
        rounds: tau, by which it is late.     deviation: Lambda / Lambda_max, in [0, 1].     scale: c.
    """
    return (1.0 - beta) / (rounds + 1) + beta * (1.0 - exp(-deviation) / scale)


def deviation(mean: Values, fresh: int, late: Values) -> float:
    """Lambda = |u - (late + n u) / (n + 1)|^2 / |u|^2: how far a late update would move the mean u of n fresh ones."""
    moved = mean - (late + fresh * mean) / (fresh + 1)
    size = float((mean * mean).sum())
    return float((moved * moved).sum()) / size if size > 0 else 0.0


def deviations(mean: Values | None, fresh: int, late: Sequence[Values]) -> list[float]:
    """Lambda / Lambda_max of every late update; 1 each where there is no fresh one, or they all agree."""
    each = [0.0 if mean is None else deviation(mean, fresh, one) for one in late]
    largest = max(each, default=0.0)
    return [one / largest if largest > 0 else 1.0 for one in each]
