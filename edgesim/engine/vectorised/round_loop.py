"""Rounds as arrays, for timing many devices that do not depend on each other.

Nothing is trained here. The method gives what all devices compute and send (``orders``),
`edgesim.engine.vectorised.device_spans` lets that time pass, and the log gets the same rows, byte
for byte, as one process per device (`edgesim.engine.rounds`) would write.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import simpy

from edgesim.engine.participants import empty_round_s, make_plan
from edgesim.engine.rounds import SLACK
from edgesim.engine.stop_rule import StopRule
from edgesim.engine.vectorised.device_spans import NOTHING_PLAYED, idle_spans, take_part
from edgesim.engine.vectorised.round_tables import device_columns, span_columns
from edgesim.network.cell import Cell
from edgesim.network.fading.selective import SelectiveFading
from edgesim.network.flows.ideal_downlink import IdealDownlink
from edgesim.network.grants import Grants, grants_of
from edgesim.network.uplink import check_shares
from edgesim.records.event_log import EventLog
from edgesim.records.rows_from_spans import round_block
from fl.contracts import Array, MethodHooks, Observer, Payload, Report, Stage, State


class CountedMethod(MethodHooks, Protocol):
    """A method whose costs are known without training, such as `fl.timing_only.Counted`."""

    def orders(self, grants: Grants) -> tuple[tuple[Stage, ...], Payload]:
        """Stages and payload of all devices of the grants, as arrays [S]."""
        ...

    def candidates(self, turns: range) -> Array | None:
        """Devices [occasions, n] in the order in which they are tried on these occasions.

        Where one job is handed out and others are at work, `select` is the first that is idle, if
        one is. None: it follows another rule.
        """
        ...


class SteppedEnvironment(simpy.Environment):
    """A clock that is set from round to round, without events."""

    def advance_to(self, time_s: float) -> None:
        self._now = time_s  # run(until=time_s) adds the difference to now, which rounds


CLOCKS = ("synchronous", "deadline")  # those that arrays can play
OVERLAPPING = ("buffered", "asynchronous", "window")  # those of `edgesim.clocks.vectorised`


def needs_processes(cell: Cell, clock: str, trained: bool) -> bool:
    """True if anything is trained, a device can depend on another or fail, or for another clock.

    Where jobs overlap (`edgesim.clocks.vectorised`) also if the channel changes.
    """
    coupled = cell.uplink.coupled or not isinstance(cell.downlink, IdealDownlink)
    fails = bool(np.any(cell.fleet.failure_rate_hz > 0.0)) or cell.absences is not None
    irregular = not cell.channel.by_blocks or cell.uplink.repetitions is not None
    irregular = irregular or cell.uplink.service is not None or cell.channel.estimate is not None
    irregular = irregular or cell.channel.single is not None
    irregular = irregular or isinstance(cell.channel.fading, SelectiveFading)
    irregular = irregular or bool(cell.running.states)
    counted = clock in CLOCKS or (clock in OVERLAPPING and cell.channel.static)
    return trained or coupled or irregular or fails or not counted


def serve(
    clock: str,
    env: SteppedEnvironment,
    cell: Cell,
    method: CountedMethod,
    log: EventLog,
    observer: Observer,
    rounds: range,
    state: State | None = None,
    stop: StopRule | None = None,
    jobs: int = 0,
) -> State:
    """`edgesim.clocks.server_loop.serve` without processes; returns the last state.

    Args:
        clock: synchronous, or deadline: a round ends at the threshold at the latest.
        env: the clock of ``cell``.
        cell: devices, links and band.
        method: says who takes part and what that costs.
        log: takes the rows.
        observer: writes the checkpoint.
        rounds: the rounds still to play.
        state: after the round before; None starts anew.
        stop: ends the run before the last of the rounds.
        jobs: that were handed out before.
    """
    stop = stop or StopRule()
    log.attach(env)
    state = method.start() if state is None else state
    longest_s = cell.budget_s * (1.0 + SLACK) if clock == "deadline" else math.inf
    for g in rounds:
        start_s, view = env.now, cell.view(g)
        plan = make_plan(cell, method, state, view)
        grants, played = grants_of(plan), NOTHING_PLAYED
        if len(grants):
            check_shares(grants.share.tolist())
            stages, payload = method.orders(grants)
            played = take_part(cell, grants, stages, payload, start_s, start_s + longest_s)
            env.advance_to(float(played.busy_until_s.max()))
        else:
            env.advance_to(start_s + empty_round_s(cell, g))
        idle = idle_spans(cell, view, played, grants, start_s, env.now)
        state = method.aggregate(state, view, ())
        state = method.observe(state, Report(g, env.now - start_s, ()))
        jobs += len(plan.grants) + len(plan.infeasible)
        stop.look(env.now, jobs)
        scores = observer.scores(g, state)
        spans = span_columns(g, [*played.spans, idle])
        late_s = cell.budget_s * (1.0 + SLACK)
        rows = device_columns(g, plan, grants, played, idle, start_s, late_s)
        about = int(played.arrived.sum()), grants.rho, scores, cell.budget_s
        log.add(round_block(g, start_s, env.now, plan, {**spans}, {**rows}, *about))
        observer.finished(g, state)
        if stop.reached:
            break
    return state
