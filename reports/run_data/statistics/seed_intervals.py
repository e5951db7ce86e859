"""Means over the seeds of a scheme with their 95 % intervals, and what may be ranked by them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from edgesim.results.finished_run import FinishedRun
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.run_totals import cost_to_target, final

ROUNDING = 1e-12  # relative; less of an interval is what sums leave of equal seeds
LEAST_SEEDS = 3  # of an interval or a test


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with half of its 95 % interval, nan below `LEAST_SEEDS`.

    values: of each seed that has one [n].
    """

    mean: float
    half: float
    values: tuple[float, ...]

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def dots(self) -> tuple[float, ...]:
        """What a figure shows in place of an interval: the values of two seeds."""
        return self.values if 1 < self.n < LEAST_SEEDS else ()


def can_be_ranked(schemes: Sequence[Scheme]) -> bool:
    """Has every scheme the seeds of an interval, and was tuned? Else chance may decide."""
    enough = min(len(scheme.runs) for scheme in schemes) >= LEAST_SEEDS
    return enough and not any(scheme.untuned for scheme in schemes)


def estimate(scheme: Scheme, value: Callable[[FinishedRun], float]) -> Estimate:
    """``value(run)`` over the seeds that have one; nan, nan, () where none has."""
    known = np.array([x for run in scheme.runs if not math.isnan(x := float(value(run)))])
    mean = float(known.mean()) if len(known) else math.nan
    half = float(half_width(known)) if len(known) >= LEAST_SEEDS else math.nan
    return Estimate(mean, half, tuple(known.tolist()))


def comparable_estimate(scheme: Scheme, value: Callable[[FinishedRun], float]) -> Estimate:
    """`estimate`, whose half is nan where a seed has no value: that one may have been the worst."""
    found = estimate(scheme, value)
    return found if found.n == len(scheme.runs) else replace(found, half=math.nan)


def seed_mean(scheme: Scheme, value: Callable[[FinishedRun], float]) -> float:
    """Mean of ``value(run)`` over the seeds, nan where a seed has none."""
    return float(np.mean([value(run) for run in scheme.runs]))


def final_accuracy(scheme: Scheme) -> float:
    """Final accuracy, mean over seeds; nan where it was not evaluated."""
    return seed_mean(scheme, lambda run: final(run, "accuracy"))


def target_estimate(scheme: Scheme, target: float, name: str) -> Estimate:
    """rounds, time_s, bits or energy_j to a target accuracy, over the seeds that reached it."""

    def cost(run: FinishedRun) -> float:
        reached = cost_to_target(run, target)
        return math.nan if reached is None else float(getattr(reached, name))

    return estimate(scheme, cost)


def overlap(mean: float, half: float, other_mean: float, other_half: float) -> bool:
    """Do two 95 % intervals overlap, of equal means also without width? Not if one is nan."""
    both = half + other_half
    # nan stays nan, as the first of the two
    return abs(mean - other_mean) <= max(both, ROUNDING * abs(mean))


def are_told_apart(estimates: Sequence[Estimate]) -> bool:
    """May these be put in an order: does no interval overlap that of the next one?"""
    ordered = sorted(estimates, key=lambda each: each.mean)
    return not any(
        overlap(one.mean, one.half, other.mean, other.half) for one, other in pairwise(ordered)
    )


def half_width(values: np.ndarray) -> np.ndarray:
    """Half of the 95 % confidence interval of the mean over seeds (Student's t).

    Args:
        values: [n, ...], seeds along the first axis, n >= `LEAST_SEEDS`: with two, the interval
            of accuracies that differ by a point is 13 points wide and says nothing.

    Returns:
        t(n - 1, 0.975) s / sqrt(n) [...]; nan where a value is not finite.
    """
    from scipy.special import stdtrit

    n = len(values)
    with np.errstate(invalid="ignore"):  # inf - inf, of training that diverged
        spread = values.std(axis=0, ddof=1)
    return np.asarray(stdtrit(n - 1, 0.975) * spread / math.sqrt(n))
