"""The jobs of a run that only counts: which devices are at work until when, what waits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgesim.clocks.flights import DISCARDED, Desk, Flight
from edgesim.clocks.vectorised.job_columns import JobColumns
from edgesim.engine.vectorised.round_loop import SteppedEnvironment
from fl.contracts import Array, State


class JobsAtWork:
    """The jobs whose ends are to come; as much of device -> job as the rules of a clock read."""

    def __init__(self, columns: JobColumns) -> None:
        self._columns, self.count = columns, 0

    def __len__(self) -> int:
        return self.count

    @property
    def jobs(self) -> Array:
        """Their slots."""
        return np.flatnonzero(np.isfinite(self._columns.rows["due_s"]))


class CountingDesk(Desk):
    """The jobs of a run, whose ends are known; a job is called by its slot in the columns.

    Attributes:
        columns: of the jobs.
        bases: version -> state of the method from which jobs of that version started.
        is_free: [K], not at work.
        tick_at_s: instant that the clock has set itself, s; inf: none.
    """

    def __init__(self, env: SteppedEnvironment, devices: int) -> None:
        super().__init__(env, devices)
        self.clock, self.columns = env, JobColumns()
        self.out: Any = JobsAtWork(self.columns)
        self.held: list[Any] = []
        self.gone: list[Any] = []
        self.bases: dict[int, State] = {}
        self.most_bases = 64
        self.tick_at_s = math.inf
        self.is_free = np.ones(devices, dtype=bool)

    @property
    def ticked(self) -> bool:
        return self.env.now >= self.tick_at_s

    def devices_held(self) -> list[int]:
        held: list[int] = self.columns.rows["device"][self.held].tolist() if self.held else []
        return held

    def flights(self) -> list[Flight]:
        where = np.append(self.out.jobs, self.held).astype(int)
        if not len(where):
            return []
        where = where[np.argsort(self.columns.rows["job"][where])]
        names = ("job", "version_in", "dispatched_s", "landed_s")
        known = zip(*(self.columns.rows[name][where].tolist() for name in names), strict=True)
        return [
            Flight(number, None, grant, self.bases[version], version, start_s, landed_s=landed_s)
            for grant, (number, version, start_s, landed_s) in zip(
                self.columns.grants(where), known, strict=True
            )
        ]

    def remember(self, version: int, state: State) -> None:
        """Keep the state of a version, and forget those of versions of which no job is left."""
        if len(self.bases) >= self.most_bases:
            where = np.append(self.out.jobs, self.held).astype(int)
            left = set(self.columns.rows["version_in"][where].tolist()) if len(where) else set()
            self.bases = {g: base for g, base in self.bases.items() if g in left}
            self.most_bases = 2 * len(self.bases) + 64
        self.bases[version] = state

    def fly(self, where: Array) -> None:
        """Take jobs that are at work now."""
        self.out.count += len(where)
        self.is_free[self.columns.rows["device"][where]] = False

    def next_ends(self, count: float) -> Array:
        """So many of the jobs at work that end next, and all that end with the last of them."""
        due_s = self.columns.rows["due_s"]
        place = int(min(count, len(self.out))) - 1
        if place < 0:
            return np.zeros(0, dtype=int)
        last_s = due_s.min() if place == 0 else np.partition(due_s, place)[place]
        return self.in_order(np.flatnonzero(due_s <= last_s))

    def in_order(self, where: Array) -> Array:
        """Jobs by their ends, those of one instant by device."""
        rows = self.columns.rows
        return where[np.lexsort((rows["device"][where], rows["due_s"][where]))]

    def next_instants(self, quiet: float, max_staleness: int | None) -> Array:
        """Go on to the next ends, or to the tick, and take them in; the devices that are back.

        Args:
            quiet: how many jobs may end before anything else can happen.
            max_staleness: see `Desk.collect`.
        """
        where = self.next_ends(quiet + 1)
        due_s = self.columns.rows["due_s"][where]
        if (before := due_s < self.tick_at_s).any():
            where, now_s = where[before], float(due_s[before][-1])
        else:
            where, now_s = where[due_s <= self.tick_at_s], self.tick_at_s
        devices = self.land(where, max_staleness)
        self.clock.advance_to(now_s)
        return devices

    def land(self, where: Array, max_staleness: int | None) -> Array:
        """Take in jobs at their ends, given in the order of these; the devices that are back."""
        if not len(where):
            return where
        rows = self.columns.rows
        devices, due_s = rows["device"][where], rows["due_s"][where]
        self.is_free[devices], self.idle_since_s[devices] = True, due_s
        rows["landed_s"][where], rows["due_s"][where] = due_s, math.inf
        self.out.count -= len(where)
        self.held += self.fresh(where, max_staleness)
        return devices

    def fresh(self, arrived: Any, max_staleness: int | None) -> list[Any]:
        rows, where = self.columns.rows, np.asarray(arrived, dtype=int)
        if max_staleness is not None:
            staleness = self.version - rows["version_in"][where]
            late = staleness > max_staleness
            rows["status"][where[late]], rows["staleness"][where[late]] = DISCARDED, staleness[late]
            self.gone += where[late].tolist()
            where = where[~late]
        found: list[int] = where.tolist()
        return found
