"""One row per fact: spans, devices in a round, rounds. Append-only and typed; everything reported is read from here.

Within a round, spans are ordered by (device, start), so that a table's bytes do not depend on how ties were scheduled.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgesim.contracts import Outcome, Plan, Scores
from edgesim.runfolder import write_atomic
from edgesim.span import Span
from edgesim.totals import device_row, round_row

if TYPE_CHECKING:
    import pandas
    import simpy

SPANS = {
    "round": int,
    "device": int,
    "phase": str,
    "start_s": float,
    "end_s": float,
    "bits": float,
    "cycles": float,
    "energy_j": float,
}
DEVICE_ROUNDS = {
    "round": int,
    "device": int,
    "status": str,  # arrived | late | failed | infeasible
    "share": float,
    "rho": float,
    "rate_bps": float,
    "download_s": float,
    "compute_s": float,
    "upload_s": float,
    "finish_s": float,
    "bits_up": float,
    "bits_down": float,
    "flops": float,
    "cycles": float,
    "energy_j": float,
}
ROUNDS = {
    "round": int,
    "time_s": float,
    "latency_s": float,
    "selected": int,
    "arrived": int,
    "late": int,
    "failed": int,
    "infeasible": int,
    "loss": float,
    "accuracy": float,
    "accuracy_std": float,
    "rho_mean": float,
    "rho_max": float,
    "bits_up": float,
    "bits_down": float,
    "flops": float,
    "cycles": float,
    "energy_j": float,
    "solver_residual": float,
}
PLANS = {"round": int, "budget_s": float, "stretched": int}  # kept in the checkpoint, not among a run's tables
SCHEMAS = {"rounds": ROUNDS, "device_rounds": DEVICE_ROUNDS, "spans": SPANS, "plans": PLANS}
Columns = dict[str, list]


class LogError(RuntimeError):
    """The log was used out of order."""


class EventLog:
    """The log of one run."""

    def __init__(self) -> None:
        self._env: simpy.Environment | None = None
        self.open: set[Span] = set()
        self.tables: dict[str, Columns] = {name: {column: [] for column in schema} for name, schema in SCHEMAS.items()}
        self._closed: list[Span] = []  # spans of the round in progress
        self._drained = dict.fromkeys(SCHEMAS, 0)
        self._frozen = False

    def attach(self, env: simpy.Environment) -> None:
        """Take the time from ``env`` from now on."""
        self._env = env

    def now(self) -> float:
        """Simulated time, s."""
        if self._env is None:
            raise LogError("the log has no clock yet; attach it to an environment first")
        return self._env.now

    def span(
        self,
        g: int,
        device: int,
        phase: str,
        energy: Callable[[Span], float] | None = None,
        cycles: float = 0.0,
        flops: float = 0.0,
        planned_s: float = 0.0,
    ) -> Span:
        """Context manager around what happens; recorded when it ends, also by interruption, with its real end.

        Args:
            energy: turns the closed span into joules, see `edgesim.energy.Ledger`.
            cycles, flops: of the whole stretch.     planned_s: how long all of them take, s.
        """
        return Span(self, g, device, phase, energy, cycles, flops, planned_s)

    def close(self, span: Span) -> None:
        """Take a span that has ended."""
        if self._frozen:
            raise LogError(f"the {span.phase} span of device {span.device} ended after the log was frozen")
        self.open.discard(span)
        self._closed.append(span)

    def since(self, g: int, device: int, phase: str, start_s: float, energy: Callable[[Span], float]) -> None:
        """Record a stretch that ends now and is known only afterwards, such as waiting for the others."""
        span = self.span(g, device, phase, energy)
        with span:
            span.start_s = start_s

    def busy_until(self) -> dict[int, float]:
        """When each device's last span of the round in progress ended, s."""
        ends: dict[int, float] = {}
        for span in self._closed:
            ends[span.device] = max(span.end_s, ends.get(span.device, -math.inf))
        return ends

    def close_round(
        self,
        g: int,
        start_s: float,
        end_s: float,
        plan: Plan,
        outcomes: Sequence[Outcome],
        scores: Scores | None = None,
        threshold_s: float = math.inf,
    ) -> None:
        """Write the rows of round g: its spans, one row per device asked, one for the round.

        ``threshold_s`` is T_th, s; a plan for a longer time counts as stretched.
        """
        if self.open:
            raise LogError(f"round {g} cannot be closed: {self._open_spans()}")
        by_device: dict[int, list[Span]] = {}
        for span in sorted(self._closed, key=lambda span: (span.device, span.start_s)):
            by_device.setdefault(span.device, []).append(span)
        spans = [span for device_spans in by_device.values() for span in device_spans]
        rows = [device_row(g, outcome, by_device.get(outcome.grant.device, ())) for outcome in outcomes]
        for span in spans:
            self._append("spans", {"round": span.g} | {name: getattr(span, name) for name in SPANS if name != "round"})
        for row in rows:
            self._append("device_rounds", row)
        self._append("rounds", round_row(g, start_s, end_s, plan, outcomes, rows, spans, scores))
        stretched = int(plan.budget_s > threshold_s)
        self._append("plans", {"round": g, "budget_s": plan.budget_s, "stretched": stretched})
        self._closed = []

    def freeze(self) -> None:
        """End the log; a span still open would make it depend on the garbage collector."""
        if self.open:
            raise LogError(f"the log cannot be frozen: {self._open_spans()}")
        self._frozen = True

    def drain(self) -> dict[str, Columns]:
        """The rows recorded since the last drain, per table column -> list."""
        fresh = {}
        for name, columns in self.tables.items():
            fresh[name] = {column: values[self._drained[name] :] for column, values in columns.items()}
            self._drained[name] = len(columns["round"])
        return fresh

    def restore(self, blocks: Mapping[str, Columns] | Iterable[Mapping[str, Columns]]) -> None:
        """Put drained rows back, one drain or several in order; they count as drained."""
        for block in [blocks] if isinstance(blocks, Mapping) else blocks:
            for name, columns in block.items():
                for column, kind in SCHEMAS[name].items():
                    self.tables[name][column].extend(kind(value) for value in columns[column])
                self._drained[name] = len(self.tables[name]["round"])

    def columns(self, table: str) -> Columns:
        """One table, column -> list: rounds, device_rounds or spans."""
        return self.tables[table]

    @property
    def stretched_rounds(self) -> int:
        """Rounds that had to be planned for more time than the threshold."""
        return sum(self.tables["plans"]["stretched"])

    @property
    def rounds(self) -> pandas.DataFrame:
        return self._frame("rounds")

    @property
    def device_rounds(self) -> pandas.DataFrame:
        return self._frame("device_rounds")

    @property
    def spans(self) -> pandas.DataFrame:
        return self._frame("spans")

    def write_tables(self, folder: Path) -> None:
        """Write rounds.csv, device_rounds.parquet and spans.parquet; the same rows always give the same bytes."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / "rounds.csv", csv_text(self.tables["rounds"]).encode())
        for name in ("device_rounds", "spans"):
            write_atomic(folder / f"{name}.parquet", parquet_bytes(self.tables[name], SCHEMAS[name]))

    def _frame(self, name: str) -> pandas.DataFrame:
        import pandas

        return pandas.DataFrame(
            {column: pandas.Series(self.tables[name][column], dtype=kind) for column, kind in SCHEMAS[name].items()}
        )

    def _append(self, table: str, row: Mapping[str, Any]) -> None:
        if self._frozen:
            raise LogError("the log is frozen; nothing can be added")
        for column, kind in SCHEMAS[table].items():
            self.tables[table][column].append(kind(row[column]))

    def _open_spans(self) -> str:
        return "still open: " + ", ".join(sorted(f"{span.phase} of device {span.device}" for span in self.open))


def read_tables(folder: Path) -> dict[str, pandas.DataFrame]:
    """What `EventLog.write_tables` wrote, as {"rounds", "device_rounds", "spans"} data frames."""
    import pandas

    rounds = pandas.read_csv(Path(folder) / "rounds.csv", dtype=ROUNDS)
    return {"rounds": rounds} | {
        name: pandas.read_parquet(Path(folder) / f"{name}.parquet") for name in ("device_rounds", "spans")
    }


def csv_text(columns: Columns) -> str:
    """Floats as their shortest exact form, nan as an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow("" if value != value else repr(value) for value in row)
    return text.getvalue()


def parquet_bytes(columns: Columns, schema: Mapping[str, type]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    types = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}
    fields = [pyarrow.field(column, types[kind]) for column, kind in schema.items()]
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns, schema=pyarrow.schema(fields)), sink, compression="zstd")
    return sink.getvalue()
