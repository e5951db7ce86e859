"""The server's loop for overlapping jobs that only count time: a heap of ends instead of processes.

Nothing is trained, and no job depends on another, so that all of a job is known when it is handed
out (`edgesim.engine.vectorised.device_spans`). The tables have the bytes that
`edgesim.clocks.server_loop` writes with a process per device.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgesim.clocks.flights import DISCARDED, Desk
from edgesim.clocks.job_columns import JobColumns, late_after_s
from edgesim.clocks.rules import Rules
from edgesim.clocks.server_loop import view_of_everybody
from edgesim.engine.rounds import UNFINISHED, empty_round_s, left_out, make_plan
from edgesim.engine.stop_rule import StopRule
from edgesim.engine.vectorised.device_spans import SpanColumns, charged, take_part
from edgesim.engine.vectorised.round_loop import NO_GRANTS, CountedMethod, SteppedEnvironment
from edgesim.network.cell import Cell
from edgesim.network.grants import Grants
from edgesim.records.event_log import EventLog
from edgesim.records.rows_from_spans import (
    COUNTED,
    ENDINGS,
    NAN,
    JobRecord,
    device_row,
    forecast_columns,
    job_columns,
    plan_row,
    round_row,
    total,
)
from edgesim.records.table_files import Columns
from fl.contracts import Array, Grant, Observer, Report, RoundPlan, State, View

NOT_RECEIVED = ("discarded", "unfinished", "infeasible")


@dataclass(slots=True, eq=False)
class CountedFlight:
    """A job that is not trained; with the names of `edgesim.clocks.flights.Flight`.

    Args:
        number: of the job.
        device: k.
        base: the method's state at the dispatch.
        version: of the model that the device downloaded.
        dispatched_s: simulated time of the dispatch, s.
        slot: its place in the columns.
        grants: of its dispatch.
        place: of its own among them.
        landed_s: simulated time at which it ended, s; nan: the device is still at work.
    """

    number: int
    device: int
    base: State
    version: int
    dispatched_s: float
    slot: int
    grants: Grants
    place: int
    landed_s: float = math.nan

    @property
    def grant(self) -> Grant:
        return self.grants[self.place]

    @property
    def update(self) -> None:
        return None

    @property
    def at_start(self) -> tuple[float, ...]:
        return ()


class HeapDesk(Desk):
    """The jobs of a run, whose ends are known."""

    def __init__(self, env: SteppedEnvironment, devices: int) -> None:
        super().__init__(env, devices)
        self.clock = env
        self.out: dict[int, Any] = {}
        self.held: list[Any] = []
        self.gone: list[Any] = []
        self.ends: list[tuple[float, int, CountedFlight]] = []  # heap of (end, job, flight)
        self.discarded: dict[int, int] = {}  # job -> staleness
        self.tick_at_s = float("inf")
        self.is_free = np.ones(devices, dtype=bool)  # not at work

    @property
    def ticked(self) -> bool:
        return self.env.now >= self.tick_at_s

    def fly(self, flights: Sequence[CountedFlight], ends_s: Sequence[float]) -> None:
        """Take jobs that are at work until ``ends_s``."""
        for flight, end_s in zip(flights, ends_s, strict=True):
            self.out[flight.device] = flight
            heapq.heappush(self.ends, (end_s, flight.number, flight))
        self.is_free[[flight.device for flight in flights]] = False

    def next_instants(self, quiet: float, max_staleness: int | None) -> list[CountedFlight]:
        """Go on to the next ends, or to the tick, and take them in by device.

        Args:
            quiet: how many jobs may end before anything else can happen.
            max_staleness: see `Desk.collect`.
        """
        ends, landed, now_s = self.ends, list[CountedFlight](), self.env.now
        while True:
            next_s = min(ends[0][0] if ends else math.inf, self.tick_at_s)
            enough = len(landed) > quiet or next_s == self.tick_at_s
            if landed and enough and next_s > now_s:  # all of an instant together
                break
            now_s = next_s
            while ends and ends[0][0] <= now_s:
                flight = heapq.heappop(ends)[2]
                flight.landed_s = now_s
                landed.append(flight)
            if not landed:  # the tick
                break
        self.clock.advance_to(now_s)
        landed.sort(key=lambda flight: (flight.landed_s, flight.device))
        devices = [flight.device for flight in landed]
        self.is_free[devices] = True
        self.idle_since_s[devices] = [flight.landed_s for flight in landed]
        for flight in landed:
            del self.out[flight.device]
            staleness = self.version - flight.version
            if max_staleness is not None and staleness > max_staleness:
                self.discarded[flight.number] = staleness
                self.gone.append(flight)
            else:
                self.held.append(flight)
        return landed


class HeapLoop:
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
        self.desk, self.columns = HeapDesk(env, len(cell.fleet)), JobColumns()
        self.plan = RoundPlan((), budget_s=cell.budget_s)
        self.view: View | None = None
        self.everybody: View | None = None  # at the present version
        self.left_out: list[dict[str, Any]] = []  # rows of devices that cannot meet T_th

    def restore(
        self, state: State, arrays: dict[str, Array], record: dict[str, Any], until_s: float
    ) -> None:
        """Take up the jobs of a checkpoint: `edgesim.clocks.resumed_jobs.play_again`."""
        desk, flights = self.desk, record["flights"]
        desk.jobs, desk.turn = record["jobs"], record["turn"]
        desk.idle_since_s = np.array(record["idle_since_s"])
        if not flights:
            return
        bases = state.bases_from_arrays(arrays, record["bases"])
        grants = columns_of([Grant(**each["grant"]) for each in flights])
        start_s, version, number = (
            np.array([each[name] for each in flights])
            for name in ("dispatched_s", "version", "number")
        )
        stages, payload = self.method.orders(grants)
        played = take_part(self.cell, grants, stages, payload, start_s, float("inf"))
        late_s = late_after_s(self.cell.budget_s)
        slots = self.columns.add(played, grants, number, version, start_s, late_s)
        self.columns.forget_ended(until_s)
        for i, each in enumerate(flights):
            job = each["number"], int(grants.device[i]), bases[each["base"]], each["version"]
            flight = CountedFlight(*job, each["dispatched_s"], slots[i], grants, i)
            if each["landed_s"] is None:
                desk.fly([flight], [float(played.busy_until_s[i])])
            else:
                flight.landed_s = each["landed_s"]
                desk.held.append(flight)
        desk.held.sort(key=lambda flight: (flight.landed_s, flight.device))
        if self.cell.keeps_promises and desk.out:
            promised = [flight.grant for flight in desk.out.values()]
            self.cell.begin_round(RoundPlan(promised), others_go_on=True)

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
        desk.begin_version(g, None)
        desk.tick_at_s = start_s + rules.tick_s(cell.budget_s)
        self.plan, self.view = RoundPlan((), budget_s=cell.budget_s), None
        self.everybody = cell.view(g)
        while (batch := rules.batch(desk)) is None:
            if rules.room(desk) != 0:
                self.hand_out(g, state)
            if not desk.out and desk.tick_at_s == float("inf"):
                if not desk.held:
                    env.advance_to(env.now + empty_round_s(cell, g))
                batch = list(desk.held)
                break
            landed = desk.next_instants(rules.quiet_landings(desk), rules.max_staleness)
            self.columns.land([flight.slot for flight in landed])
            if cell.keeps_promises:
                for flight in landed:
                    cell.uplink.release(flight.device)
        is_last = self.stop.look(env.now, desk.jobs) or is_last
        unfinished = self.interrupted() if is_last and desk.out else []
        return self.make_version(g, state, batch, unfinished, start_s, is_last)

    def hand_out(self, g: int, state: State) -> None:
        """Start jobs on devices that are there and free."""
        desk, cell = self.desk, self.cell
        view = self.view = self.seen_by_the_method()
        plan = self.plan = make_plan(cell, self.method, state, view)
        grants = plan.grants if isinstance(plan.grants, Grants) else NO_GRANTS
        if cell.keeps_promises:
            cell.begin_round(plan, others_go_on=True)
        if len(grants):
            self.start(grants, g, state)
        for outcome in left_out(cell, view, plan):
            job = JobRecord(desk.jobs, g, -1, self.env.now)
            self.left_out.append(device_row(g, outcome, ()) | job_columns(job, outcome))
            desk.jobs, desk.asked = desk.jobs + 1, desk.asked + 1
        desk.turn += 1

    def start(self, grants: Grants, g: int, state: State) -> None:
        """Hand out the jobs of some grants, in their order."""
        desk, cell, count, now_s = self.desk, self.cell, len(grants), self.env.now
        self.charge_idle_power(grants.device)
        stages, payload = self.method.orders(grants)
        played = take_part(cell, grants, stages, payload, now_s, float("inf"))
        numbers = np.arange(desk.jobs, desk.jobs + count)
        late_s = late_after_s(cell.budget_s)
        slots = self.columns.add(played, grants, numbers, g, now_s, late_s)
        named = zip(numbers.tolist(), grants.device.tolist(), slots, strict=True)
        flights = [
            CountedFlight(number, device, state, g, now_s, slot, grants, place)
            for place, (number, device, slot) in enumerate(named)
        ]
        desk.fly(flights, played.busy_until_s.tolist())
        desk.jobs, desk.asked = desk.jobs + count, desk.asked + count

    def seen_by_the_method(self) -> View:
        """What the server knows now; idle are those that are there, and not at work already."""
        rules, desk, view = self.rules, self.desk, self.everybody
        assert view is not None  # made when the version began
        free = desk.is_free.copy()
        free[rules.waiting(desk)] = False
        idle = view.idle[free[view.idle]]
        out = np.flatnonzero(~desk.is_free)
        now_s = self.env.now
        wanted, turn = rules.room(desk), desk.turn
        return replace(view, idle=idle, now_s=now_s, turn=turn, wanted=wanted, in_flight=out)

    def interrupted(self) -> list[CountedFlight]:
        """Interrupt everybody at work, at the end of the run."""
        desk, now_s = self.desk, self.env.now
        flights = sorted(desk.out.values(), key=lambda flight: flight.number)
        grants = columns_of([flight.grant for flight in flights])
        slots = [flight.slot for flight in flights]
        start_s = np.array([flight.dispatched_s for flight in flights])
        stages, payload = self.method.orders(grants)
        played = take_part(self.cell, grants, stages, payload, start_s, now_s)
        self.columns.cut(slots, played, grants, now_s)
        desk.out.clear()
        desk.is_free[:] = True
        desk.idle_since_s[grants.device] = now_s
        return flights

    def make_version(
        self,
        g: int,
        state: State,
        batch: Sequence[Any],
        unfinished: list[CountedFlight],
        start_s: float,
        is_last: bool,
    ) -> State:
        """Close version g: its rows, its evaluation, its checkpoint."""
        desk, cell, log, now_s = self.desk, self.cell, self.log, self.env.now
        used = {flight.number for flight in batch}
        desk.held = [flight for flight in desk.held if flight.number not in used]
        ended = [*batch, *desk.gone, *unfinished, *(desk.held if is_last else ())]
        desk.gone = []
        view = self.view or self.everybody
        assert view is not None  # made when the version began
        present = np.array(view_of_everybody(cell, view, g, overlapping=True), dtype=int)
        self.charge_idle_power(present[desk.is_free[present]])
        desk.idle_since_s[desk.is_free] = now_s
        rows = self.columns.take_rows([flight.slot for flight in ended])
        rows = self.judged(g, rows, used, {flight.number for flight in unfinished})
        state = self.method.aggregate(state, view, ())
        state = self.method.observe(state, Report(g, now_s - start_s, ()))
        scores = self.observer.scores(g, state)
        spans = self.columns.take_spans(g, now_s)
        totals = {name: total(rows[name].tolist()) for name in COUNTED}
        totals["energy_j"] = total(spans["energy_j"].tolist())
        status = Counter(rows["status"].tolist())
        received = len(rows["job"]) - sum(status[name] for name in NOT_RECEIVED)
        rho = rows["rho"][rows["status"] != "infeasible"]
        plan = replace(self.plan, forecast=None)
        row = round_row(g, start_s, now_s, plan, status, received, rho, totals, scores)
        stale = rows["staleness"][rows["version_out"] >= 0]
        waiting: dict[str, float] = {
            "dispatched": desk.asked,
            "held": len(desk.held),
            "in_flight": len(desk.out),
        }
        waiting |= {name: status[name] for name in ENDINGS}
        mean, most = (float(stale.mean()), float(stale.max())) if len(stale) else (NAN, NAN)
        waiting |= {"staleness_mean": mean, "staleness_max": most}
        block: dict[str, Columns] = {
            "spans": {**spans},
            "device_rounds": {**rows},
            "rounds": row | {name: [value] for name, value in waiting.items()},
            "plans": plan_row(g, plan, cell.budget_s),
            "upload_forecasts": forecast_columns(g, plan),
        }
        log.add(block)
        self.observer.finished(g, state, lambda: desk.record(state))
        return state

    def judged(
        self, g: int, rows: dict[str, Array], used: set[int], unfinished: set[int]
    ) -> dict[str, Array]:
        """Rows of device_rounds with what became of each job, and those of devices left out."""
        jobs, status = rows["job"].tolist(), rows["status"]
        is_used = np.array([job in used for job in jobs], dtype=bool)
        staleness = np.where(is_used, g - rows["version_in"], 0)
        for place, job in enumerate(jobs):
            if job in unfinished:
                status[place] = UNFINISHED
            elif job in self.desk.discarded:
                status[place], staleness[place] = DISCARDED, self.desk.discarded.pop(job)
        weight = np.zeros(len(jobs))
        for tau in set(staleness[is_used].tolist()):
            weight[is_used & (staleness == tau)] = self.rules.weight(tau)
        rows |= {"staleness": staleness, "weight": weight}
        rows |= {"version_out": np.where(is_used, g + 1, -1), "round": np.full(len(jobs), g)}
        return self.with_left_out(rows) if self.left_out else rows

    def with_left_out(self, rows: dict[str, Array]) -> dict[str, Array]:
        """The rows with those of devices that cannot meet the threshold."""
        more, self.left_out = self.left_out, []
        joined = {
            name: np.append(values, np.array([row[name] for row in more], dtype=values.dtype))
            for name, values in rows.items()
        }
        order = np.lexsort((joined["job"], joined["device"]))
        return {name: values[order] for name, values in joined.items()}

    def charge_idle_power(self, devices: Array) -> None:
        """Charge idle power until now to devices that have waited."""
        power_w, since_s = self.cell.fleet.idle_power_w, self.desk.idle_since_s
        k = devices[(power_w[devices] > 0.0) & (since_s[devices] < self.env.now)]
        if len(k):
            begun, until_s = np.ones(len(k), dtype=bool), np.full(len(k), self.env.now)
            idle = SpanColumns("idle", k, begun, since_s[k].copy(), until_s)
            self.columns.waited(charged(idle, self.cell.ledger.idle(k)))


def columns_of(grants: Sequence[Grant]) -> Grants:
    """Grants as columns."""
    rows = [(one.device, one.share, one.rho, one.cpu_hz, one.power_w) for one in grants]
    device, *others = zip(*rows, strict=True)
    return Grants(np.array(device, dtype=int), *(np.array(each) for each in others))
