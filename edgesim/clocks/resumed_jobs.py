"""The jobs that are at work at a checkpoint: what it keeps of them, and how they are played again.

Where every device has its own part of the band, a job depends on nothing but its dispatch: it is
handed out again at its own time, with its own grant, by the state that it started from, and
everything that it had done until the checkpoint happens once more, to the last bit. What was
written of it then is not written again.

Where the band belongs to those that send, an upload depends on others, which may be gone: uploads
then begin again and carry nothing until the band is put back to its last change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from edgesim.clocks.flights import Desk, Flight
from edgesim.engine.interruptions import watch
from edgesim.engine.rounds import take_part
from edgesim.engine.vectorised.round_loop import SteppedEnvironment
from edgesim.network.cell import Cell
from edgesim.records.event_log import EventLog
from fl.contracts import Array, Grant, JobTrainer, MethodHooks, RoundPlan, State

Moment = tuple[float, Callable[[], None]]  # (simulated time, s; what happens at the end of it)


def record_of_run(
    desk: Desk, cell: Cell, log: EventLog, state: State
) -> tuple[dict[str, Array], dict[str, Any]]:
    """The jobs that are at work or wait, the devices and the band, for a checkpoint.

    Args:
        desk: of the server.
        cell: devices and band.
        log: knows how long the uploads that wait have waited for a band.
        state: of the checkpoint.
    """
    arrays, record = record_of_jobs(desk, state)
    if (band := cell.uplink.record()) is not None:
        held = {flight.number: log.waited_s(flight.number) for flight in desk.held}
        record["band"] = band | {"held_waited_s": [*held.items()]}
    return arrays | cell.arrays(), record


def record_of_jobs(desk: Desk, now: State) -> tuple[dict[str, Array], dict[str, Any]]:
    """The jobs that are at work or wait, for a checkpoint: arrays, and a record for JSON.

    Nothing of what they have done is kept: it is played again.

    Args:
        desk: of the server.
        now: the state whose own arrays the checkpoint has anyway.
    """
    flights = desk.flights()
    bases = {id(flight.base): flight.base for flight in flights}
    if desk.saved is not None:
        bases[id(desk.saved)] = desk.saved
    place = {key: i for i, key in enumerate(bases)}
    devices: list[list[int]] = [[] for _ in bases]
    for flight in flights:
        devices[place[id(flight.base)]].append(flight.grant.device)
    arrays, states = now.bases_to_arrays(list(zip(bases.values(), devices, strict=True)))
    jobs = [
        {
            "number": flight.number,
            "version": flight.version,
            "base": place[id(flight.base)],
            "again": flight.update.job.again if flight.update else 0,
            "dispatched_s": flight.dispatched_s,
            "landed_s": None if math.isnan(flight.landed_s) else flight.landed_s,
            "trained": bool(flight.update and flight.update.is_trained),
            "grant": vars(flight.grant),
            **({"at_start": list(flight.at_start)} if flight.at_start else {}),
        }
        for flight in flights
    ]
    counted = {"jobs": desk.jobs, "turn": desk.turn}
    if desk.saved is not None:
        counted["saved"] = place[id(desk.saved)]
    idle = {"idle_since_s": desk.idle_since_s.tolist()}
    return arrays, {**counted, **idle, "bases": states, "flights": jobs}


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
        record: what `record_of_run` made.
        until_s: simulated time of the checkpoint, s.
    """
    bases = state.bases_from_arrays(arrays, record["bases"])
    moments = _moments_of_the_band(cell, record)
    for each in record["flights"]:
        _advance(env, each["dispatched_s"], moments)
        grant, base, g = Grant(**each["grant"]), bases[each["base"]], int(each["version"])
        job = method.configure(base, cell.view(g), grant)
        job = replace(job, again=each["again"]) if each["again"] else job
        (update,) = trainer.submit([job])
        if each["trained"]:  # and with it all that were handed out before, so that nothing waits
            with trainer.uncounted():
                update.result()
        cell.begin_round(RoundPlan((grant,)), others_go_on=True)
        log.begin_job(grant.device, each["number"])
        if "at_start" in each:
            cell.running.restore(grant.device, each["at_start"])
        process = env.process(take_part(env, cell, update, grant, log))
        flight = Flight(each["number"], update, grant, base, g, env.now, process)
        flight.at_start = each.get("at_start", ())
        desk.follow(flight)
        watch(env, cell, [job], {grant.device: process}, one_by_one=True)
    _advance(env, until_s, moments)
    for _, act in moments:  # at the instant of the checkpoint
        act()
    _advance(env, until_s, [])
    desk.collect(None)  # what waits in the buffer was not too stale when it came
    landed_s = {each["number"]: each["landed_s"] for each in record["flights"]}
    for flight in desk.held:
        flight.landed_s = landed_s[flight.number]
    desk.held.sort(key=lambda flight: (flight.landed_s, flight.grant.device))
    desk.to_retain = []
    desk.jobs, desk.turn = int(record["jobs"]), int(record["turn"])
    if "saved" in record:
        desk.saved = bases[record["saved"]]
    desk.idle_since_s = np.array(record["idle_since_s"], float).reshape(len(cell.fleet))
    cell.restore_arrays(arrays, at_work=desk.out)
    log.forget_closed_spans()


def _moments_of_the_band(cell: Cell, record: dict[str, Any]) -> list[Moment]:
    """What happens to the band by others than those that are played again, in order of time."""
    if (band := record.get("band")) is None:
        return []
    uplink = cell.uplink
    uplink.park()
    waited_s = dict(band["held_waited_s"])
    moments: list[Moment] = [
        (
            each["landed_s"],
            partial(uplink.arrive, each["grant"]["device"], waited_s[each["number"]]),
        )
        for each in record["flights"]
        if each["landed_s"] is not None
    ]
    moments.append((band["since_s"], partial(uplink.unpark, band)))
    return sorted(moments, key=lambda moment: moment[0])


def _advance(env: SteppedEnvironment, time_s: float, moments: list[Moment]) -> None:
    """Let everything happen until the end of an instant, and the moments before it."""
    while moments and moments[0][0] < time_s:
        at_s, act = moments.pop(0)
        _advance(env, max(at_s, env.now), [])  # an empty band may have changed long ago
        act()
    while env.peek() <= time_s:
        env.step()
    env.advance_to(time_s)
