"""The server's loop, `serve`, which all clocks share: a pass of it makes one version of the model.

With the clocks ``synchronous``, ``deadline`` and ``overcommit`` a version is a global round. Where
jobs overlap, devices start from different versions, and what is stale is damped.
"""

from __future__ import annotations

import math
from collections.abc import Container, Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import simpy

from edgesim.clocks.flights import AT_THE_END, Desk, Flight, in_device_order
from edgesim.clocks.partial_work import planned_parts, starts_of_uploads_s
from edgesim.clocks.resumed_jobs import record_of_run
from edgesim.clocks.rules import Overlapping, Rules
from edgesim.clocks.server_failures import ServerFailures, discard_everything
from edgesim.clocks.waiting_devices import (
    charge_idle_power,
    charge_waiting,
    drawing_idle_power,
    failed_in_this_round,
)
from edgesim.engine.interruptions import event_at, watch
from edgesim.engine.participants import empty_round_s, left_out, make_plan
from edgesim.engine.progress_limits import check_version
from edgesim.engine.rounds import UNFINISHED, take_part
from edgesim.engine.stop_rule import StopRule
from edgesim.network.cell import Cell
from edgesim.records.event_log import EventLog
from edgesim.records.rows_from_spans import JobRecord, state_columns
from fl.contracts import (
    Grant,
    Job,
    JobTrainer,
    MethodHooks,
    Observer,
    Report,
    RoundPlan,
    State,
    Update,
    View,
)
from fl.method_base.hook_answers import answer
from fl.method_base.state_answers import following, storable

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
    stop: StopRule | None = None,
    failures: ServerFailures | None = None,
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
        stop: ends the run before its last version.
        failures: of the server; None: it never fails.
    """
    server = ServerLoop(rules, env, cell, method, trainer, log, observer, stop, failures)
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
        stop: StopRule | None = None,
        failures: ServerFailures | None = None,
    ) -> None:
        self.stop, self.failures, self.failed = stop or StopRule(), failures, 0
        self.rules, self.env, self.cell, self.method = rules, env, cell, method
        self.trainer, self.log, self.observer = trainer, log, observer
        log.attach(env)
        self.desk = Desk(env, len(cell.fleet))
        self.plan = RoundPlan((), budget_s=cell.budget_s)  # those since the version before
        self.view: View | None = None  # the last of the present version

    def versions(self, rounds: range, state: State) -> Events:
        """Make versions of the model, one after the other; its value is the last state."""
        if self.failures is not None and self.desk.saved is None:
            self.desk.saved = state
        for g in rounds:
            state = yield from self.next_version(g, state, is_last=g == rounds[-1])
            if self.stop.reached:
                break
        return state

    def next_version(self, g: int, state: State, is_last: bool) -> Events:
        """Hand out jobs and wait until a version can be made; its value is the state after it."""
        rules, desk, env = self.rules, self.desk, self.env
        start_s = env.now
        self.begin_version(g)
        self.plan, self.view = RoundPlan((), budget_s=self.cell.budget_s), None
        while (batch := rules.batch(desk)) is None:
            if self.failures is not None and self.failures.is_down(env.now):
                state = yield from self.recovered(g, state, self.failures)
            if rules.room(desk) != 0:
                check_version(g, desk.in_vain, self.together, self.failed, env.now)
                state = self.hand_out(g, state)
                if self.view and rules.asks_others(desk, self.view, self.plan):
                    continue
            if not desk.out and not (rules.overlapping and desk.tick):
                # Nobody is at work, and nobody can start: no buffer will fill.
                back_s = self.cell.next_return_s(g, desk.left_out)
                if np.isfinite(back_s) and back_s <= self.cell.redrawn_s(g, desk.left_out):
                    desk.in_vain += 1
                    yield event_at(env, min(back_s, self.next_failure_s()), AT_THE_END)
                    self.begin_tick()
                    continue
                if not desk.held:
                    yield env.timeout(empty_round_s(self.cell, g))
                batch = list(desk.held)
                break
            yield from self.until_the_next_instant()
        is_last = self.stop.look(env.now, desk.jobs) or is_last
        if is_last and desk.out:
            yield desk.interrupt(UNFINISHED)
            yield desk.end_of_this_instant()
            desk.collect(rules.max_staleness)
        return self.make_version(g, state, batch, start_s, is_last)

    @property
    def together(self) -> int:
        """How many jobs can start together."""
        return self.rules.slots if isinstance(self.rules, Overlapping) else len(self.cell.fleet)

    def begin_version(self, g: int) -> None:
        """Nobody was asked yet, and the clock's own time begins."""
        self.desk.begin_version(g, self.rules.max_staleness)
        self.begin_tick()
        self.failed = 0

    def begin_tick(self) -> None:
        """The clock's own time begins."""
        tick_s = self.rules.tick_s(self.cell.budget_s)
        self.desk.tick = self.env.timeout(tick_s) if np.isfinite(tick_s) else None

    def next_failure_s(self) -> float:
        """When the server, which is up, fails next, s."""
        return self.failures.next_change_s(self.env.now) if self.failures else np.inf

    def recovered(self, g: int, state: State, failures: ServerFailures) -> Events:
        """The server fails and comes back; its value is the state that it then has."""
        self.failed += 1
        yield from discard_everything(self.desk)
        state = self.method.recovered(self.desk.saved, self.retained(state))
        yield event_at(self.env, failures.next_change_s(self.env.now))
        self.begin_tick()
        return state

    def hand_out(self, g: int, state: State) -> State:
        """Start jobs on devices that are there and free; the state with what has ended before."""
        rules, desk, cell, method = self.rules, self.desk, self.cell, self.method
        if desk.to_retain:
            state = self.retained(state)
        view = self.view = self.seen_by_the_method(g)
        plan = make_plan(cell, method, state, view)  # b_k (54), rho_k (58)
        self.plan = plan.after(self.plan)
        jobs = [
            replace(job, again=again) if (again := desk.again(job.device)) else job
            for job in (self.ordered(state, view, grant) for grant in plan.grants)
        ]
        if rules.cuts_steps:
            jobs = planned_parts(cell, jobs, plan)
        cuts_s = [math.inf] * len(jobs)
        if rules.cuts_jobs:
            cuts_s = starts_of_uploads_s(cell, jobs, plan)
        updates = self.trainer.submit(jobs)
        cell.begin_round(plan, others_go_on=rules.overlapping)
        participants, failed = {}, failed_in_this_round(rules, desk)
        for update, grant, cut_s in zip(updates, plan.grants, cuts_s, strict=True):
            charge_idle_power(self.log, cell, desk, g, [grant.device], failed)
            charge_waiting(self.log, cell, g, [grant.device])
            self.log.begin_job(grant.device, desk.jobs)
            part = take_part(self.env, cell, update, grant, self.log, cut_s)
            participants[grant.device] = process = self.env.process(part)
            flight = Flight(desk.jobs, update, grant, state, g, self.env.now, process)
            flight.at_start = cell.running.snapshot(grant.device)
            desk.start(flight)
        desk.leave_out(plan)
        for outcome in left_out(cell, view, plan):
            desk.start(
                Flight(desk.jobs, None, outcome.grant, state, g, self.env.now, outcome=outcome)
            )
        watch(self.env, cell, jobs, participants, one_by_one=rules.overlapping)
        desk.turn += 1
        return state

    def ordered(self, state: State, view: View, grant: Grant) -> Job:
        """The job of one device, by the method."""
        return answer("configure", self.method.configure(state, view, grant), Job)

    def seen_by_the_method(self, g: int) -> View:
        """What the server knows now; idle are those that are there, and not at work already."""
        rules, desk, view = self.rules, self.desk, self.cell.view(g)
        if not rules.overlapping:
            return replace(view, wanted=rules.room(desk))
        is_free = np.ones(len(self.cell.fleet), dtype=bool)
        is_free[[*rules.taken(desk), *desk.left_out]] = False
        free = view.idle[is_free[view.idle]]
        out = np.array(sorted(desk.out), dtype=int)
        view = replace(view, turn=desk.turn, handed_out=desk.jobs)
        return replace(view, idle=free, wanted=rules.room(desk), in_flight=out)

    def until_the_next_instant(self) -> Events:
        """Wait for arrivals or the clock's tick, then take in everything of that instant."""
        rules, desk = self.rules, self.desk
        wake_s = self.next_failure_s()
        if rules.room(desk):
            wake_s = min(wake_s, self.cell.next_return_s(desk.version, desk.left_out))
        also = event_at(self.env, wake_s) if np.isfinite(wake_s) else None
        yield desk.until_something_happens(also)
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
        return following("retain", state, self.method.retain(state, trained))

    def discarded(self, state: State, view: View) -> State:
        """The state with what the server remembers of updates that came too late for the model."""
        stale = [each.update for each in in_device_order(self.desk.too_stale) if each.update]
        self.desk.too_stale = []
        if not stale:
            return state
        return following("discard", state, self.method.discard(state, view, stale))

    def make_version(
        self, g: int, state: State, batch: Sequence[Flight], start_s: float, is_last: bool
    ) -> State:
        """Aggregate a batch, and close version g: its rows, its evaluation, its checkpoint."""
        desk, view = self.desk, self.view or self.cell.view(g)
        self.charge_until_now(g, view)
        batch = in_device_order(batch)
        unused = desk.use(batch, all_end=is_last)
        state = self.discarded(self.retained(state), view)
        used = [self.as_used(flight, state, g) for flight in batch]
        state = following("aggregate", state, self.method.aggregate(state, view, used))  # (26)
        ended = in_device_order([*batch, *unused])
        report = Report(g, self.env.now - start_s, tuple(each.ended for each in ended))
        state = storable(following("observe", state, self.method.observe(state, report)))
        self.record_version(g, state, ended, {flight.number for flight in batch}, start_s)
        return state

    def charge_until_now(self, g: int, view: View) -> None:
        """Charge the devices that are not at work for having waited until now."""
        desk, cell, log = self.desk, self.cell, self.log
        failed = failed_in_this_round(self.rules, desk)
        present = drawing_idle_power(cell, view, g, self.rules.overlapping)
        charge_idle_power(log, cell, desk, g, [k for k in present if k not in desk.out], failed)
        charge_waiting(log, cell, g, [k for k in cell.running.states if k not in desk.out])
        free = np.ones(len(cell.fleet), dtype=bool)
        free[list(desk.out)] = False
        desk.idle_since_s[free] = self.env.now

    def record_version(
        self, g: int, state: State, ended: Sequence[Flight], used: Container[int], start_s: float
    ) -> None:
        """Evaluate the state after version g, and write its rows and its checkpoint.

        Args:
            g: the version.
            state: after it.
            ended: the jobs that have a row, in device order.
            used: numbers of those that are in the model.
            start_s: when the version began, s.
        """
        desk, cell, log = self.desk, self.cell, self.log
        scores = self.observer.scores(g, state)
        log.add({"device_states": state_columns(g, *cell.running.table())})
        outcomes = tuple(each.ended for each in ended)
        closed = g, start_s, self.env.now, self.plan, outcomes, scores, cell.budget_s
        if not log.numbers_jobs:
            log.close_round(*closed)
            states = cell.arrays()
            self.observer.finished(g, state, (lambda: (states, {})) if states else None)
            return
        if self.failures is not None and (g + 1) % self.failures.save_every == 0:
            desk.saved = state
        jobs = [
            JobRecord(
                each.number, each.version, g + 1 if each.number in used else -1, each.dispatched_s
            )
            for each in ended
        ]
        waiting = {
            "dispatched": desk.asked + desk.void,
            "held": len(desk.held),
            "in_flight": len(desk.out),
            "server_failures": self.failed,
        }
        log.close_round(*closed, jobs, waiting)
        self.observer.finished(g, state, lambda: record_of_run(desk, cell, log, state))

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
