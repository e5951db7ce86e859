"""Scores of devices and draws by them: the arithmetic of Oort.

Lai et al., OSDI 2021, Section 4, with the constants of the released program (FedScale).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fl.contracts import Array

MOST = 1e30  # the largest mean squared loss; what diverged, nan too, counts as this
LEAST = 1e-12  # a weight of zero can still be drawn when no others are left


def statistical(samples: float, mean_square: float) -> float:
    """U = |B| sqrt(mean of the squared losses of the samples)."""
    return samples * (mean_square if mean_square <= MOST else MOST) ** 0.5


def limit(durations_s: Array, percentile: float) -> float:
    """T, the duration at that percentile of those known [N], s; inf from 100 on."""
    if percentile >= 100 or len(durations_s) == 0:
        return np.inf
    place = int(len(durations_s) * percentile / 100)
    return float(np.sort(durations_s)[min(place, len(durations_s) - 1)])


def slowness(duration_s: Array, limit_s: float, power: float = 2.0) -> Array:
    """(T / t)^power where a device takes longer than T, else 1."""
    duration_s = np.asarray(duration_s, dtype=float)
    slow = duration_s > limit_s
    return np.where(slow, limit_s / np.where(slow, duration_s, 1.0), 1.0) ** power


def scores(
    utility: Array, duration_s: Array, last: Array, now: int, limit_s: float, power: float = 2.0
) -> Array:
    """What each of N tried devices is worth in round ``now`` (the first is 1) [N].

    Utilities are clipped at their 90th percentile and scaled to about [0, 1]; who was asked long
    ago gains sqrt(0.1 ln r / L); who is slow loses.

    Args:
        utility: Of each device [N].
        duration_s: Of its last participation [N], s.
        last: L, the round of its last participation [N].
        now: r, this round.
        limit_s: T, s.
        power: Of the slowness.
    """
    clip = np.sort(utility)[min(int(0.9 * len(utility)), len(utility) - 1)]
    low = 0.999 * utility.min()
    worth = (np.minimum(utility, clip) - low) / max(utility.max() - low, 1e-4)
    waited = np.sqrt(0.1 * np.log(now) / last)
    return np.abs((worth + waited) * slowness(duration_s, limit_s, power))


def shortlist(scores: Array, count: int, cut_off: float) -> Array:
    """The places of all scores [N] of at least cut_off times the count-th largest."""
    return np.flatnonzero(scores >= cut_off * np.sort(scores)[-count])


def drawn(rng: np.random.Generator, weights: Array, count: int) -> Array:
    """Places of ``count`` of the weights [N], without replacement and in proportion to them.

    Efraimidis and Spirakis 2006: the least of -ln(u) / weight.
    """
    lots = rng.exponential(size=len(weights)) / np.maximum(weights, LEAST)
    return np.argsort(lots, kind="stable")[:count]


def paced(percentile: float, exploited: Sequence[float], rounds: int, step: float) -> float:
    """The percentile of T after ``rounds`` rounds more.

    As good as before (within 10 %): slower devices may come in; five times better or worse: fewer
    of them.

    Args:
        percentile: Until now.
        exploited: Utility exploited in each of the last 2 ``rounds`` rounds.
        rounds: Of a window.
        step: By how much it moves.
    """
    before, now = sum(exploited[-2 * rounds : -rounds]), sum(exploited[-rounds:])
    if abs(now - before) <= 0.1 * before:
        return min(100.0, percentile + step)
    return max(step, percentile - step) if abs(now - before) >= 5.0 * before else percentile
