"""The server's rounds, `serve`, and one device in one round, `take_part`, as SimPy processes.

No formula for latency stands here: time passes where devices compute and links carry bits. A device
is late when its upload ends after T_th (1 + 1e-6); the slack only covers rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
import simpy

from edgesim.errors import RunError
from edgesim.network.cell import Cell
from edgesim.records.event_log import EventLog
from fl.contracts import (
    Grant,
    Job,
    JobTrainer,
    MethodHooks,
    Observer,
    Outcome,
    Report,
    RoundPlan,
    State,
    Update,
    View,
)

SLACK = 1e-6  # of the threshold, for rounding
LATE, FAILED = "late", "failed"  # why a device was interrupted
Participants = dict[int, simpy.Process]  # device -> its take_part
SimPyProcess = Generator[simpy.Event, Any, None]
Wait = Callable[[simpy.Environment, Cell, int, Participants], SimPyProcess]


class SelectionError(RunError):
    """A method selected devices that are not idle, or one twice."""


class NoParticipantsError(RunError):
    """No device can take part in a round, and no threshold ends that round."""


def serve(
    wait: Wait,
    env: simpy.Environment,
    cell: Cell,
    method: MethodHooks,
    trainer: JobTrainer,
    log: EventLog,
    observer: Observer,
    rounds: range,
    state: State | None = None,
) -> Generator[simpy.Event, Any, State]:
    """Liu, Algorithm 1: one pass of the loop is one global round g. Its value is the last state.

    Args:
        wait: how a round ends, one of `CLOCKS`.
        env: the simulation environment.
        cell: devices, links and band.
        method: the method's hooks.
        trainer: takes the jobs of a round.
        log: takes the spans and rows.
        observer: evaluates, and writes the checkpoint.
        rounds: the rounds still to play.
        state: the method's state after the round before; None starts anew.
    """
    log.attach(env)
    state = method.start() if state is None else state
    for g in rounds:
        start_s = env.now
        view = cell.view(g)  # h_k, f_k, D_k, who is there
        plan = make_plan(cell, method, state, view)  # b_k (54), rho_k (58)
        updates = trainer.submit([method.configure(state, view, grant) for grant in plan.grants])
        cell.begin_round(plan)
        participants = {
            grant.device: env.process(take_part(env, cell, update, grant, log))
            for update, grant in zip(updates, plan.grants, strict=True)
        }
        yield from (wait if participants else until_the_threshold)(env, cell, g, participants)
        outcomes = conclude(cell, view, plan, participants)
        charge_idle_power(cell, log, view, outcomes, start_s)
        trained = [each.update for each in outcomes if each.update and each.trained]
        received = [each.update for each in outcomes if each.update and each.received]
        state = method.retain(state, trained)
        state = method.aggregate(state, view, received)  # (26)
        state = method.observe(state, Report(g, env.now - start_s, outcomes))
        log.close_round(
            g, start_s, env.now, plan, outcomes, observer.scores(g, state), cell.budget_s
        )
        observer.finished(g, state)
    return state


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
    if not np.isin(chosen, view.idle).all() or len(np.unique(chosen)) != len(chosen):
        raise SelectionError(
            f"the method selected {list(chosen)[:20]}; allowed are idle devices, each once"
        )
    if not len(chosen):
        return RoundPlan((), budget_s=cell.budget_s)
    return cell.plan(method.demand(state, view, chosen), view)


def until_all_are_back(
    env: simpy.Environment, cell: Cell, g: int, participants: Participants
) -> SimPyProcess:
    """The clock ``synchronous``: T_g = max_k T_k, Liu, eq. (29); late uploads are aggregated."""
    failures = env.process(fail(env, cell, g, participants))
    yield env.all_of(participants.values())
    if failures.is_alive:
        failures.interrupt()


def until_the_deadline(
    env: simpy.Environment, cell: Cell, g: int, participants: Participants
) -> SimPyProcess:
    """The clock ``deadline``: at T_th at the latest; late devices are interrupted."""
    all_back = env.process(until_all_are_back(env, cell, g, participants))
    yield all_back | env.timeout(cell.budget_s * (1.0 + SLACK))
    for process in participants.values():
        if process.is_alive:
            process.interrupt(LATE)
    yield all_back


CLOCKS: dict[str, Wait] = {"synchronous": until_all_are_back, "deadline": until_the_deadline}


def until_the_threshold(
    env: simpy.Environment, cell: Cell, g: int, participants: Participants
) -> SimPyProcess:
    """A round without participants lasts as long as the threshold."""
    yield env.timeout(empty_round_s(cell, g))


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
    """Interrupt the devices that fail in round g, one after the other, until the round is over."""
    start_s, after_s = env.now, cell.failures_s(g)
    try:
        for wait_s, k in sorted((after_s[k], k) for k in participants if after_s[k] < math.inf):
            yield env.timeout(max(start_s + wait_s - env.now, 0.0))
            if participants[k].is_alive:
                participants[k].interrupt(FAILED)
    except simpy.Interrupt:
        return


def conclude(
    cell: Cell, view: View, plan: RoundPlan, participants: Participants
) -> tuple[Outcome, ...]:
    """How the round ended for every device that was asked, in device order."""
    finished: list[Any] = [process.value for process in participants.values()]
    outcomes: list[Outcome] = finished
    for k in plan.infeasible:
        grant = Grant(k, 0.0, 0.0, float(view.cpu_hz[k]), float(cell.fleet.tx_power_w[k]))
        outcomes.append(
            Outcome(grant, None, "infeasible", received=False, trained=False, finish_s=math.nan)
        )
    # By device and not by arrival, so that sums over updates do not depend on the channel.
    return tuple(sorted(outcomes, key=lambda outcome: outcome.grant.device))


def charge_idle_power(
    cell: Cell, log: EventLog, view: View, outcomes: Sequence[Outcome], start_s: float
) -> None:
    """Charge idle power until now to every device that is present and has not failed."""
    failed = {outcome.grant.device for outcome in outcomes if outcome.status == FAILED}
    busy_until = log.busy_until()
    for k in view.idle[cell.fleet.idle_power_w[view.idle] > 0.0].tolist():
        since_s = busy_until.get(k, start_s)
        if k not in failed and since_s < log.now():
            log.add_idle(view.g, k, since_s, cell.ledger.idle(k))
