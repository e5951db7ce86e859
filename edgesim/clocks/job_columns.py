"""Jobs that overlap as columns: what each costs is known when it is handed out.

A job in flight has a slot in every column. Its spans are written when they end, its row when it is
used, or, unused, has ended. Sums are taken as by `edgesim.records.rows_from_spans`, so that every
table has the same bytes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import numpy as np

from edgesim.engine.rounds import SLACK
from edgesim.engine.vectorised.device_spans import DeviceSpans, SpanColumns
from edgesim.engine.vectorised.round_tables import STATUS, column_parts, exact_sum, per_device
from edgesim.network.grants import Grants
from edgesim.records.rows_from_spans import RADIO
from fl.contracts import Array

AMOUNTS = ("device", "start_s", "end_s", "bits", "cycles", "energy_j")  # of a span
ROW = {"job": int, "device": int, "status": object, "version_in": int}
FLOATS = (
    *("dispatched_s", "share", "rho", "rate_bps", "download_s", "compute_s", "upload_s"),
    *("finish_s", "bits_up", "bits_down", "flops", "cycles", "energy_j"),
)


class JobColumns:
    """The columns of the jobs in flight, and of those that wait to be used."""

    def __init__(self) -> None:
        self._capacity = 0
        self._free: list[int] = []
        self._rows: dict[str, Array] = {}  # column -> [slots]
        self._spans: dict[str, Array] = {}  # column -> [phases, slots]
        self._phases: list[str] = []
        self._stages: list[tuple[float, int, int]] = []  # heap of (end, slot, phase)
        self._ended: dict[int, list[int]] = {}  # phase -> slots of spans to write
        self._idle: list[SpanColumns] = []  # of devices that waited

    def add(
        self,
        played: DeviceSpans,
        grants: Grants,
        numbers: Array,
        version: int | Array,
        start_s: float | Array,
        late_s: float,
    ) -> list[int]:
        """Take jobs that are handed out; their slots.

        Args:
            played: their spans, to the end.
            grants: of their devices [S].
            numbers: of the jobs [S].
            version: of the model that they start from.
            start_s: simulated time of the dispatch, s.
            late_s: time after which an upload is late, s.
        """
        slots = self._take_slots(len(grants), played)
        where = np.array(slots)
        rows = job_rows(played, grants, start_s, late_s)
        for name, values in rows.items():
            self._rows[name][where] = values
        self._rows["job"][where], self._rows["version_in"][where] = numbers, version
        self._rows["dispatched_s"][where] = start_s
        for phase, span in enumerate(played.spans):
            self._write(phase, where, span)
            if 0 < phase < len(played.spans) - 1:
                for end_s, slot in zip(span.end_s.tolist(), slots, strict=True):
                    heapq.heappush(self._stages, (end_s, slot, phase))
        self._end(0, slots)  # an ideal downlink takes no time
        return slots

    def land(self, slots: list[int]) -> None:
        """The uploads of these jobs have ended."""
        self._end(len(self._phases) - 1, slots)

    def waited(self, idle: SpanColumns) -> None:
        """Devices have waited until now."""
        self._idle.append(idle)

    def cut(self, slots: list[int], played: DeviceSpans, grants: Grants, now_s: float) -> None:
        """Jobs are interrupted now; ``played`` are their spans until then."""
        self._end_stages(now_s)
        self._stages = []
        where = np.array(slots)
        for phase, span in enumerate(played.spans):
            cut = span.begun & (self._spans["end_s"][phase, where] > now_s)
            self._write(phase, where, span)
            self._end(phase, where[cut].tolist())
        start_s = self._rows["dispatched_s"][where]
        for name, values in job_rows(played, grants, start_s, np.inf).items():
            self._rows[name][where] = values

    def forget_ended(self, now_s: float) -> None:
        """What has ended until now was written before."""
        self._end_stages(now_s)
        self._ended = {}

    def take_spans(self, g: int, now_s: float) -> dict[str, Array]:
        """Rows of spans that have ended since the last time, by device and start."""
        self._end_stages(now_s)
        parts = [idle_columns(each) for each in self._idle]
        for phase, slots in self._ended.items():
            where = np.array(slots, dtype=int)
            part = {name: values[phase, where] for name, values in self._spans.items()}
            part["phase"] = np.full(len(where), self._phases[phase], dtype=object)
            parts.append(part | {"job": self._rows["job"][where]})
        self._ended, self._idle = {}, []
        if not parts:
            return {name: np.zeros(0) for name in ("round", "phase", "job", *AMOUNTS)}
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        rank = {"idle": 0} | {phase: i for i, phase in enumerate(self._phases, start=1)}
        ranks = np.array([rank[phase] for phase in columns["phase"]])
        order = np.lexsort((ranks, columns["start_s"], columns["device"]))
        return {name: values[order] for name, values in columns.items()} | {
            "round": np.full(len(order), g)
        }

    def take_rows(self, slots: Sequence[int]) -> dict[str, Array]:
        """What device_rounds has of these jobs, by device and number; their slots are free."""
        where = np.array(slots, dtype=int)
        if not len(where):
            return {name: np.zeros(0, ROW.get(name, float)) for name in (*ROW, *FLOATS)}
        order = np.lexsort((self._rows["job"][where], self._rows["device"][where]))
        self._free += where.tolist()
        return {name: values[where[order]] for name, values in self._rows.items()}

    def _end_stages(self, now_s: float) -> None:
        while self._stages and self._stages[0][0] <= now_s:
            _, slot, phase = heapq.heappop(self._stages)
            self._end(phase, (slot,))

    def _end(self, phase: int, slots: Iterable[int]) -> None:
        self._ended.setdefault(phase, []).extend(slots)

    def _write(self, phase: int, where: Array, span: SpanColumns) -> None:
        for name in AMOUNTS:
            self._spans[name][phase, where] = getattr(span, name)

    def _take_slots(self, count: int, played: DeviceSpans) -> list[int]:
        if len(self._free) < count:
            self._grow(max(count, self._capacity), played)
        taken = self._free[-count:]
        del self._free[-count:]
        return taken

    def _grow(self, more: int, played: DeviceSpans) -> None:
        self._phases = [span.phase for span in played.spans]
        for name in (*ROW, *FLOATS):
            fresh: Array = np.empty(more, ROW.get(name, float))
            self._rows[name] = np.concatenate([self._rows.get(name, fresh[:0]), fresh])
        for name in AMOUNTS:
            fresh = np.empty((len(self._phases), more), int if name == "device" else float)
            old = self._spans.get(name, fresh[:, :0])
            self._spans[name] = np.concatenate([old, fresh], axis=1)
        self._free += range(self._capacity + more - 1, self._capacity - 1, -1)
        self._capacity += more


def idle_columns(idle: SpanColumns) -> dict[str, Array]:
    """Rows of spans without a job."""
    size = len(idle.device)
    named = {name: np.broadcast_to(getattr(idle, name), size) for name in AMOUNTS}
    return named | {"phase": np.full(size, idle.phase, dtype=object), "job": np.full(size, -1)}


def job_rows(
    played: DeviceSpans, grants: Grants, start_s: float | Array, late_s: float
) -> dict[str, Array]:
    """Columns of device_rounds [S]: `edgesim.records.rows_from_spans.device_row`."""
    size, spans = len(grants), played.spans
    seconds = {name: np.zeros(size) for name in ("download_s", "compute_s", "upload_s")}
    for span in spans:
        seconds[RADIO.get(span.phase, "compute_s")] += np.where(span.begun, span.seconds, 0.0)
    finish_s = np.where(played.arrived, played.busy_until_s - start_s, np.nan)
    bits = {
        phase: per_device("bits", [span for span in spans if span.phase == phase], size)
        for phase in RADIO
    }
    upload_s = seconds["upload_s"]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate_bps = np.where(upload_s > 0.0, bits["upload"] / upload_s, np.nan)
    amounts = {name: per_device(name, spans, size) for name in ("flops", "cycles")}
    return {
        "device": grants.device,
        "status": STATUS[np.where(finish_s > late_s, 1, 0)],
        "share": grants.share,
        "rho": grants.rho,
        "rate_bps": rate_bps,
        **seconds,
        "finish_s": finish_s,
        "bits_up": bits["upload"],
        "bits_down": bits["download"],
        **amounts,
        "energy_j": exact_sum(column_parts("energy_j", spans, size), size),
    }


def late_after_s(threshold_s: float) -> float:
    """Time since its dispatch after which an upload is late, s."""
    return threshold_s * (1.0 + SLACK)
