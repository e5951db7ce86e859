"""One device in one round, `take_part`, as a SimPy process.

The server's loop around it is `edgesim.clocks.server_loop.serve`. No formula for latency stands
here: time passes where devices compute and links carry bits. A device is late when its upload ends
after T_th (1 + 1e-6); the slack only covers rounding.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import simpy

from edgesim.engine.interruptions import CUT, cut_off, stay_away
from edgesim.engine.progress_limits import check_restarts
from edgesim.network.cell import Cell
from edgesim.presence.absences import Away
from edgesim.records.event_log import EventLog
from edgesim.records.span import Span
from fl.contracts import Grant, Job, Outcome, Update

SLACK = 1e-6  # of the threshold, for rounding
# why a device was interrupted, beside `edgesim.engine.interruptions`
LATE, CANCELLED, UNFINISHED = "late", "cancelled", "unfinished"
SimPyProcess = Generator[simpy.Event, Any, None]


def take_part(
    env: simpy.Environment,
    cell: Cell,
    update: Update,
    grant: Grant,
    log: EventLog,
    cut_s: float = math.inf,
) -> Generator[simpy.Event, Any, Outcome]:
    """One device in one round; its value is the Outcome.

    On a channel that does not change within the round it takes the time of Liu, eq. (28). If it
    still computes at ``cut_s``, s, it sends the whole steps that it has made; without one it is
    late.
    """
    job, start_s, done, restarts = update.job, env.now, Progress(), 0
    away: Away | None = None
    if math.isfinite(cut_s) and (process := env.active_process):
        env.process(cut_off(env, process, cut_s, lambda: done.computed))
    while True:
        try:
            if away is not None:
                yield from stay_away(env, cell, job, away, log)
            with cell.running.at_work(grant.device):
                yield from work(cell, update, grant, log, done)
            break
        except simpy.Interrupt as stop:
            if isinstance(stop.cause, Away):
                away = stop.cause
                restarts += not away.keeps_work
                check_restarts(restarts, job.device, env.now)
                if not away.keeps_work:
                    done = Progress(trained=done.trained, spans=done.spans)
                continue
            if not done.trained:
                update.abort()
            why = LATE if stop.cause == CUT else str(stop.cause)
            ended = why, False, done.trained, math.nan
            return Outcome(grant, update, *ended, energy_j=done.energy_j)
        finally:
            cell.uplink.release(grant.device)
    finish_s = env.now - start_s
    status = LATE if finish_s > cell.budget_s * (1.0 + SLACK) else "arrived"
    ended = status, True, True, finish_s
    return Outcome(grant, update, *ended, energy_j=done.energy_j)


@dataclass
class Progress:
    """What a device has done of a job: where it goes on after an absence.

    Args:
        has_model: the download is over.
        bits_down: received, bit.
        stages: finished stages of the computation.
        part: finished share of the stage behind them.
        bits_up: sent, bit.
        computed: the computation is over.
        trained: it was over at some time, also before the device began again.
        spans: what it was doing, also before it began again.
    """

    has_model: bool = False
    bits_down: float = 0.0
    stages: int = 0
    part: float = 0.0
    bits_up: float = 0.0
    computed: bool = False
    trained: bool = False
    spans: list[Span] = field(default_factory=list)

    @property
    def energy_j(self) -> float:
        """What it has used, J."""
        return math.fsum(span.energy_j for span in self.spans)


def work(cell: Cell, update: Update, grant: Grant, log: EventLog, done: Progress) -> SimPyProcess:
    """What is left of a job: download, computation, upload."""
    if not done.has_model:
        yield from download(cell, update.job, grant, log, done)
        done.has_model = True
    try:
        yield from compute(cell, update, grant, log, done)
    except simpy.Interrupt as stop:
        if stop.cause != CUT or not cut_short(update, done):
            raise
    done.computed = done.trained = True
    yield from upload(cell, update, grant, log, done)


def download(cell: Cell, job: Job, grant: Grant, log: EventLog, done: Progress) -> SimPyProcess:
    """The model arrives at the device."""
    with log.span(job.g, grant.device, "download", cell.ledger.receiving(grant.device)) as span:
        done.spans.append(span)
        cell.running.receive(grant.device)
        try:
            yield from cell.downlink.carry(job.payload.bits_down - done.bits_down, grant, span)
        finally:
            done.bits_down += span.bits


def compute(
    cell: Cell, update: Update, grant: Grant, log: EventLog, done: Progress
) -> SimPyProcess:
    """The stages of the job, one after the other: Liu, eq. (24)."""
    job, device = update.job, cell.fleet.device(grant.device)
    # Where the work is known only after training, asking for the stages trains.
    for stage in update.stages()[done.stages :]:
        left, whole_s = 1.0 - done.part, device.seconds(stage.work, grant.cpu_hz)
        cycles, flops = device.cycles(stage.work) * left, float(stage.work.flops) * left
        energy, seconds = cell.ledger.computing(grant), whole_s * left
        with log.span(job.g, grant.device, stage.name, energy, cycles, flops, seconds) as span:
            done.spans.append(span)
            try:
                yield from cell.running.compute(grant, cycles, seconds, span)
            except simpy.Interrupt:
                by_time = (cell.env.now - span.start_s) / whole_s if whole_s > 0.0 else 0.0
                done.part += by_time if span.done is None else span.done * left
                raise
        done.stages, done.part = done.stages + 1, 0.0


def cut_short(update: Update, done: Progress) -> int:
    """Leave the steps of the last stage that are finished; returns their number."""
    stages = len(update.stages())
    steps = update.truncate(done.part) if done.stages == stages - 1 else 0
    if steps:
        done.stages, done.part = stages, 0.0
    return steps


def upload(cell: Cell, update: Update, grant: Grant, log: EventLog, done: Progress) -> SimPyProcess:
    """The update travels to the server: Liu, eq. (25)."""
    g, k = update.job.g, grant.device
    while True:
        # Where the bits are known only after training, asking for them trains.
        left = update.bits_up() - done.bits_up
        while left > 0.0 and (pause_s := cell.uplink.pause_s(k)) is not None:
            with log.span(g, k, "handover", cell.ledger.receiving(k)) as span:
                done.spans.append(span)
                cell.running.receive(k)
                yield cell.env.timeout(pause_s)
        with log.span(g, k, "upload", cell.ledger.sending(grant)) as span:
            done.spans.append(span)
            cell.running.send(grant)
            try:
                yield from cell.uplink.carry(left, grant, span)
            finally:
                done.bits_up += span.bits
        if span.bits >= left:
            return
