"""One device in one round, `take_part`, as a SimPy process, and the plan of who takes part.

The server's loop around them is `edgesim.clocks.server_loop.serve`. No formula for latency stands
here: time passes where devices compute and links carry bits. A device is late when its upload ends
after T_th (1 + 1e-6); the slack only covers rounding.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np
import simpy

from edgesim.errors import RunError
from edgesim.network.cell import Cell
from edgesim.records.event_log import EventLog
from fl.contracts import (
    Grant,
    Job,
    MethodHooks,
    Outcome,
    RoundPlan,
    State,
    Update,
    View,
)

SLACK = 1e-6  # of the threshold, for rounding
# why a device was interrupted
LATE, FAILED, CANCELLED, UNFINISHED = "late", "failed", "cancelled", "unfinished"
Participants = dict[int, simpy.Process]  # device -> its take_part
SimPyProcess = Generator[simpy.Event, Any, None]


class SelectionError(RunError):
    """A method selected devices that are not idle, or one twice."""


class NoParticipantsError(RunError):
    """No device can take part in a round, and no threshold ends that round."""


def take_part(
    env: simpy.Environment, cell: Cell, update: Update, grant: Grant, log: EventLog
) -> Generator[simpy.Event, Any, Outcome]:
    """One device in one round; its value is the Outcome.

    On a channel that does not change within the round it takes the time of Liu, eq. (28).
    """
    job, start_s, trained = update.job, env.now, False
    try:
        yield from download(cell, job, grant, log)
        yield from compute(env, cell, update, grant, log)
        trained = True
        yield from upload(cell, update, grant, log)
    except simpy.Interrupt as stop:
        if not trained:
            update.abort()
        status = str(stop.cause)
        return Outcome(grant, update, status, received=False, trained=trained, finish_s=math.nan)
    finally:
        cell.uplink.release(grant.device)
    finish_s = env.now - start_s
    status = LATE if finish_s > cell.budget_s * (1.0 + SLACK) else "arrived"
    return Outcome(grant, update, status, received=True, trained=True, finish_s=finish_s)


def download(cell: Cell, job: Job, grant: Grant, log: EventLog) -> SimPyProcess:
    """The model arrives at the device."""
    with log.span(job.g, grant.device, "download", cell.ledger.receiving(grant.device)) as span:
        yield from cell.downlink.carry(job.payload.bits_down, grant, span)


def compute(
    env: simpy.Environment, cell: Cell, update: Update, grant: Grant, log: EventLog
) -> SimPyProcess:
    """The stages of the job, one after the other: Liu, eq. (24)."""
    job, device = update.job, cell.fleet.device(grant.device)
    # Where the work is known only after training, asking for the stages trains.
    for stage in update.stages():
        seconds, cycles = device.seconds(stage.work, grant.cpu_hz), device.cycles(stage.work)
        energy, flops = cell.ledger.computing(grant), float(stage.work.flops)
        with log.span(job.g, grant.device, stage.name, energy, cycles, flops, seconds):
            yield env.timeout(seconds)


def upload(cell: Cell, update: Update, grant: Grant, log: EventLog) -> SimPyProcess:
    """The update travels to the server: Liu, eq. (25)."""
    # Where the bits are known only after training, asking for them trains.
    with log.span(update.job.g, grant.device, "upload", cell.ledger.sending(grant)) as span:
        yield from cell.uplink.carry(update.bits_up(), grant, span)


def make_plan(cell: Cell, method: MethodHooks, state: State, view: View) -> RoundPlan:
    """Ask the method which devices and at what cost, the cell for shares and pruning ratios.

    Raises:
        SelectionError: the method selected a device that is not idle, or one twice.
    """
    chosen = method.select(state, view) if len(view.idle) else view.idle
    if view.wanted is not None and len(chosen) > view.wanted:  # it does not read `View.wanted`
        lots = cell.streams.stream("dispatch", round=view.occasion).random(len(cell.fleet))
        chosen = np.sort(chosen[np.argsort(lots[chosen], kind="stable")[: view.wanted]])
    if not np.isin(chosen, view.idle).all() or len(np.unique(chosen)) != len(chosen):
        raise SelectionError(
            f"the method selected {list(chosen)[:20]}; allowed are idle devices, each once"
        )
    if not len(chosen):
        return RoundPlan((), budget_s=cell.budget_s)
    return cell.plan(method.demand(state, view, chosen), view)


def empty_round_s(cell: Cell, g: int) -> float:
    """Length of round g if no device takes part, s: the threshold.

    Raises:
        NoParticipantsError: there is no threshold.
    """
    if math.isinf(cell.budget_s):
        raise NoParticipantsError(
            f"no device can take part in round {g} and no latency threshold would end it; "
            "give budget.latency_threshold, or raise the availability of the devices"
        )
    return cell.budget_s


def fail(env: simpy.Environment, cell: Cell, g: int, participants: Participants) -> SimPyProcess:
    """Interrupt the devices that fail in round g, one after the other, unless they are done."""
    start_s, after_s = env.now, cell.failures_s(g)
    for wait_s, k in sorted((after_s[k], k) for k in participants if after_s[k] < math.inf):
        yield env.timeout(max(start_s + wait_s - env.now, 0.0))
        if participants[k].is_alive:
            participants[k].interrupt(FAILED)


def left_out(cell: Cell, view: View, plan: RoundPlan) -> list[Outcome]:
    """The outcomes of devices that cannot meet the threshold, by device."""
    outcomes = []
    for k in sorted(plan.infeasible):
        grant = Grant(k, 0.0, 0.0, float(view.cpu_hz[k]), float(cell.fleet.tx_power_w[k]))
        outcomes.append(
            Outcome(grant, None, "infeasible", received=False, trained=False, finish_s=math.nan)
        )
    return outcomes
