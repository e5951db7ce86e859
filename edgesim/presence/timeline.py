"""On and off over time, of several members at once, made as far as it is asked for.

A timeline is a pure function of its streams: nothing of it is part of a checkpoint, and it may be
asked for any instant in any order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import numpy as np

from edgesim.errors import RunError
from fl.contracts import Array

MAX_EDGES = 50_000_000  # 400 MB
# (n, times of the edges n - 1 [members] or 0, s) -> times of the edges n [members], s
EdgesAfter = Callable[[int, Array], Array]


class TooManyEdgesError(RunError):
    """Devices come and go too often for the simulated time."""


class Timeline:
    """Who is on at an instant; an edge belongs to the state that it begins.

    Args:
        starts_on: states at time 0, bool [members].
        edges_after: makes the edge n of every member from the one before; inf: none is left.
    """

    def __init__(self, starts_on: Array, edges_after: EdgesAfter) -> None:
        self.starts_on = np.asarray(starts_on, dtype=bool)
        self._edges_after = edges_after
        self._rows: list[Array] = []  # edge n of every member
        self._rewind()

    def __len__(self) -> int:
        return len(self.starts_on)

    def at(self, time_s: float) -> Array:
        """States at an instant, bool [members]."""
        self._advance(time_s)
        return self._on.copy()

    def next_edges_s(self, time_s: float) -> Array:
        """The first edge of every member after an instant, s [members]; inf: none."""
        self._advance(time_s)
        return self._next.copy()

    def state_of(self, member: int, time_s: float) -> tuple[bool, float]:
        """(is it on at an instant, its next edge in s) of one member."""
        while self._row(max(len(self._rows) - 1, 0))[member] <= time_s:
            self._row(len(self._rows))
        passed = bisect_right(self._rows, time_s, key=lambda row: row[member])
        return bool(self.starts_on[member]) ^ (passed % 2 == 1), float(self._rows[passed][member])

    def sessions(self, members: Array, end_s: float) -> tuple[tuple[Array, Array, Array], Array]:
        """When members are on from 0 to an instant: all at once, edge by edge.

        Args:
            members: numbers [m].
            end_s: the instant, s.

        Returns:
            (places in ``members``, starts in s, ends in s) of the sessions, by number of the edge
            that begins them; and whether a member has two edges at once [m]: its sessions
            touch, and are not among them.
        """
        begin_s, is_on = np.zeros(len(members)), self.starts_on[members]
        touching, found = np.zeros(len(members), dtype=bool), []
        n = 0
        while (begin_s < end_s).any():
            edge_s = self._row(n)[members]
            touching |= (edge_s == begin_s) & (edge_s < end_s)
            which = np.flatnonzero(is_on & (begin_s < end_s))
            found.append((which, begin_s[which], np.minimum(edge_s[which], end_s)))
            begin_s, is_on, n = edge_s, ~is_on, n + 1
        empty = np.empty(0, dtype=int), np.empty(0), np.empty(0)
        place, start_s, stop_s = map(np.concatenate, zip(empty, *found, strict=True))
        alone = ~touching[place]
        return (place[alone], start_s[alone], stop_s[alone]), touching

    def _row(self, n: int) -> Array:
        while len(self._rows) <= n:
            if len(self._rows) * len(self) > MAX_EDGES:
                raise TooManyEdgesError(
                    f"devices come and go more than {MAX_EDGES:g} times in the simulated time; "
                    "give presence longer times"
                )
            before = self._rows[-1] if self._rows else np.zeros(len(self))
            self._rows.append(self._edges_after(len(self._rows), before))
        return self._rows[n]

    def _rewind(self) -> None:
        self._now_s = 0.0
        self._passed = np.zeros(len(self), dtype=int)  # edges up to now
        self._on = self.starts_on.copy()
        self._next = self._row(0).copy()

    def _advance(self, time_s: float) -> None:
        if time_s < self._now_s:
            self._rewind()
        self._now_s = time_s
        while (due := np.flatnonzero(self._next <= time_s)).size:
            self._passed[due] += 1
            self._on[due] ^= True
            for n in np.unique(self._passed[due]).tolist():
                members = due[self._passed[due] == n]
                self._next[members] = self._row(n)[members]
