"""The event log: spans, device rounds, rounds and scores, one row per fact.

The log is append-only and typed; every report is read from it. Within a round, spans are ordered by
(device, start), so that a table's bytes do not depend on how simultaneous events were scheduled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from edgesim.records.rows_from_spans import (
    JobRecord,
    columns_of_jobs,
    device_row,
    job_columns,
    round_block,
)
from edgesim.records.run_tables.growing_tables import GrowingTables, LogError
from edgesim.records.run_tables.table_columns import Columns, FurtherColumns
from edgesim.records.span import Span
from fl.contracts import Outcome, RoundPlan, Scores

if TYPE_CHECKING:
    import simpy


class EventLog(GrowingTables):
    """The log of one run.

    Args:
        more: columns of the tables, as of `GrowingTables`; with `JOB_COLUMNS` jobs are numbered.
    """

    def __init__(self, *more: FurtherColumns) -> None:
        super().__init__(*more)
        self._env: simpy.Environment | None = None
        self.open: set[Span] = set()
        self.numbers_jobs = "job" in self.schemas["spans"]
        self._closed: list[Span] = []  # spans of the round in progress
        self._job_of: dict[int, int] = {}  # device -> its job
        self._of_job: dict[int, list[Span]] = {}  # closed spans of jobs that are not yet rows

    def attach(self, env: simpy.Environment) -> None:
        """Take the time from ``env`` from now on."""
        self._env = env

    def now(self) -> float:
        """Simulated time, s."""
        if self._env is None:
            raise LogError("the log has no clock yet; attach it to an environment first")
        return self._env.now

    def begin_job(self, device: int, number: int) -> None:
        """Count the spans of a device, from now on, to a job."""
        if self.numbers_jobs:
            self._job_of[device] = number

    @contextmanager
    def span(
        self,
        g: int,
        device: int,
        phase: str,
        energy: Callable[[Span], float] | None = None,
        cycles: float = 0.0,
        flops: float = 0.0,
        planned_s: float = 0.0,
    ) -> Iterator[Span]:
        """Context manager around an activity; recorded when it ends, also by interruption.

        Args:
            g: number of the round.
            device: k.
            phase: name of the activity.
            energy: closed span -> joules, by `edgesim.network.span_energy.Ledger`.
            cycles: CPU cycles of the whole activity.
            flops: floating point operations of the whole activity.
            planned_s: how long the whole activity takes, s.
        """
        span = Span(g, device, phase, cycles, flops, planned_s, start_s=self.now())
        span.job = self._job_of.get(device, -1)
        self.open.add(span)
        interrupted = True
        try:
            yield span
            interrupted = False
        finally:
            span.end_s = self.now()
            if interrupted:
                span.charge_done_part()
            self.close(span, energy)

    def close(self, span: Span, energy: Callable[[Span], float] | None) -> None:
        """Take a span that has ended, and charge its joules."""
        if self._frozen:
            raise LogError(
                f"the {span.phase} span of device {span.device} ended after the log was frozen"
            )
        self.open.discard(span)
        self._closed.append(span)
        if span.job >= 0:
            self._of_job.setdefault(span.job, []).append(span)
        if energy is not None:
            span.energy_j = energy(span)

    def add_waiting(
        self, g: int, k: int, phase: str, start_s: float, end_s: float, energy_j: float
    ) -> None:
        """Record that device k has waited, or was off, for a while that is over."""
        self.close(Span(g, k, phase, start_s=start_s, end_s=end_s), lambda span: energy_j)

    def add_span(
        self,
        g: int,
        k: int,
        phase: str,
        start_s: float,
        end_s: float,
        energy: Callable[[Span], float] | None = None,
    ) -> None:
        """Record what device k was doing, such as waiting, where that is known only afterwards."""
        self.close(Span(g, k, phase, start_s=start_s, end_s=end_s), energy)

    def close_round(
        self,
        g: int,
        start_s: float,
        end_s: float,
        plan: RoundPlan,
        outcomes: Sequence[Outcome],
        scores: Scores | None = None,
        threshold_s: float = math.inf,
        jobs: Sequence[JobRecord] = (),
        waiting: Mapping[str, int] | None = None,
    ) -> None:
        """Write the rows of round g: its spans, device rounds, the round itself and its scores.

        Where jobs are numbered, a span belongs to the round in which it ends, and a job to the one
        in which it is used, or, unused, ends.

        Args:
            g: number of the round.
            start_s: simulated time of its start, s.
            end_s: simulated time of its end, s.
            plan: who was granted what.
            outcomes: how the round ended for each device that was asked, by device.
            scores: of the evaluation after the round, if there was one.
            threshold_s: T_th, s; a plan for a longer time counts as stretched.
            jobs: where jobs are numbered, what else is known of those of the outcomes.
            waiting: the columns dispatched, held and in_flight.

        Raises:
            LogError: a span is still open, and jobs do not overlap.
        """
        if self.open and not self.numbers_jobs:
            raise LogError(f"round {g} cannot be closed: {self._open_spans()}")
        by_device: dict[int, list[Span]] = {}
        for span in sorted(self._closed, key=lambda span: (span.device, span.start_s)):
            by_device.setdefault(span.device, []).append(span)
        spans = [span for device_spans in by_device.values() for span in device_spans]
        if self.numbers_jobs:
            for span in spans:
                span.g = g
            rows = [
                device_row(g, outcome, self._of_job.pop(job.job, ())) | job_columns(job, outcome)
                for outcome, job in zip(outcomes, jobs, strict=True)
            ]
        else:
            rows = [
                device_row(g, outcome, by_device.get(outcome.grant.device, ()))
                for outcome in outcomes
            ]
        rho = [grant.rho for grant in plan.grants]
        if self.numbers_jobs:
            rho = [each.grant.rho for each in outcomes if each.status != "infeasible"]
        columns: Columns = {
            name: [row[name] for row in rows] for name in self.schemas["device_rounds"]
        }
        received = sum(outcome.received for outcome in outcomes)
        about = received, rho, scores, threshold_s
        block = round_block(g, start_s, end_s, plan, self._columns_of(spans), columns, *about)
        if self.numbers_jobs:
            block["rounds"] |= columns_of_jobs(columns, waiting or {})
        self.add(block)
        self._closed = []

    def freeze(self) -> None:
        """End the log.

        Raises:
            LogError: a span is still open.
        """
        # A generator that is never resumed closes its span when it is collected: at any time.
        if self.open:
            raise LogError(f"the log cannot be frozen: {self._open_spans()}")
        self._frozen = True

    def waited_s(self, job: int) -> float:
        """How long the uploads of a job that is not yet a row had no band, s."""
        return sum(span.waited_s for span in self._of_job.get(job, ()))

    def forget_closed_spans(self) -> None:
        """Leave out of the next round's rows what a checkpoint's log has already."""
        self._closed = []

    def take_closed_spans(self) -> Columns:
        """The spans that ended after the last round was closed, which are then forgotten."""
        closed, self._closed = self._closed, []
        return self._columns_of(closed)

    def _columns_of(self, spans: Sequence[Span]) -> Columns:
        """Rows of the table spans."""
        names = {name: "g" if name == "round" else name for name in self.schemas["spans"]}
        return {column: [getattr(span, name) for span in spans] for column, name in names.items()}

    def _open_spans(self) -> str:
        return "still open: " + ", ".join(
            sorted(f"{span.phase} of device {span.device}" for span in self.open)
        )
