"""The server's loop for overlapping jobs that only count time: columns instead of processes.

Nothing is trained, and no job depends on another, so that all of a job is known when it is handed
out (`edgesim.engine.vectorised.device_spans`). The tables have the bytes that
`edgesim.clocks.server_loop` writes with a process per device.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from edgesim.clocks.resumed_jobs import record_of_jobs
from edgesim.clocks.rules import Rules
from edgesim.clocks.vectorised.counting_desk import CountingDesk
from edgesim.clocks.vectorised.job_columns import late_after_s, with_rows
from edgesim.clocks.vectorised.relay import find_relay, played
from edgesim.clocks.waiting_devices import drawing_idle_power
from edgesim.engine.participants import empty_round_s, left_out, make_plan
from edgesim.engine.rounds import UNFINISHED
from edgesim.engine.stop_rule import StopRule
from edgesim.engine.vectorised.device_spans import (
    DeviceSpans,
    SpanColumns,
    charged,
)
from edgesim.engine.vectorised.round_loop import CountedMethod, SteppedEnvironment
from edgesim.network.cell import Cell
from edgesim.network.grants import Grants, grants_of
from edgesim.records.event_log import EventLog
from edgesim.records.rows_from_spans import (
    JobRecord,
    columns_of_jobs,
    device_row,
    job_columns,
    round_block,
)
from fl.contracts import Array, Observer, Report, RoundPlan, State, View
from fl.method_base.hook_answers import demand_of

NOT_RECEIVED = ("discarded", "unfinished", "infeasible")
FIRST_RELAY = 64  # occasions that are played at a time; later ones by what was right before


class VersionLoop:
    """The server of a run that counts; the arguments are those of `server_loop.serve`."""

    def __init__(
        self,
        rules: Rules,
        env: SteppedEnvironment,
        cell: Cell,
        method: CountedMethod,
        log: EventLog,
        observer: Observer,
        stop: StopRule | None = None,
    ) -> None:
        self.stop = stop or StopRule()
        self.rules, self.env, self.cell, self.method = rules, env, cell, method
        self.log, self.observer = log, observer
        log.attach(env)
        self.desk = CountingDesk(env, len(cell.fleet))
        self.columns = self.desk.columns
        self.plan = RoundPlan((), budget_s=cell.budget_s)
        self.view: View | None = None
        self.everybody: View | None = None  # at the present version
        self.left_out: list[dict[str, Any]] = []  # rows of devices that cannot meet T_th
        self.at_once = FIRST_RELAY

    def versions(self, rounds: range, state: State) -> State:
        """Make versions of the model, one after the other; the last state."""
        for g in rounds:
            state = self.next_version(g, state, is_last=g == rounds[-1])
            if self.stop.reached:
                break
        return state

    def next_version(self, g: int, state: State, is_last: bool) -> State:
        """`edgesim.clocks.server_loop.ServerLoop.next_version` without processes."""
        rules, desk, env, cell = self.rules, self.desk, self.env, self.cell
        start_s = env.now
        desk.begin_version(g, rules.max_staleness)
        desk.remember(g, state)
        desk.tick_at_s = start_s + rules.tick_s(cell.budget_s)
        self.plan, self.view = RoundPlan((), budget_s=cell.budget_s), None
        self.everybody = cell.view(g)
        while (batch := rules.batch(desk)) is None:
            if rules.room(desk) != 0:
                if self.relay(g, state):
                    continue
                self.hand_out(g, state)
                if self.view and rules.asks_others(desk, self.view, self.plan):
                    continue
            if not desk.out and desk.tick_at_s == float("inf"):
                if not desk.held:
                    env.advance_to(env.now + empty_round_s(cell, g))
                batch = list(desk.held)
                break
            back = desk.next_instants(rules.quiet_landings(desk), rules.max_staleness)
            if cell.keeps_promises:
                for k in back.tolist():
                    cell.uplink.release(k)
        is_last = self.stop.look(env.now, desk.jobs) or is_last
        unfinished = self.interrupted() if is_last and desk.out else []
        return self.make_version(g, state, batch, unfinished, start_s, is_last)

    def hand_out(self, g: int, state: State) -> None:
        """Start jobs on devices that are there and free."""
        desk, cell = self.desk, self.cell
        view = self.view = self.seen_by_the_method()
        plan = make_plan(cell, self.method, state, view)
        self.plan = plan.after(self.plan)
        grants = grants_of(plan)
        if cell.keeps_promises:
            cell.begin_round(plan, others_go_on=True)
        if len(grants):
            self.start(grants, played(cell, self.method, grants, self.env.now), g, self.env.now)
        desk.leave_out(plan)
        for outcome in left_out(cell, view, plan):
            job = JobRecord(desk.jobs, g, -1, self.env.now)
            self.left_out.append(device_row(g, outcome, ()) | job_columns(job, outcome))
            desk.jobs, desk.asked = desk.jobs + 1, desk.asked + 1
        desk.turn += 1

    def start(self, grants: Grants, spans: DeviceSpans, g: int, start_s: float | Array) -> None:
        """Hand out the jobs of some grants, in their order, now or at given instants [S], s."""
        desk, cell, count = self.desk, self.cell, len(grants)
        self.charge_idle_power(grants.device, start_s)
        numbers = np.arange(desk.jobs, desk.jobs + count)
        late_s = late_after_s(cell.budget_s)
        desk.fly(self.columns.add(spans, grants, numbers, g, start_s, late_s))
        desk.jobs, desk.asked = desk.jobs + count, desk.asked + count

    def relay(self, g: int, state: State) -> bool:
        """Hand out one job now, and one at each of the next ends; False: see `hand_out`."""
        desk, cell, view = self.desk, self.cell, self.everybody
        assert view is not None  # made when the version began
        most = 0 if desk.left_out else min(self.rules.relayed(desk), self.at_once)
        everyone = len(view.idle) == len(cell.fleet) and math.isinf(cell.budget_s)
        if most < 1 or self.rules.room(desk) != 1 or cell.keeps_promises or not everyone:
            return False
        if (relay := find_relay(desk, cell, self.method, state, view, most)) is None:
            return False
        grants, start_s = relay.grants, relay.start_s
        self.at_once = max(FIRST_RELAY, 2 * len(grants))
        desk.land(relay.ends, self.rules.max_staleness)
        self.start(grants, relay.played, g, start_s)
        desk.turn += len(grants)
        self.env.advance_to(float(start_s[-1]))
        self.view, last = view, grants.device[-1:]
        self.plan = cell.plan(demand_of(self.method, state, view, last), view).after(self.plan)
        return True

    def seen_by_the_method(self) -> View:
        """What the server knows now; idle are those that are there, and not at work already."""
        rules, desk, view = self.rules, self.desk, self.everybody
        assert view is not None  # made when the version began
        free = desk.is_free.copy()
        free[[*rules.waiting(desk), *desk.left_out]] = False
        idle = view.idle[free[view.idle]]
        out = np.flatnonzero(~desk.is_free)
        view = replace(view, idle=idle, now_s=self.env.now, in_flight=out)
        return replace(view, turn=desk.turn, handed_out=desk.jobs, wanted=rules.room(desk))

    def interrupted(self) -> list[int]:
        """Interrupt everybody at work, at the end of the run."""
        desk, now_s = self.desk, self.env.now
        where = desk.out.jobs
        where = where[np.argsort(self.columns.rows["job"][where])]
        grants, start_s = self.columns.grants(where), self.columns.rows["dispatched_s"][where]
        cut = played(self.cell, self.method, grants, start_s, now_s)
        self.columns.cut(where, cut, grants, UNFINISHED)
        desk.out.count = 0
        desk.is_free[:] = True
        desk.idle_since_s[grants.device] = now_s
        return where.tolist()

    def make_version(
        self,
        g: int,
        state: State,
        batch: list[Any],
        unfinished: list[int],
        start_s: float,
        is_last: bool,
    ) -> State:
        """Close version g: its rows, its evaluation, its checkpoint."""
        desk, cell, log, now_s = self.desk, self.cell, self.log, self.env.now
        self.columns.use(np.array(batch, dtype=int), g, self.rules.weight)
        used = set(batch)
        desk.held = [job for job in desk.held if job not in used]
        ended = [*batch, *desk.gone, *unfinished, *(desk.held if is_last else ())]
        desk.gone = []
        view = self.view or self.everybody
        assert view is not None  # made when the version began
        if cell.fleet.idle_power_w.any():
            present = np.array(drawing_idle_power(cell, view, g, overlapping=True), dtype=int)
            self.charge_idle_power(present[desk.is_free[present]], now_s)
            np.copyto(desk.idle_since_s, now_s, where=desk.is_free)
        spans = self.columns.take_spans(g, now_s)
        rows = self.columns.take_rows(np.array(ended, dtype=int))
        rows["round"] = np.full(len(rows["job"]), g)
        if self.left_out:
            rows, self.left_out = with_rows(rows, self.left_out), []
        state = self.method.aggregate(state, view, ())
        state = self.method.observe(state, Report(g, now_s - start_s, ()))
        scores = self.observer.scores(g, state)
        status = Counter(rows["status"].tolist())
        received = len(rows["job"]) - sum(status[name] for name in NOT_RECEIVED)
        rho = rows["rho"][rows["status"] != "infeasible"]
        about = received, rho, scores, cell.budget_s
        block = round_block(g, start_s, now_s, self.plan, {**spans}, {**rows}, *about)
        waiting = {
            "dispatched": desk.asked,
            "held": len(desk.held),
            "in_flight": len(desk.out),
        }
        block["rounds"] |= columns_of_jobs(block["device_rounds"], waiting)
        log.add(block)
        self.observer.finished(g, state, lambda: record_of_jobs(desk, state))
        return state

    def charge_idle_power(self, devices: Array, until_s: float | Array) -> None:
        """Charge idle power to devices that have waited, until an instant or one of each, s."""
        power_w, since_s = self.cell.fleet.idle_power_w, self.desk.idle_since_s
        waited = (power_w[devices] > 0.0) & (since_s[devices] < until_s)
        k = devices[waited]
        if len(k):
            ends_s = np.broadcast_to(until_s, devices.shape)[waited]
            begun = np.ones(len(k), dtype=bool)
            idle = SpanColumns("idle", k, begun, since_s[k].copy(), ends_s)
            self.columns.waited(charged(idle, self.cell.ledger.idle(k)))
