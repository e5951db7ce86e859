"""The devices of a cell whose state changes while they work: their place in the simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import simpy

from edgesim.network.grants import Grants
from edgesim.network.hardware.device_hardware import DeviceHardware
from edgesim.network.hardware.device_state import (
    COMPUTING,
    CRASHED,
    RECEIVING,
    SENDING,
    WAITING,
    DeviceState,
    Piece,
    Snapshot,
)
from edgesim.network.hardware.energy_return import enough_again_s
from edgesim.network.tdd_service import ALWAYS, AirTimes
from edgesim.records.span import Span
from fl.contracts import Array, Grant

STATES = "device_states"  # in a checkpoint
FAILED = "failed"  # why a device is interrupted that crashes, or whose battery is empty
Waiting = Generator[simpy.Event, Any, None]


class RunningDevices:
    """Heat, other load, batteries and modems of some devices; all others only compute and send.

    Args:
        env: the simulation environment.
        hardware: device -> what it is made of; devices that are not named have no state.
        air_times: of uplink and downlink.
        capability: g -> z [K] in round g; None: 1 of every device.
    """

    def __init__(
        self,
        env: simpy.Environment,
        hardware: Mapping[int, DeviceHardware] | None = None,
        air_times: AirTimes = (ALWAYS, ALWAYS),
        capability: Callable[[int], Array] | None = None,
    ) -> None:
        self.env, self.air_times, self.capability = env, air_times, capability
        self._overlap = False  # otherwise a crash lasts until the round is closed
        self.states = {k: DeviceState(each, env.now) for k, each in (hardware or {}).items()}
        self._job: dict[int, simpy.Process] = {}  # device -> the process that is watched
        self._changed: dict[int, simpy.Event] = {}  # rung when its activity changes

    # --- one job ------------------------------------------------------------------------------

    def begin_round(self, others_go_on: bool) -> None:
        """Jobs begin, beside those at work or as a round of their own."""
        self._overlap = others_go_on

    @contextmanager
    def at_work(self, k: int) -> Iterator[None]:
        """Around a job of device k: the process is interrupted when the battery is empty.

        Where the device itself fails it is off until `pieces` is asked; where jobs overlap, and
        there is no round to be off in, it waits.
        """
        if k not in self.states:
            yield
            return
        job = self.env.active_process
        assert job is not None  # jobs are processes
        self._job[k] = job
        self.env.process(self._watch(k, job))
        then = WAITING
        try:
            yield
        except simpy.Interrupt as stop:
            # At an empty battery it is off already, and back as soon as that is charged.
            if stop.cause == FAILED and not self._overlap and self._is_alive(k):
                then = CRASHED
            raise
        finally:
            del self._job[k]
            self._begin(k, then)

    def receive(self, k: int) -> None:
        """Device k begins to receive."""
        if k in self.states:
            self._begin(k, RECEIVING, air_time=self.air_times[1])

    def send(self, grant: Grant) -> None:
        """The device of a grant begins to send."""
        if grant.device in self.states:
            amounts = {"tx_power_w": grant.power_w, "air_time": self.air_times[0]}
            self._begin(grant.device, SENDING, **amounts)

    def compute(self, grant: Grant, cycles: float, seconds: float, span: Span) -> Waiting:
        """Take the time of a computation: that which is given, or that of the device's state.

        Args:
            grant: of the device.
            cycles: of the whole computation.
            seconds: that they take at the clock of the grant.
            span: of the computation, whose part that is done is noted.
        """
        if grant.device not in self.states:
            yield self.env.timeout(seconds)
            return
        state = self.states[grant.device]
        amounts = {"clock_hz": grant.cpu_hz / state.hardware.planned_share, "cycles": cycles}
        if state.hardware.thermal is not None and self.capability is not None:
            amounts["capability"] = float(self.capability(span.g)[grant.device])
        self._begin(grant.device, COMPUTING, **amounts)
        try:
            while state.cycles_left > 0.0:
                yield self._until(state.next_event_s())
                state.advance(self.env.now)
        finally:
            state.advance(self.env.now)
            span.done = 1.0 - state.cycles_left / cycles if cycles > 0.0 else 1.0

    def joules(self, k: int) -> float:
        """What device k has used since its activity began, J."""
        self.states[k].advance(self.env.now)
        return self.states[k].joules

    def _is_alive(self, k: int) -> bool:
        self.states[k].advance(self.env.now)
        return self.states[k].alive

    def _begin(self, k: int, activity: str, **amounts: Any) -> None:
        self.states[k].begin(activity, self.env.now, **amounts)
        if k in self._changed:
            self._changed.pop(k).succeed()

    def _until(self, time_s: float) -> simpy.Event:
        """The event of an instant; for ``inf`` one that never comes."""
        if math.isinf(time_s):
            return self.env.event()
        return self.env.timeout(max(time_s - self.env.now, 0.0))

    def _watch(self, k: int, job: simpy.Process) -> Waiting:
        """Interrupt a job when the battery of its device is empty."""
        while self._job.get(k) is job:
            state = self.states[k]
            state.advance(self.env.now)
            if not state.alive:
                if job.is_alive:
                    job.interrupt(FAILED)
                return
            self._changed[k] = self.env.event()
            yield self._until(state.next_event_s()) | self._changed[k]

    # --- between jobs -------------------------------------------------------------------------

    def pieces(self, k: int) -> list[Piece]:
        """The stretches in which device k waited, or was off, until now; it is back then."""
        return self.states[k].take_pieces(self.env.now) if k in self.states else []

    def seen(self, present: Array, cpu_hz: Array, capability: Array) -> tuple[Array, Array, Array]:
        """What the server is told of the devices when a round starts.

        Args:
            present: is each device there, bool [K].
            cpu_hz: clocks of the processors without limits, Hz [K].
            capability: z [K], by which all clocks are multiplied.

        Returns:
            Present and with energy, bool [K]; the clock of each device now, times the mean share
            that other programs leave of it [K], Hz; energy in its battery [K], J, inf without one.
        """
        present, cpu_hz = present.copy(), cpu_hz * capability
        battery_j = np.full(len(cpu_hz), math.inf)
        for k, state in self.states.items():
            state.pass_events(self.env.now)
            present[k] &= state.alive
            if state.throttled and state.hardware.thermal is not None:
                hot_hz = state.hardware.thermal.throttled_hz * capability[k]
                cpu_hz[k] = min(cpu_hz[k], hot_hz)
            cpu_hz[k] *= state.hardware.planned_share
            battery_j[k] = state.battery_at_j(self.env.now)
        return present, cpu_hz, battery_j

    def energy_returns_s(self, left_out: Mapping[int, float]) -> dict[int, float]:
        """When devices that are without energy, or are left out, have enough of it, s; inf: never.

        Args:
            left_out: device -> J that its job takes.
        """
        now = {k: state.at(self.env.now) for k, state in self.states.items()}
        return {
            k: enough_again_s(state, left_out.get(k, 0.0))
            for k, state in now.items()
            if k in left_out or not state.alive
        }

    @property
    def has_batteries(self) -> bool:
        """True where a device can run out of energy."""
        return any(state.hardware.battery is not None for state in self.states.values())

    def planned_j(self, grants: Grants, cycles: Array, up_s: Array, down_s: Array) -> Array:
        """What jobs of some devices [S] are planned to use, J; 0 for devices without a state.

        Args:
            grants: of the devices.
            cycles: of their computation [S].
            up_s: planned time of sending [S], s.
            down_s: planned time of receiving [S], s.
        """
        needed_j = np.zeros(len(grants))
        amounts = grants.power_w, grants.cpu_hz, cycles, up_s, down_s
        for i, k in enumerate(grants.device.tolist()):
            if k in self.states:
                job = (float(each[i]) for each in amounts)
                needed_j[i] = self.states[k].hardware.job_j(self.air_times, *job)
        return needed_j

    # --- checkpoints --------------------------------------------------------------------------

    def table(self) -> tuple[list[int], list[Snapshot]]:
        """The devices with a state, and their numbers at this instant."""
        states = sorted(self.states.items())
        return [k for k, _ in states], [state.at(self.env.now).snapshot() for _, state in states]

    def arrays(self) -> dict[str, Array]:
        """The numbers of all devices with a state [D, 10], for a checkpoint; by name."""
        return {STATES: np.array(self.table()[1])} if self.states else {}

    def restore_arrays(self, arrays: Mapping[str, Array], at_work: Container[int] = ()) -> None:
        """Put the devices that are not at work back to where `arrays` saw them."""
        if self.states:
            for k, numbers in zip(sorted(self.states), arrays[STATES], strict=True):
                if k not in at_work:
                    self.restore(k, numbers)

    def snapshot(self, k: int) -> list[float]:
        """The numbers of device k, which has no job; empty if it has no state."""
        return list(self.states[k].snapshot()) if k in self.states else []

    def restore(self, k: int, numbers: Sequence[float]) -> None:
        """Put a device back to where `snapshot` saw it."""
        hardware = self.states[k].hardware
        self.states[k] = DeviceState.restored(hardware, Snapshot(*map(float, numbers)))
