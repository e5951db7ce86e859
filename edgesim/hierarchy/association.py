"""Which edge a device belongs to.

The rules take what each device has at each edge as arrays [E, K] and give the edge of each device,
int [K]; ties go to the edge with the smaller number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from fl.contracts import Array

Cost = Callable[[int, tuple[int, ...]], float]  # (edge, its devices in order) -> cost; inf: cannot
LEAST_GAIN = 1e-9  # relative: a move pays that lowers the total cost by more
MOST_MOVES = 100_000  # far above what a local search takes


def nearest(distance_m: Array) -> Array:
    """The edge at the least distance."""
    return np.argmin(distance_m, axis=0)


def strongest(gain: Array) -> Array:
    """The edge with the largest channel gain, path loss x shadowing."""
    return np.argmax(gain, axis=0)


def balanced(gain: Array) -> Array:
    """The strongest edge with room, where an edge has room for the K-th part of the devices.

    Devices choose in the order of their regret, the ratio of their two largest gains: first those
    for whom the second edge is much worse. No edge gets more than ceil(K / E) devices.
    """
    edges, devices = gain.shape
    room = np.full(edges, math.ceil(devices / edges))
    # log 0 is -inf; whom no edge reaches has no regret, and whom one alone reaches the largest
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.sort(np.log(gain), axis=0)
        regret = level[-1] - level[-2] if edges > 1 else np.zeros(devices)
    regret = np.nan_to_num(regret, nan=0.0, posinf=np.inf)
    chosen = np.zeros(devices, dtype=int)
    for k in np.argsort(-regret, kind="stable"):
        open_to = np.flatnonzero(room)
        chosen[k] = open_to[np.argmax(gain[open_to, k])]
        room[chosen[k]] -= 1
    return chosen


def by_price(cost: Cost, start: Array, edges: int) -> Array:
    """Single moves and swaps while the total cost falls: HFEL, Luo et al., IEEE TWC 2020.

    Each step takes the first neighbour, in a fixed order, that lowers the sum over edges of their
    costs. There are finitely many associations and the sum falls strictly, so it ends where no
    neighbour lowers it.

    Args:
        cost: of an edge with its devices; inf where they do not fit.
        start: an association, int [K].
        edges: E.

    Raises:
        RuntimeError: the search takes more steps than it can.
    """
    known, at = cache(cost), np.array(start, dtype=int)
    for _ in range(MOST_MOVES):
        better = next(_improvements(known, at, edges), None)
        if better is None:
            return at
        at = better
    raise RuntimeError("the association does not settle: costs differ from call to call")


def _improvements(cost: Cost, at: Array, edges: int) -> Iterator[Array]:
    """The neighbours of an association with a lower total cost."""
    for near in _neighbours(at, edges):
        touched = np.unique(np.concatenate([at[near != at], near[near != at]])).tolist()
        before = math.fsum(cost(e, _members(at, e)) for e in touched)
        after = math.fsum(cost(e, _members(near, e)) for e in touched)
        least = LEAST_GAIN * abs(before) if math.isfinite(before) else 0.0
        if after < before - least:
            yield near


def _neighbours(at: Array, edges: int) -> Iterator[Array]:
    """All associations that differ by one move, then by one swap."""
    for k in range(len(at)):
        for e in range(edges):
            if e != at[k]:
                near = at.copy()
                near[k] = e
                yield near
    for k in range(len(at)):
        for other in range(k + 1, len(at)):
            if at[k] != at[other]:
                near = at.copy()
                near[k], near[other] = at[other], at[k]
                yield near


def _members(at: Array, e: int) -> tuple[int, ...]:
    return tuple(np.flatnonzero(at == e).tolist())
