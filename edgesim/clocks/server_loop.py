"""The server's loop, `serve`, which all clocks share: a pass of it makes one version of the model.

With the clocks ``synchronous``, ``deadline`` and ``overcommit`` a version is a global round. Where
jobs overlap, devices start from different versions, and what is stale is damped.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import simpy

from edgesim.clocks.flights import Desk, Flight, in_device_order
from edgesim.clocks.rules import Rules
from edgesim.engine.rounds import (
    FAILED,
    UNFINISHED,
    empty_round_s,
    fail,
    left_out,
    make_plan,
    take_part,
)
from edgesim.network.cell import Cell
from edgesim.records.event_log import EventLog
from edgesim.records.rows_from_spans import JobRecord
from fl.contracts import (
    JobTrainer,
    MethodHooks,
    Observer,
    Report,
    RoundPlan,
    State,
    Update,
    View,
)

Events = Generator[simpy.Event, Any, Any]


def serve(
    rules: Rules,
    env: simpy.Environment,
    cell: Cell,
    method: MethodHooks,
    trainer: JobTrainer,
    log: EventLog,
    observer: Observer,
    rounds: range,
    state: State | None = None,
) -> Generator[simpy.Event, Any, State]:
    """Liu, Algorithm 1: all global rounds, or versions; its value is the last state.

    Args:
        rules: of the clock.
        env: the simulation environment.
        cell: devices, links and band.
        method: the method's hooks.
        trainer: takes the jobs.
        log: takes the spans and rows.
        observer: evaluates, and writes the checkpoint.
        rounds: the versions still to make.
        state: the method's state after the version before; None starts anew.
    """
    server = ServerLoop(rules, env, cell, method, trainer, log, observer)
    return server.versions(rounds, method.start() if state is None else state)


class ServerLoop:
    """The server of a run; the arguments are those of `serve`."""

    def __init__(
        self,
        rules: Rules,
        env: simpy.Environment,
        cell: Cell,
        method: MethodHooks,
        trainer: JobTrainer,
        log: EventLog,
        observer: Observer,
    ) -> None:
        self.rules, self.env, self.cell, self.method = rules, env, cell, method
        self.trainer, self.log, self.observer = trainer, log, observer
        log.attach(env)
        self.desk = Desk(env, len(cell.fleet))
        self.plan = RoundPlan((), budget_s=cell.budget_s)  # the last since the version before
        self.view: View | None = None  # the last of the present version

    def versions(self, rounds: range, state: State) -> Events:
        """Make versions of the model, one after the other; its value is the last state."""
        for g in rounds:
            state = yield from self.next_version(g, state, is_last=g == rounds[-1])
        return state

    def next_version(self, g: int, state: State, is_last: bool) -> Events:
        """Hand out jobs and wait until a version can be made; its value is the state after it."""
        rules, desk, env = self.rules, self.desk, self.env
        start_s, tick_s = env.now, rules.tick_s(self.cell.budget_s)
        desk.begin_version(g, env.timeout(tick_s) if np.isfinite(tick_s) else None)
        self.plan, self.view = RoundPlan((), budget_s=self.cell.budget_s), None
        while (batch := rules.batch(desk)) is None:
            if rules.room(desk) != 0:
                state = self.hand_out(g, state)
            if not desk.out and not (rules.overlapping and desk.tick):
                # Nobody is at work, and nobody can start: no buffer will fill.
                if not desk.held:
                    yield env.timeout(empty_round_s(self.cell, g))
                batch = list(desk.held)
                break
            yield from self.until_the_next_instant()
        if is_last and desk.out:
            yield desk.interrupt(UNFINISHED)
            yield desk.end_of_this_instant()
            desk.collect(rules.max_staleness)
        return self.make_version(g, state, batch, start_s, is_last)

    def hand_out(self, g: int, state: State) -> State:
        """Start jobs on devices that are there and free; the state with what has ended before."""
        rules, desk, cell, method = self.rules, self.desk, self.cell, self.method
        if desk.to_retain:
            state = self.retained(state)
        view = self.view = self.seen_by_the_method(g)
        plan = self.plan = make_plan(cell, method, state, view)  # b_k (54), rho_k (58)
        jobs = [
            replace(job, again=again) if (again := desk.again(job.device)) else job
            for job in (method.configure(state, view, grant) for grant in plan.grants)
        ]
        updates = self.trainer.submit(jobs)
        cell.begin_round(plan, others_go_on=rules.overlapping)
        participants = {}
        for update, grant in zip(updates, plan.grants, strict=True):
            self.charge_idle_power(g, [grant.device])
            self.log.begin_job(grant.device, desk.jobs)
            part = take_part(self.env, cell, update, grant, self.log)
            participants[grant.device] = process = self.env.process(part)
            desk.start(Flight(desk.jobs, update, grant, state, g, self.env.now, process))
        for outcome in left_out(cell, view, plan):
            desk.start(
                Flight(desk.jobs, None, outcome.grant, state, g, self.env.now, outcome=outcome)
            )
        if np.any(cell.fleet.failure_rate_hz > 0.0):
            # One by one where jobs overlap, so that each fails at the same time after a resumption.
            each = [{k: part} for k, part in participants.items()]
            for group in each if rules.overlapping else [participants]:
                self.env.process(fail(self.env, cell, g, group))
        desk.turn += 1
        return state

    def seen_by_the_method(self, g: int) -> View:
        """What the server knows now; idle are those that are there, and not at work already."""
        rules, desk, view = self.rules, self.desk, self.cell.view(g)
        if not rules.overlapping:
            return replace(view, wanted=rules.room(desk))
        free = np.setdiff1d(view.idle, rules.taken(desk))
        out = np.array(sorted(desk.out), dtype=int)
        return replace(view, idle=free, turn=desk.turn, wanted=rules.room(desk), in_flight=out)

    def until_the_next_instant(self) -> Events:
        """Wait for arrivals or the clock's tick, then take in everything of that instant."""
        rules, desk = self.rules, self.desk
        yield desk.until_something_happens()
        yield desk.end_of_this_instant()
        desk.collect(rules.max_staleness)
        if cause := rules.interrupts(desk):
            yield desk.interrupt(cause)
            yield desk.end_of_this_instant()
            desk.collect(rules.max_staleness)

    def retained(self, state: State) -> State:
        """The state with what stays at the devices that finished training since the last time."""
        trained = [each.update for each in in_device_order(self.desk.to_retain) if each.update]
        self.desk.to_retain = []
        return self.method.retain(state, trained)

    def make_version(
        self, g: int, state: State, batch: Sequence[Flight], start_s: float, is_last: bool
    ) -> State:
        """Aggregate a batch, and close version g: its rows, its evaluation, its checkpoint."""
        rules, desk, cell, log = self.rules, self.desk, self.cell, self.log
        batch = in_device_order(batch)
        used_numbers = {flight.number for flight in batch}
        desk.held = [flight for flight in desk.held if flight.number not in used_numbers]
        unused = [*desk.gone, *(desk.held if is_last else ())]
        desk.gone = []
        view = self.view or cell.view(g)
        failed = {each.grant.device for each in unused if each.ended.status == FAILED}
        present = [k for k in view_of_everybody(cell, view, g) if k not in failed]
        self.charge_idle_power(g, [k for k in present if k not in desk.out])
        free = np.ones(len(cell.fleet), dtype=bool)
        free[list(desk.out)] = False
        desk.idle_since_s[free] = self.env.now
        state = self.retained(state)
        used = [self.as_used(flight, state, g) for flight in batch]
        state = self.method.aggregate(state, view, used)  # (26)
        rows = in_device_order([*batch, *unused])
        outcomes = tuple(each.ended for each in rows)
        state = self.method.observe(state, Report(g, self.env.now - start_s, outcomes))
        scores = self.observer.scores(g, state)
        closed = g, start_s, self.env.now, self.plan, outcomes, scores, cell.budget_s
        if not rules.records_jobs:
            log.close_round(*closed)
            self.observer.finished(g, state)
            return state
        jobs = []
        for each in rows:
            made = g + 1 if each.number in used_numbers else -1
            jobs.append(JobRecord(each.number, each.version, made, each.dispatched_s))
        waiting = {"dispatched": desk.asked, "held": len(desk.held), "in_flight": len(desk.out)}
        log.close_round(*closed, jobs, waiting)
        self.observer.finished(g, state, lambda: desk.record(state))
        return state

    def as_used(self, flight: Flight, now: State, g: int) -> Update:
        """An update as it is aggregated: as it came, or damped by its staleness."""
        rules, staleness = self.rules, g - flight.version
        update = flight.update
        assert update is not None  # it has arrived
        if not rules.overlapping:
            return update
        weight = rules.weight(staleness)
        flight.outcome = replace(flight.ended, staleness=staleness, weight=weight)
        base = now if rules.from_now else flight.base
        return self.method.damped(update, now, base, weight * rules.step)

    def charge_idle_power(self, g: int, devices: Sequence[int]) -> None:
        """Charge idle power until now to devices that have waited."""
        power_w, since_s = self.cell.fleet.idle_power_w, self.desk.idle_since_s
        for k in devices:
            if power_w[k] > 0.0 and since_s[k] < self.env.now:
                self.log.add_idle(g, k, float(since_s[k]), self.cell.ledger.idle(k))


def view_of_everybody(cell: Cell, view: View, g: int) -> list[int]:
    """The devices that are there in version g and draw idle power."""
    if not cell.fleet.idle_power_w.any():
        return []
    idle = cell.view(g).idle if len(view.in_flight) else view.idle
    return idle[cell.fleet.idle_power_w[idle] > 0.0].tolist()
