"""What interrupts jobs: devices that leave or crash, and may come back to them.

A job ends before its device leaves where both happen at the same instant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import simpy

from edgesim.network.cell import Cell
from edgesim.presence.absences import LOST, RESUME, Away
from edgesim.records.event_log import EventLog
from fl.contracts import Job

FAILED, LEFT = "failed", "left"  # why a device was interrupted
CUT = "cut"  # it is told to send what it has computed
Participants = dict[int, simpy.Process]  # device -> its take_part
SimPyProcess = Generator[simpy.Event, Any, None]
BEHIND_OTHERS: Any = 5  # priority of an event behind those of its instant; SimPy's own are 0 and 1


def event_at(env: simpy.Environment, time_s: float, priority: Any = BEHIND_OTHERS) -> simpy.Event:
    """An event at an instant, or at the next one that a clock of floats can reach from now."""
    delay_s = time_s - env.now
    while env.now + delay_s < time_s:  # the difference was rounded
        delay_s = np.nextafter(delay_s, np.inf)
    event = simpy.Event(env)
    event._ok, event._value = True, None  # triggered here, as simpy.Timeout does
    env.schedule(event, priority, max(delay_s, 0.0))
    return event


def watch(
    env: simpy.Environment,
    cell: Cell,
    jobs: list[Job],
    participants: Participants,
    one_by_one: bool,
) -> None:
    """Start the processes that interrupt jobs.

    Args:
        env: the simulation environment.
        cell: of the jobs.
        jobs: that have just begun, all of one version.
        participants: the processes of their devices.
        one_by_one: each device fails at the same time whoever else has begun with it.
    """
    if not jobs or (cell.absences is None and not np.any(cell.fleet.failure_rate_hz > 0.0)):
        return
    crashes_s = crashes_of(cell, jobs)
    if cell.absences is not None:
        for job in jobs:
            k = job.device
            env.process(disturb(env, cell, job, participants[k], crashes_s[k]))
        return
    after_s = {k: next(times_s) for k, times_s in crashes_s.items()}
    groups = [{job.device: participants[job.device]} for job in jobs]
    for group in groups if one_by_one else [participants]:
        env.process(fail(env, after_s, group))


def fail(
    env: simpy.Environment, after_s: Mapping[int, float], participants: Participants
) -> SimPyProcess:
    """Interrupt the devices that fail, one after the other, unless they are done.

    Args:
        env: the simulation environment.
        after_s: device -> when it fails after its start, s; inf: never.
        participants: the processes of the devices that have just begun.
    """
    start_s = env.now
    for wait_s, k in sorted((after_s[k], k) for k in participants if after_s[k] < math.inf):
        yield env.timeout(max(start_s + wait_s - env.now, 0.0))
        if participants[k].is_alive:
            participants[k].interrupt(FAILED)


def disturb(
    env: simpy.Environment,
    cell: Cell,
    job: Job,
    process: simpy.Process,
    crashes_s: Iterator[float],
) -> SimPyProcess:
    """Interrupt one job where its device leaves or crashes, until it has ended.

    A device crashes at its failure rate while it works, and not while it is away.

    Args:
        env: the simulation environment.
        cell: of the job.
        job: that has just begun.
        process: of its device.
        crashes_s: see `crashes_of`.
    """
    k, absences = job.device, cell.absences
    assert absences is not None  # only then is a job disturbed
    crash_s = env.now + next(crashes_s)
    while True:
        leave_s = absences.presence.until_s(k, env.now, there=False)
        if math.isinf(at_s := min(leave_s, crash_s)):
            return
        yield event_at(env, at_s)
        if not process.is_alive:
            return
        left = leave_s <= crash_s
        then = (absences.on_leave if left else absences.on_failure)[k]
        ready_s = env.now if left else env.now + float(absences.repair_s[k])
        back_s = absences.presence.until_s(k, ready_s, there=True)
        if then == LOST or math.isinf(back_s):
            process.interrupt(LEFT if left else FAILED)
            return
        # One that has crashed may leave before it is repaired.
        on_leave = absences.on_leave[k] if leave_s < back_s else RESUME
        keeps_work = then == on_leave == RESUME
        process.interrupt(Away(LEFT if left else FAILED, back_s, keeps_work))
        if on_leave == LOST:
            yield event_at(env, leave_s)
            if process.is_alive:
                process.interrupt(LEFT)
            return
        crash_s = crash_s + (back_s - env.now) if left else back_s + next(crashes_s)
        yield event_at(env, back_s)
        if not process.is_alive:
            return


def crashes_of(cell: Cell, jobs: Sequence[Job]) -> dict[int, Iterator[float]]:
    """Times of work of each device until its job's first crash, and from each to the next, s.

    A version has one draw for all devices, so that the first crash of a job is the same whatever
    else can happen to it, or to other devices.

    Args:
        cell: of the jobs.
        jobs: of one version.
    """
    first_s, found = cell.failures_s(jobs[0].g), {}
    for job in jobs:
        further_s = crash_times_s(cell, job)
        # By the draw of its version a second job would fail at the same place for ever.
        found[job.device] = further_s if job.again else chain([first_s[job.device]], further_s)
    return found


def crash_times_s(cell: Cell, job: Job) -> Iterator[float]:
    """Times of work from one crash of a job to the next, s, by a stream of its own."""
    rate_hz = float(cell.fleet.failure_rate_hz[job.device])
    stream = job.stream(cell.streams, "failures of a job")
    while True:
        yield float(stream.standard_exponential()) / rate_hz if rate_hz > 0.0 else math.inf


def cut_off(
    env: simpy.Environment, process: simpy.Process, at_s: float, has_computed: Callable[[], bool]
) -> SimPyProcess:
    """Interrupt a device at an instant, unless its computation is over by then."""
    yield event_at(env, at_s)
    if process.is_alive and not has_computed():
        process.interrupt(CUT)


def stay_away(
    env: simpy.Environment, cell: Cell, job: Job, away: Away, log: EventLog
) -> SimPyProcess:
    """Wait until a device is back; a repair is logged for as long as the device is there."""
    start_s = env.now
    try:
        yield event_at(env, away.back_s, priority=simpy.events.NORMAL)
    finally:
        if away.cause == FAILED:
            for begin_s, end_s in cell.there(job.device, start_s, env.now):
                log.add_span(job.g, job.device, "repair", begin_s, end_s)
