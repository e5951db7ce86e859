"""The jobs of a run: which devices are out, what has arrived and waits, what has ended."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import simpy

from edgesim.engine.interruptions import event_at
from fl.contracts import Array, Grant, Outcome, RoundPlan, State, Update

DISCARDED = "discarded"
AT_THE_END: Any = 9  # priority of an event behind all of its instant; SimPy's own are 0 and 1


@dataclass(eq=False)
class Flight:
    """One job of one device, from its dispatch to its end.

    Args:
        number: of the job, in the order of dispatch.
        update: promise of its result; None: the device was left out as infeasible.
        grant: what the device may use.
        base: the method's state when the job was handed out.
        version: of the model that the device downloaded.
        dispatched_s: simulated time of the dispatch, s.
        process: the device's part; its value is the outcome.
        outcome: how it ended; None: the device is still at work.
        at_start: state of its hardware when it began; empty: it has none.
        landed_s: simulated time at which it ended, s; nan: the device is still at work.
    """

    number: int
    update: Update | None
    grant: Grant
    base: State
    version: int
    dispatched_s: float
    process: simpy.Process | None = None
    outcome: Outcome | None = None
    at_start: Sequence[float] = ()
    landed_s: float = math.nan

    @property
    def ended(self) -> Outcome:
        """The outcome of a job that has ended."""
        assert self.outcome is not None  # only flights that have landed are asked
        return self.outcome


def in_device_order(flights: Sequence[Flight]) -> list[Flight]:
    """Sorted by device, and of one device by dispatch: never by arrival."""
    return sorted(flights, key=lambda flight: (flight.grant.device, flight.number))


class Desk:
    """Where the server keeps its jobs.

    Args:
        env: the simulation environment.
        devices: K, devices of the cell.

    Attributes:
        out: device -> its job, of devices at work.
        held: jobs that have arrived and are not used yet, in order of arrival.
        gone: jobs that have ended since the last version and will not be used.
        too_stale: those of them whose updates have arrived, for `MethodHooks.discard`.
        to_retain: jobs whose devices have finished training, for `MethodHooks.retain`.
        version: g, of the model that is handed out now.
        jobs: how many jobs were handed out.
        turn: on how many occasions.
        asked: how many jobs were handed out since the last version.
        void: how many more were, before the server failed.
        in_vain: how many jobs, or waits for a device, have ended without an update since one
            arrived, or since the last version.
        saved: the state that the server has stored; None: it never fails.
        tick: an instant that the clock has set itself; None: none.
        idle_since_s: when each device that is not out began to wait [K], s.
    """

    def __init__(self, env: simpy.Environment, devices: int) -> None:
        self.env = env
        self.out: dict[int, Flight] = {}
        self.held: list[Flight] = []
        self.gone: list[Flight] = []
        self.too_stale: list[Flight] = []
        self.to_retain: list[Flight] = []
        self.version = self.jobs = self.turn = self.asked = self.void = self.in_vain = 0
        self._left_out: tuple[float, dict[int, float]] = (env.now, {})
        self.saved: State = None
        self.tick: simpy.Event | None = None
        self.idle_since_s: Array = np.full(devices, env.now)
        self._landing: list[Flight] = []
        self._bell = env.event()
        self._starts: Counter[int] = Counter()  # of each device from the present version

    @property
    def left_out(self) -> dict[int, float]:
        """Devices that plans of this instant have left out, since the last version if it is of it.

        Each with the energy that its job takes, J; inf: that is not what it lacks. Later they are
        asked again: gains, batteries and hot processors change.
        """
        at_s, devices = self._left_out
        return devices if at_s == self.env.now else {}

    def leave_out(self, plan: RoundPlan) -> None:
        """Ask those whom a plan leaves out no more at this instant."""
        lacking_j = {k: plan.too_weak.get(k, math.inf) for k in plan.infeasible}
        self._left_out = (self.env.now, self.left_out | lacking_j)

    def begin_version(self, version: int, max_staleness: int | None) -> None:
        """Go on to the next version of the model, without what waits and is too old for it.

        Args:
            version: g.
            max_staleness: see `fresh`.
        """
        self.version, self.tick = version, None
        self.asked = self.void = self.in_vain = 0
        self._starts.clear()
        self._left_out = (self.env.now, {})
        self.held = self.fresh(self.held, max_staleness)

    def fresh(self, arrived: Sequence[Flight], max_staleness: int | None) -> list[Flight]:
        """Those of some jobs that are not too old for the present version; others are discarded.

        Staleness counts from the version of the download to the one that the update changes:
        Nguyen et al. (FedBuff), AISTATS 2022, bounded staleness.

        Args:
            arrived: with updates that the server has received.
            max_staleness: older updates are discarded; None: none are.
        """
        found = []
        for flight in arrived:
            staleness = self.version - flight.version
            if max_staleness is None or staleness <= max_staleness:
                found.append(flight)
                continue
            flight.outcome = replace(
                flight.ended, status=DISCARDED, received=False, staleness=staleness
            )
            self.gone.append(flight)
            self.too_stale.append(flight)
        return found

    def again(self, device: int) -> int:
        """How many jobs of the device have started from the present version."""
        return self._starts[device]

    def start(self, flight: Flight) -> None:
        """Take a job whose device begins, or one of a device that was left out."""
        self.jobs, self.asked = self.jobs + 1, self.asked + 1
        self._starts[flight.grant.device] += 1
        self.follow(flight)

    def follow(self, flight: Flight) -> None:
        """Notice when a job ends."""
        if flight.process is None:
            self.gone.append(flight)
            return
        self.out[flight.grant.device] = flight
        callbacks = flight.process.callbacks
        assert callbacks is not None  # the process has just begun
        callbacks.append(partial(self._land, flight))

    def devices_held(self) -> list[int]:
        """Devices of the jobs that have arrived and wait."""
        return [flight.grant.device for flight in self.held]

    def flights(self) -> list[Flight]:
        """The jobs that are at work or wait, in the order of dispatch."""
        return sorted([*self.out.values(), *self.held], key=lambda flight: flight.number)

    def _land(self, flight: Flight, end: simpy.Event) -> None:
        if isinstance(end.value, Exception):  # raised where the server takes the job in
            end.defused = True
        self._landing.append(flight)
        if not self._bell.triggered:
            self._bell.succeed()

    def until_something_happens(self, also: simpy.Event | None = None) -> simpy.Event:
        """The next end of a job, the clock's own tick, or another event."""
        self._bell = self.env.event()
        if self._landing:
            self._bell.succeed()
        waiting = self.tick is not None and not self.tick.processed
        happens = self._bell | self.tick if waiting and self.tick is not None else self._bell
        return happens if also is None else happens | also

    @property
    def ticked(self) -> bool:
        """Has the instant that the clock had set itself passed?"""
        return self.tick is not None and self.tick.processed

    def collect(self, max_staleness: int | None) -> None:
        """Take in all jobs that have ended, in device order.

        Args:
            max_staleness: see `fresh`.
        """
        for flight in in_device_order(self._landing):
            assert flight.process is not None  # it has just ended
            outcome: Any = flight.process.value
            if not flight.process.ok:
                raise outcome
            del self.out[flight.grant.device]
            self.idle_since_s[flight.grant.device] = self.env.now
            flight.outcome, flight.landed_s = outcome, self.env.now
            fresh = self.fresh([flight] if outcome.received else [], max_staleness)
            self.held += fresh
            self.gone += [] if outcome.received else [flight]
            self.in_vain = 0 if fresh else self.in_vain + 1
            if outcome.trained:
                self.to_retain.append(flight)
        self._landing = []

    def use(self, batch: Sequence[Flight], all_end: bool) -> list[Flight]:
        """Take a batch off what waits; the jobs that have ended and will not be used.

        Args:
            batch: jobs that make the next version.
            all_end: is it the last version, so that nothing that still waits will be used?
        """
        numbers = {flight.number for flight in batch}
        self.held = [flight for flight in self.held if flight.number not in numbers]
        unused, self.gone = [*self.gone, *(self.held if all_end else ())], []
        return unused

    def interrupt(self, cause: str) -> simpy.Event:
        """Interrupt every device that is out; the event of the last one's end."""
        working = [each.process for each in self.out.values() if each.process is not None]
        for process in working:
            if process.is_alive:
                process.interrupt(cause)
        return self.env.all_of(working)

    def end_of_this_instant(self) -> simpy.Event:
        """An event behind every other of this instant, also those that are still to be made.

        SimPy orders events by time, priority and number: arrivals of one instant are then taken in
        together, whatever chains of events of no length lead to them.
        """
        return event_at(self.env, self.env.now, AT_THE_END)
