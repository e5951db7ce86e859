"""Rounds without processes, for timing many devices: the servers of `edgesim.engine.rounds`, where no device meets another.

Nothing is trained here. The method says what all devices compute and send (`orders`), `edgesim.engine.vectorised.device_batch` lets that time
pass, and the log gets the same rows as one process per device would write, byte for byte.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgesim.engine.rounds import SLACK, empty_round_s, make_plan
from edgesim.engine.vectorised.device_batch import play, waiting
from edgesim.engine.vectorised.table_rows import rows
from edgesim.network.cell import Cell
from edgesim.network.grants import Grants
from edgesim.network.link import IdealDownlink, check_shares
from edgesim.records.event_log import EventLog
from fl.contracts import Observer, Report, State

NOBODY = Grants(np.zeros(0, dtype=int), *(np.zeros(0) for _ in range(4)))


@dataclass
class Clock:
    """Simulated time where nobody waits for events, s."""

    now: float


def needs_processes(cell: Cell, trained: bool) -> bool:
    """Is anything trained, or can a device's round depend on another device or on a failure?"""
    meet = cell.uplink.reclaims or not isinstance(cell.downlink, IdealDownlink)
    return trained or meet or bool(np.any(cell.fleet.failure_rate_hz > 0.0))


def synchronous(*run: Any) -> State:
    """Every round lasts until everybody is back: `edgesim.engine.rounds.synchronous`. Args: those of `serve` but its first."""
    return serve(lambda cell, start_s: math.inf, *run)


def deadline(*run: Any) -> State:
    """A round ends at the threshold at the latest: `edgesim.engine.rounds.deadline`. Args: those of `serve` but its first."""
    return serve(lambda cell, start_s: start_s + cell.budget_s * (1.0 + SLACK), *run)


def serve(
    until: Callable[[Cell, float], float],
    clock: Clock,
    cell: Cell,
    method: Any,
    trainer: Any,
    log: EventLog,
    observer: Observer,
    rounds: range,
    state: State | None = None,
) -> State:
    """`edgesim.engine.rounds.serve` of a method that has ``orders`` (`fl.timing_only.Counted`); the trainer has nothing to do.

    Args:
        until: (cell, start of the round) -> when it ends at the latest, s.
    """
    log.attach(clock)
    state = method.start() if state is None else state
    for g in rounds:
        start_s, view = clock.now, cell.view(g)
        plan = make_plan(cell, method, state, view)
        grants, played = plan.grants or NOBODY, None
        if len(grants):
            check_shares(grants.share.tolist())
            until_s, (stages, payload) = until(cell, start_s), method.orders(grants)
            played = play(cell, grants, stages, payload, start_s, until_s)
            clock.now = float(played.busy_until_s.max())
        else:
            clock.now = start_s + empty_round_s(cell, g)
        idle = waiting(cell, view, played, grants, start_s, clock.now)
        state = method.observe(
            method.aggregate(state, view, ()), Report(g, clock.now - start_s, ())
        )
        scores = observer.scores(g, state)
        log.add(rows(g, plan, grants, played, idle, start_s, clock.now, cell.budget_s, scores))
        observer.finished(g, state)
    return state
