"""One row per fact: spans, devices in a round, rounds, scores. Append-only and typed; all reports are read from here.

Within a round, spans are ordered by (device, start), so that a table's bytes do not depend on how ties were scheduled.
A table is kept as blocks of columns, one a round: lists, or arrays where there are many devices.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from edgesim.records.row_totals import (
    COUNTED,
    device_row,
    measure_columns,
    plan_row,
    round_row,
    score_columns,
    total,
)
from edgesim.records.span import Span
from edgesim.records.table_files import (
    SCHEMAS,
    Columns,
    frame,
    joined,
    read_tables,
    typed,
    write_tables,
)
from fl.contracts import Outcome, RoundPlan, Scores

if TYPE_CHECKING:
    import pandas
    import simpy

__all__ = ["SCHEMAS", "EventLog", "LogError", "read_tables"]


class LogError(RuntimeError):
    """The log was used out of order."""


class EventLog:
    """The log of one run."""

    def __init__(self) -> None:
        self._env: simpy.Environment | None = None
        self.open: set[Span] = set()
        self._blocks: dict[str, list[Columns]] = {name: [] for name in SCHEMAS}
        self._fresh: dict[str, list[Columns]] = {name: [] for name in SCHEMAS}  # not yet drained
        self._closed: list[Span] = []  # spans of the round in progress
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
            energy: turns the closed span into joules, see `edgesim.network.energy_ledger.Ledger`.
            cycles, flops: of the whole stretch.     planned_s: how long all of them take, s.
        """
        return Span(self, g, device, phase, energy, cycles, flops, planned_s)

    def close(self, span: Span) -> None:
        """Take a span that has ended."""
        if self._frozen:
            raise LogError(
                f"the {span.phase} span of device {span.device} ended after the log was frozen"
            )
        self.open.discard(span)
        self._closed.append(span)

    def since(
        self, g: int, device: int, phase: str, start_s: float, energy: Callable[[Span], float]
    ) -> None:
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
        plan: RoundPlan,
        outcomes: Sequence[Outcome],
        scores: Scores | None = None,
        threshold_s: float = math.inf,
    ) -> None:
        """Write the rows of round g: its spans, one row per device asked, one for the round, its scores.

        ``threshold_s`` is T_th, s; a plan for a longer time counts as stretched.
        """
        if self.open:
            raise LogError(f"round {g} cannot be closed: {self._open_spans()}")
        by_device: dict[int, list[Span]] = {}
        for span in sorted(self._closed, key=lambda span: (span.device, span.start_s)):
            by_device.setdefault(span.device, []).append(span)
        spans = [span for device_spans in by_device.values() for span in device_spans]
        told = {name: "g" if name == "round" else name for name in SCHEMAS["spans"]}
        rows = [
            device_row(g, outcome, by_device.get(outcome.grant.device, ())) for outcome in outcomes
        ]
        totals = {name: total(row[name] for row in rows) for name in COUNTED}
        totals["energy_j"] = total(span.energy_j for span in spans)
        status = Counter(outcome.status for outcome in outcomes)
        received, rho = (
            sum(outcome.received for outcome in outcomes),
            [grant.rho for grant in plan.grants],
        )
        block = {
            "spans": {name: [getattr(span, own) for span in spans] for name, own in told.items()},
            "device_rounds": {
                name: [row[name] for row in rows] for name in SCHEMAS["device_rounds"]
            },
            "rounds": round_row(g, start_s, end_s, plan, status, received, rho, totals, scores),
            "plans": plan_row(g, plan, threshold_s),
        }
        if scores is not None:
            block |= {"scores": score_columns(g, scores), "measures": measure_columns(g, scores)}
        self.add(block)
        self._closed = []

    def add(self, block: Mapping[str, Columns]) -> None:
        """Write finished rows, table by table: column -> list or array."""
        if self._frozen:
            raise LogError("the log is frozen; nothing can be added")
        for name, columns in block.items():
            rows = {column: typed(columns[column], kind) for column, kind in SCHEMAS[name].items()}
            if len(rows["round"]):
                self._blocks[name].append(rows)
                self._fresh[name].append(rows)

    def freeze(self) -> None:
        """End the log; a span still open would make it depend on the garbage collector."""
        if self.open:
            raise LogError(f"the log cannot be frozen: {self._open_spans()}")
        self._frozen = True

    def drain(self) -> dict[str, Columns]:
        """The rows recorded since the last drain, per table column -> list or array."""
        fresh = {name: joined(blocks, SCHEMAS[name]) for name, blocks in self._fresh.items()}
        self._fresh = {name: [] for name in SCHEMAS}
        return fresh

    def restore(self, blocks: Mapping[str, Columns] | Iterable[Mapping[str, Columns]]) -> None:
        """Put drained rows back, one drain or several in order; they count as drained."""
        for block in [blocks] if isinstance(blocks, Mapping) else blocks:
            self.add(block)
        self._fresh = {name: [] for name in SCHEMAS}

    def columns(self, table: str) -> Columns:
        """One table, column -> list or array: rounds, device_rounds, spans, scores, measures or plans."""
        blocks = self._blocks[table]
        if len(blocks) != 1:
            blocks[:] = [joined(blocks, SCHEMAS[table])]
        return blocks[0]

    @property
    def tables(self) -> dict[str, Columns]:
        """Every table by name."""
        return {name: self.columns(name) for name in SCHEMAS}

    @property
    def stretched_rounds(self) -> int:
        """Rounds that had to be planned for more time than the threshold."""
        return int(sum(self.columns("plans")["stretched"]))

    @property
    def rounds(self) -> pandas.DataFrame:
        return self._frame("rounds")

    @property
    def device_rounds(self) -> pandas.DataFrame:
        return self._frame("device_rounds")

    @property
    def spans(self) -> pandas.DataFrame:
        return self._frame("spans")

    @property
    def scores(self) -> pandas.DataFrame:
        return self._frame("scores")

    @property
    def measures(self) -> pandas.DataFrame:
        return self._frame("measures")

    def write_tables(self, folder: Path) -> None:
        """Write the tables of a run's folder; the same rows always give the same bytes."""
        write_tables(self.tables, folder)

    def _frame(self, name: str) -> pandas.DataFrame:
        return frame(self.columns(name), SCHEMAS[name])

    def _open_spans(self) -> str:
        return "still open: " + ", ".join(
            sorted(f"{span.phase} of device {span.device}" for span in self.open)
        )
