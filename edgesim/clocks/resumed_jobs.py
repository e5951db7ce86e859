"""The jobs that were at work at a checkpoint, played again up to it.

Where every device has its slot of the band, a job depends on nothing but its dispatch: it is handed
out again at its own time, with its own grant, by the state that it started from, and everything
that it had done until the checkpoint happens once more, to the last bit. What was written of it
then is not written again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from edgesim.clocks.flights import Desk, Flight
from edgesim.engine.rounds import fail, take_part
from edgesim.engine.vectorised.round_loop import SteppedEnvironment
from edgesim.network.cell import Cell
from edgesim.records.event_log import EventLog
from fl.contracts import Array, Grant, JobTrainer, MethodHooks, RoundPlan, State


def first_dispatch_s(record: dict[str, Any], otherwise_s: float) -> float:
    """When the oldest of the recorded jobs was handed out, s."""
    return min((each["dispatched_s"] for each in record["flights"]), default=otherwise_s)


def play_again(
    desk: Desk,
    env: SteppedEnvironment,
    cell: Cell,
    method: MethodHooks,
    trainer: JobTrainer,
    log: EventLog,
    state: State,
    arrays: dict[str, Array],
    record: dict[str, Any],
    until_s: float,
) -> None:
    """Bring a new desk, and the time, to where they were at a checkpoint.

    Args:
        desk: without jobs.
        env: at `first_dispatch_s`.
        cell: of that environment.
        method: the method's hooks.
        trainer: takes the jobs once more.
        log: with the rows of the checkpoint.
        state: of the checkpoint.
        arrays: of the checkpoint, by name.
        record: what `Desk.record` made.
        until_s: simulated time of the checkpoint, s.
    """
    bases = state.bases_from_arrays(arrays, record["bases"])
    for each in record["flights"]:
        _advance(env, each["dispatched_s"])
        grant, base, g = Grant(**each["grant"]), bases[each["base"]], each["version"]
        job = method.configure(base, cell.view(g), grant)
        job = replace(job, again=each["again"]) if each["again"] else job
        (update,) = trainer.submit([job])
        if each["trained"]:  # and with it all that were handed out before, so that nothing waits
            with trainer.uncounted():
                update.result()
        cell.begin_round(RoundPlan((grant,)), others_go_on=True)
        log.begin_job(grant.device, each["number"])
        process = env.process(take_part(env, cell, update, grant, log))
        desk.follow(Flight(each["number"], update, grant, base, g, env.now, process))
        if np.any(cell.fleet.failure_rate_hz > 0.0):
            env.process(fail(env, cell, g, {grant.device: process}))
    _advance(env, until_s)
    desk.collect(None)  # what waits in the buffer was not too stale when it came
    desk.to_retain = []
    desk.jobs, desk.turn = record["jobs"], record["turn"]
    desk.idle_since_s = np.array(record["idle_since_s"])
    log.forget_closed_spans()


def _advance(env: SteppedEnvironment, time_s: float) -> None:
    """Let everything happen until the end of an instant."""
    while env.peek() <= time_s:
        env.step()
    env.advance_to(time_s)
