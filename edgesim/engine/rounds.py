"""The server processes, one per clock, and `take_part`: one device in one round.

Nothing here knows a formula for latency: time passes where devices compute and links carry bits. A device is late when
it is back after T_th (1 + 1e-6); the slack only covers rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
import simpy

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

SLACK = 1e-6
LATE, FAILED = "late", "failed"  # why a device was interrupted
Out = dict[int, simpy.Process]  # device -> its take_part
Wait = Callable[[simpy.Environment, Cell, int, Out], Generator]


class WrongSelection(Exception):
    """A method chose devices that are not there."""


class NobodyTakesPart(Exception):
    """No device can take part in a round, and no threshold says when that round ends."""


def synchronous(*run: Any) -> Generator:
    """Every round lasts until everybody is back: T_g = max_k T_k, Liu, eq. (29). Late uploads are aggregated.

    Args: those of `serve` but its first.
    """
    return serve(until_all_are_back, *run)


def deadline(*run: Any) -> Generator:
    """A round ends at the threshold at the latest; who is still out is interrupted and not aggregated.

    Args: those of `serve` but its first.
    """
    return serve(until_the_deadline, *run)


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
) -> Generator:
    """Liu, Algorithm 1: one pass of the loop is one global round g. Its value is the last state.

    Args:
        wait: the clock: (env, cell, processes of the devices) -> a generator that ends with the round.
        rounds: those still to play.     state: that of the round before; None starts anew.
    """
    log.attach(env)
    state = method.start() if state is None else state
    for g in rounds:
        start_s = env.now
        view = cell.view(g)  # h_k, f_k, D_k, who is there
        plan = make_plan(cell, method, state, view)  # b_k (54), rho_k (58)
        updates = trainer.submit([method.configure(state, view, grant) for grant in plan.grants])
        cell.begin_round(plan)
        pairs = zip(updates, plan.grants, strict=True)
        out = {
            grant.device: env.process(take_part(env, cell, update, grant, log))
            for update, grant in pairs
        }
        yield from (wait if out else nobody_is_out)(env, cell, g, out)
        outcomes = conclude(cell, view, plan, out)
        log_waiting(cell, log, view, outcomes, start_s)
        state = method.retain(state, [outcome.update for outcome in outcomes if outcome.trained])
        state = method.aggregate(
            state, view, [outcome.update for outcome in outcomes if outcome.received]
        )  # (26)
        state = method.observe(state, Report(g, env.now - start_s, outcomes))
        log.close_round(
            g, start_s, env.now, plan, outcomes, observer.scores(g, state), cell.budget_s
        )
        observer.finished(g, state)
    return state


def take_part(
    env: simpy.Environment, cell: Cell, update: Update, grant: Grant, log: EventLog
) -> Generator:
    """One device in one round; without surprises on the air this takes (28). Its value is the Outcome."""
    job, start_s, trained = update.job, env.now, False
    try:
        yield from download(cell, job, grant, log)
        yield from compute(env, cell, update, grant, log)
        trained = True
        yield from upload(cell, update, grant, log)
    except simpy.Interrupt as stop:
        if not trained:
            update.abort()
        return Outcome(
            grant, update, stop.cause, received=False, trained=trained, finish_s=math.nan
        )
    finally:
        cell.uplink.release(grant.device)
    finish_s = env.now - start_s
    status = LATE if finish_s > cell.budget_s * (1.0 + SLACK) else "arrived"
    return Outcome(grant, update, status, received=True, trained=True, finish_s=finish_s)


def download(cell: Cell, job: Job, grant: Grant, log: EventLog) -> Generator:
    with log.span(job.g, grant.device, "download", cell.ledger.receiving(grant.device)) as span:
        yield from cell.downlink.carry(job.payload.bits_down, grant, span)


def compute(
    env: simpy.Environment, cell: Cell, update: Update, grant: Grant, log: EventLog
) -> Generator:
    """The stages of the job, one after the other: Liu, eq. (24). Asking for them trains only where that alone tells."""
    job, device = update.job, cell.devices[grant.device]
    for stage in update.stages():
        seconds, cycles = device.seconds(stage.work, grant.cpu_hz), device.cycles(stage.work)
        energy, flops = cell.ledger.computing(grant), float(stage.work.flops)
        with log.span(job.g, grant.device, stage.name, energy, cycles, flops, seconds):
            yield env.timeout(seconds)


def upload(cell: Cell, update: Update, grant: Grant, log: EventLog) -> Generator:
    """Liu, eq. (25); `bits_up` trains only where the bits are not known before."""
    with log.span(update.job.g, grant.device, "upload", cell.ledger.sending(grant)) as span:
        yield from cell.uplink.carry(update.bits_up(), grant, span)


def make_plan(cell: Cell, method: MethodHooks, state: State, view: View) -> RoundPlan:
    """Ask the method whom and at what cost, the cell with which share and pruning ratio."""
    chosen = method.select(state, view) if len(view.idle) else view.idle
    if not np.isin(chosen, view.idle).all() or len(np.unique(chosen)) != len(chosen):
        raise WrongSelection(
            f"the method selected {list(chosen)[:20]}; allowed are idle devices, each once"
        )
    if not len(chosen):
        return RoundPlan((), budget_s=cell.budget_s)
    return cell.allocate(method.demand(state, view, chosen), view)


def until_all_are_back(env: simpy.Environment, cell: Cell, g: int, out: Out) -> Generator:
    failures = env.process(fail(env, cell, g, out))
    yield env.all_of(out.values())
    if failures.is_alive:
        failures.interrupt()


def until_the_deadline(env: simpy.Environment, cell: Cell, g: int, out: Out) -> Generator:
    everybody = env.process(until_all_are_back(env, cell, g, out))
    yield everybody | env.timeout(cell.budget_s * (1.0 + SLACK))
    for process in out.values():
        if process.is_alive:
            process.interrupt(LATE)
    yield everybody


def nobody_is_out(env: simpy.Environment, cell: Cell, g: int, out: Out) -> Generator:
    """An empty round lasts as long as the threshold."""
    yield env.timeout(empty_round_s(cell, g))


def empty_round_s(cell: Cell, g: int) -> float:
    """The threshold, which ends a round in which nobody takes part."""
    if math.isinf(cell.budget_s):
        raise NobodyTakesPart(
            f"no device can take part in round {g} and no latency threshold would end it; "
            "give budget.latency_threshold, or raise the availability of the devices"
        )
    return cell.budget_s


def fail(env: simpy.Environment, cell: Cell, g: int, out: Out) -> Generator:
    """Interrupt the devices that fail in round g, in the order in which they do, until the round is over."""
    start_s, after_s = env.now, cell.failures_s(g)
    try:
        for wait_s, k in sorted((after_s[k], k) for k in out if after_s[k] < math.inf):
            yield env.timeout(max(start_s + wait_s - env.now, 0.0))
            if out[k].is_alive:
                out[k].interrupt(FAILED)
    except simpy.Interrupt:
        return


def conclude(cell: Cell, view: View, plan: RoundPlan, out: Out) -> tuple[Outcome, ...]:
    """How the round ended for every device that was asked, in device order."""
    outcomes = [process.value for process in out.values()]
    for k in plan.infeasible:
        grant = Grant(k, 0.0, 0.0, float(view.cpu_hz[k]), float(cell.fleet.tx_power_w[k]))
        outcomes.append(
            Outcome(grant, None, "infeasible", received=False, trained=False, finish_s=math.nan)
        )
    return tuple(sorted(outcomes, key=lambda outcome: outcome.grant.device))


def log_waiting(
    cell: Cell, log: EventLog, view: View, outcomes: Sequence[Outcome], start_s: float
) -> None:
    """Charge idle power until now to every device that is there and alive."""
    failed = {outcome.grant.device for outcome in outcomes if outcome.status == FAILED}
    busy_until = log.busy_until()
    for k in view.idle[cell.fleet.idle_power_w[view.idle] > 0.0].tolist():
        since_s = busy_until.get(k, start_s)
        if k not in failed and since_s < log.now():
            log.since(view.g, k, "idle", since_s, cell.ledger.idle(k))
