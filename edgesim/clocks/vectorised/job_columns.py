"""Jobs that overlap as columns: what each costs is known when it is handed out.

A job in flight has a slot in every column. Its spans are written when they have ended, its row when
it is used, or, unused, has ended. Sums are taken as by `edgesim.records.rows_from_spans`, so that
every table has the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from edgesim.engine.rounds import SLACK
from edgesim.engine.vectorised.device_spans import DeviceSpans, SpanColumns
from edgesim.engine.vectorised.round_tables import job_rows, per_device
from edgesim.network.grants import Grants
from fl.contracts import Array

AMOUNTS = ("device", "start_s", "end_s", "bits", "cycles", "energy_j")  # of a span
WRITTEN = {  # columns of device_rounds that are no floats
    **dict.fromkeys(("job", "device", "staleness", "version_in", "version_out"), int),
    "status": object,
}
FLOATS = (
    *("dispatched_s", "weight", "share", "rho", "rate_bps", "download_s", "compute_s", "upload_s"),
    *("finish_s", "bits_up", "bits_down", "flops", "cycles", "energy_j"),
)
KEPT = ("cpu_hz", "power_w", "due_s", "landed_s")  # due_s: end of a job at work; inf: of no other


class JobColumns:
    """The columns of the jobs in flight, and of those that wait to be used.

    Attributes:
        rows: column -> [slots]: what the table device_rounds has of each job, and `KEPT`.
    """

    def __init__(self) -> None:
        kinds = {name: WRITTEN.get(name, float) for name in (*WRITTEN, *FLOATS, *KEPT)}
        self.rows: dict[str, Array] = {name: np.zeros(0, kind) for name, kind in kinds.items()}
        self._capacity = 0
        self._free: list[int] = []
        self._spans: dict[str, Array] = {}  # column -> [phases, slots]
        self._unwritten = np.zeros((0, 0), dtype=bool)  # spans that have begun [phases, slots]
        self._phases: list[str] = []
        self._idle: list[SpanColumns] = []  # of devices that waited

    def add(
        self,
        played: DeviceSpans,
        grants: Grants,
        numbers: Array,
        version: int | Array,
        start_s: float | Array,
        late_s: float,
    ) -> Array:
        """Take jobs that are handed out; their slots [S].

        Args:
            played: their spans, to the end.
            grants: of their devices [S].
            numbers: of the jobs [S].
            version: of the model that they start from.
            start_s: simulated time of the dispatch, s.
            late_s: time after which an upload is late, s.
        """
        where = np.array(self._take_slots(len(grants), played))
        known = {"job": numbers, "version_in": version, "dispatched_s": start_s}
        known |= {"version_out": -1, "staleness": 0, "weight": 0.0, "landed_s": np.nan}
        known |= {"cpu_hz": grants.cpu_hz, "power_w": grants.power_w, "due_s": played.busy_until_s}
        for name, values in known.items():
            self.rows[name][where] = values
        self._set_rows(where, played, grants, start_s, late_s)
        self._unwritten[:, where] = True
        for phase, span in enumerate(played.spans):
            self._write(phase, where, span)
        return where

    def grants(self, where: Array) -> Grants:
        """The grants of the jobs in these slots."""
        names = ("device", "share", "rho", "cpu_hz", "power_w")
        return Grants(*(self.rows[name][where] for name in names))

    def waited(self, idle: SpanColumns) -> None:
        """Devices have waited until now."""
        self._idle.append(idle)

    def cut(self, where: Array, played: DeviceSpans, grants: Grants, status: str) -> None:
        """Jobs are interrupted now; ``played`` are their spans until then."""
        for phase, span in enumerate(played.spans):
            self._unwritten[phase, where] &= span.begun
            self._write(phase, where, span)
        start_s = self.rows["dispatched_s"][where]
        self._set_rows(where, played, grants, start_s, np.inf)
        self.rows["status"][where], self.rows["due_s"][where] = status, np.inf

    def use(self, where: Array, version: int, weight: Callable[[int], float]) -> None:
        """Write of the jobs of which the next version is made how stale they are, and their weight.

        Args:
            where: their slots.
            version: g, of the model that is changed.
            weight: s(tau) of the clock.
        """
        if not len(where):
            return
        staleness = version - self.rows["version_in"][where]
        taus, which = np.unique(staleness, return_inverse=True)
        weights = np.array([weight(tau) for tau in taus.tolist()])
        self.rows["staleness"][where], self.rows["weight"][where] = staleness, weights[which]
        self.rows["version_out"][where] = version + 1

    def forget_ended(self, now_s: float) -> None:
        """What has ended until now was written before."""
        if self._phases:
            self._unwritten &= self._spans["end_s"] > now_s

    def take_spans(self, g: int, now_s: float) -> dict[str, Array]:
        """Rows of spans that have ended since the last time, by device and start."""
        parts = [idle_columns(each) for each in self._idle]
        for phase, name in enumerate(self._phases):
            ended = self._unwritten[phase] & (self._spans["end_s"][phase] <= now_s)
            where = np.flatnonzero(ended)
            self._unwritten[phase, where] = False
            part = {column: values[phase, where] for column, values in self._spans.items()}
            part["phase"] = np.full(len(where), name, dtype=object)
            part["rank"] = np.full(len(where), 1 + phase)
            parts.append(part | {"job": self.rows["job"][where]})
        self._idle = []
        if not parts:
            return {name: np.zeros(0) for name in ("round", "phase", "job", *AMOUNTS)}
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        order = np.lexsort((columns.pop("rank"), columns["start_s"], columns["device"]))
        return {name: values[order] for name, values in columns.items()} | {
            "round": np.full(len(order), g)
        }

    def take_rows(self, where: Array) -> dict[str, Array]:
        """What device_rounds has of these jobs, by device and number; their slots are free."""
        names = (*WRITTEN, *FLOATS)
        if not len(where):
            return {name: np.zeros(0, WRITTEN.get(name, float)) for name in names}
        order = np.lexsort((self.rows["job"][where], self.rows["device"][where]))
        self._free += where.tolist()
        return {name: self.rows[name][where[order]] for name in names}

    def _set_rows(
        self,
        where: Array,
        played: DeviceSpans,
        grants: Grants,
        start_s: float | Array,
        late_s: float,
    ) -> None:
        for name, values in job_rows(played, grants, start_s, late_s).items():
            self.rows[name][where] = values
        self.rows["energy_j"][where] = per_device("energy_j", played.spans, len(grants))

    def _write(self, phase: int, where: Array, span: SpanColumns) -> None:
        for name in AMOUNTS:
            self._spans[name][phase, where] = getattr(span, name)

    def _take_slots(self, count: int, played: DeviceSpans) -> list[int]:
        if len(self._free) < count:
            self._grow(max(count, self._capacity), [span.phase for span in played.spans])
        taken = self._free[-count:]
        del self._free[-count:]
        return taken

    def _grow(self, more: int, phases: list[str]) -> None:
        self._phases, unused = phases, np.zeros((len(phases), more), dtype=bool)
        for name, old in self.rows.items():
            fresh: Array = np.full(more, np.inf if name == "due_s" else 0, dtype=old.dtype)
            self.rows[name] = np.concatenate([old, fresh])
        for name in AMOUNTS:
            fresh = np.empty((len(phases), more), int if name == "device" else float)
            old = self._spans.get(name, fresh[:, :0])
            self._spans[name] = np.concatenate([old, fresh], axis=1)
        old = self._unwritten if self._capacity else unused[:, :0]
        self._unwritten = np.concatenate([old, unused], axis=1)
        self._free += range(self._capacity + more - 1, self._capacity - 1, -1)
        self._capacity += more


def idle_columns(idle: SpanColumns) -> dict[str, Array]:
    """Rows of spans without a job."""
    size = len(idle.device)
    named = {name: np.broadcast_to(getattr(idle, name), size) for name in AMOUNTS}
    return named | {
        "phase": np.full(size, idle.phase, dtype=object),
        "rank": np.zeros(size, dtype=int),
        "job": np.full(size, -1),
    }


def late_after_s(threshold_s: float) -> float:
    """Time since its dispatch after which an upload is late, s."""
    return threshold_s * (1.0 + SLACK)


def with_rows(columns: dict[str, Array], more: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """What device_rounds has of some jobs with further rows, by device and number."""
    joined = {
        name: np.append(values, np.array([row[name] for row in more], dtype=values.dtype))
        for name, values in columns.items()
    }
    order = np.lexsort((joined["job"], joined["device"]))
    return {name: values[order] for name, values in joined.items()}
