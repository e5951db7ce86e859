"""Earliest deadline first: the whole band to one upload at a time, with a certificate.

Where the rate is linear in the share (noise as a power, Liu (9)) an upload needs c_k seconds of the
whole band, however they are cut up. Uploads with release times a_k and deadlines d_k fit if and
only if no interval [s, e] is asked for more than it has:

    sum of c_k over {k: a_k >= s, d_k <= e}  <=  e - s,

and only s among the a_k and e among the d_k matter. Earliest deadline first then meets all of them
(Horn, Naval Research Logistics Quarterly 21, 1974; Baruah et al., Real-Time Systems 2, 1990). It
also has the least worst lateness, which is the largest excess of any interval: that interval is
the certificate.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.arrays import Array
from solvers.solution import UncertifiedError

Indices = np.ndarray[Any, np.dtype[np.intp]]
TOLERANCE = 1e-9  # of the longest time in question, for rounding


@dataclass(frozen=True, eq=False)
class Timetable:
    """Who has the band when, and why nobody could do better.

    Args:
        finish_s: end of each upload [K], s.
        turns: (upload, start_s, end_s) of each stretch in which one of them has the whole band.
        lateness_s: worst of finish - deadline, s; at most 0: every deadline is met.
        interval_s: (s, e) whose uploads need ``lateness_s`` more than it is long.
        members: uploads that must be sent within that interval, int.
        residual: relative difference of the worst lateness and what the interval needs.
    """

    finish_s: Array
    turns: tuple[tuple[int, float, float], ...]
    lateness_s: float
    interval_s: tuple[float, float]
    members: Indices
    residual: float

    @property
    def feasible(self) -> bool:
        """Is every deadline met, up to rounding?"""
        return self.lateness_s <= TOLERANCE * float(np.abs(self.finish_s).max(initial=1.0))


def earliest_deadline(release_s: Array, deadline_s: Array, band_s: Array) -> Timetable:
    """Send whatever is due first, among the uploads that are there.

    Args:
        release_s: a, when each upload can begin [K], s.
        deadline_s: d [K], s.
        band_s: c, seconds of the whole band that each needs [K], s.

    Returns:
        The timetable with the interval that proves it.

    Raises:
        ValueError: arrays of other lengths, nan, an infinite release, or a negative c.
        UncertifiedError: the interval does not prove the timetable.

    Example:
        >>> earliest_deadline([0, 1, 2], [4, 3, 6], [2, 1.5, 1]).finish_s
        array([3.5, 2.5, 4.5])
    """
    release_s, deadline_s, band_s = checked(release_s, deadline_s, band_s)
    turns, finish_s = _turns(release_s, deadline_s, band_s)
    lateness_s = float((finish_s - deadline_s).max(initial=-np.inf))
    excess_s, interval_s = worst_interval(release_s, deadline_s, band_s)
    inside = (release_s >= interval_s[0]) & (deadline_s <= interval_s[1])
    scale_s = float(max(finish_s.max(initial=0.0) - release_s.min(initial=0.0), 1e-300))
    gap_s = 0.0 if lateness_s == excess_s else abs(lateness_s - excess_s)
    if not gap_s <= TOLERANCE * scale_s:
        raise UncertifiedError(
            f"earliest deadline first is {lateness_s} s late, and its interval proves {excess_s} s"
        )
    members = np.flatnonzero(inside)
    return Timetable(finish_s, tuple(turns), lateness_s, interval_s, members, gap_s / scale_s)


def checked(*columns: Array) -> list[Array]:
    """Release, deadline and need as floats [K].

    Raises:
        ValueError: what they cannot be.
    """
    release_s, deadline_s, band_s = (np.asarray(column, dtype=float) for column in columns)
    if not release_s.shape == deadline_s.shape == band_s.shape or release_s.ndim != 1:
        raise ValueError("release_s, deadline_s and band_s are three arrays of one length")
    sound = np.isfinite(release_s) & ~np.isnan(deadline_s) & (band_s >= 0.0) & np.isfinite(band_s)
    if not sound.all():
        k = int(np.argmin(sound))
        given = f"a = {release_s[k]}, d = {deadline_s[k]}, c = {band_s[k]}"
        raise ValueError(f"upload {k} has {given}; a is finite, d a number, c finite and >= 0")
    return [release_s, deadline_s, band_s]


def worst_interval(
    release_s: Array, deadline_s: Array, band_s: Array
) -> tuple[float, tuple[float, float]]:
    """(excess in s, (s, e)) of the interval that is asked for most beyond its length.

    The excess is -inf where no deadline is finite.
    """
    order = np.argsort(deadline_s, kind="stable")
    due_s = deadline_s[order]
    worst, interval = -np.inf, (0.0, np.inf)
    for start_s in np.unique(release_s):
        needed_s = np.cumsum(np.where(release_s[order] >= start_s, band_s[order], 0.0))
        counts = np.isfinite(due_s) & (release_s[order] >= start_s)
        excess_s = np.where(counts, start_s + needed_s - due_s, -np.inf)
        at = int(np.argmax(excess_s))
        if excess_s[at] > worst:
            worst, interval = float(excess_s[at]), (float(start_s), float(due_s[at]))
    return worst, interval


def least_common_deadline(release_s: Array, band_s: Array) -> float:
    """Least T by which all uploads can end: the largest s + sum of c_k over {a_k >= s}, s.

    Shares b_k that stay the same for a whole round need a longer one, that with
    sum_k c_k / (T - a_k) = 1 (Liu's form), unless all start together.
    """
    order = np.argsort(release_s)[::-1]
    starts_s, needed_s = np.asarray(release_s, float)[order], np.asarray(band_s, float)[order]
    return float((starts_s + np.cumsum(needed_s)).max())


def _turns(
    release_s: Array, deadline_s: Array, band_s: Array
) -> tuple[list[tuple[int, float, float]], Array]:
    """(turns, finish times [K]); ties go to who came first, then by number."""
    left_s, finish_s = band_s.tolist(), np.zeros(len(band_s))
    coming = sorted(range(len(left_s)), key=lambda k: (release_s[k], k), reverse=True)
    waiting: list[tuple[float, float, int]] = []
    turns: list[tuple[int, float, float]] = []
    now_s = -np.inf
    while coming or waiting:
        if not waiting:
            now_s = max(now_s, float(release_s[coming[-1]]))
        while coming and release_s[coming[-1]] <= now_s:
            k = coming.pop()
            heapq.heappush(waiting, (float(deadline_s[k]), float(release_s[k]), k))
        k = waiting[0][2]
        next_s = float(release_s[coming[-1]]) if coming else np.inf
        end_s = min(now_s + left_s[k], next_s)
        done = now_s + left_s[k] <= next_s
        if turns and turns[-1][0] == k and turns[-1][2] == now_s:
            turns[-1] = (k, turns[-1][1], end_s)
        elif end_s > now_s:
            turns.append((k, now_s, end_s))
        left_s[k] = 0.0 if done else left_s[k] - (end_s - now_s)
        now_s = end_s
        if done:
            heapq.heappop(waiting)
            finish_s[k] = now_s
    return turns, finish_s
