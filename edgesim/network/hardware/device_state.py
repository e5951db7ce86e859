"""One device over time: its activity, temperature, battery and modem between exact events.

Between two events every power is constant, so that joules, battery and temperature are known in
closed form at the next one: a change of the background load, the limit of the temperature, the
end of the modem's tail, an edge of a charging window, a battery that is full, empty, or full enough
to return, and the last cycle of a computation. Only the power of sending and receiving under a TDD
pattern has two values, whose joules have a closed form too: its slots are events where the battery
may be full or empty before the next one.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import NamedTuple

from edgesim.network.hardware.battery import Battery
from edgesim.network.hardware.device_hardware import DeviceHardware
from edgesim.network.span_energy import compute_j, mean_power_w, power_j
from edgesim.network.tdd_service import ALWAYS, AirTime

WAITING, RECEIVING, COMPUTING, SENDING = "waiting", "receiving", "computing", "sending"
CRASHED = "crashed"
IDLE, OFF = "idle", "off"  # phases of the spans of a device without a job


class Piece(NamedTuple):
    """A stretch in which a device without a job waited, or was off."""

    phase: str
    start_s: float
    end_s: float
    energy_j: float


class Snapshot(NamedTuple):
    """The state of a device that waits or is off, as numbers for a checkpoint.

    Args:
        time_s: simulated time, s.
        temperature_c: of the processor, degrees Celsius; nan: it has no limit.
        throttled: 1 while the clock is limited.
        battery_j: energy left; nan: no battery.
        alive: 0 after the battery was empty, until it has enough to return.
        tail_until_s: end of the modem's tail, s.
        used_j: joules since the start of the run.
        charged_j: joules that the battery, or the device beside a full one, took in since then.
        throttled_s: time in which the clock was limited, s.
        off_s: time without energy, s.
    """

    time_s: float
    temperature_c: float
    throttled: float
    battery_j: float
    alive: float
    tail_until_s: float
    used_j: float
    charged_j: float
    throttled_s: float
    off_s: float


@dataclass(slots=True)
class DeviceState:
    """The state of one device; `advance` is its only clock.

    Args:
        hardware: what it is made of.
        time_s: simulated time up to which it is known, s.

    Attributes:
        activity: waiting, receiving, computing, sending or crashed.
        clock_hz: clock that is asked for while it computes; the limit of a hot processor is lower.
        capability: z in (0, 1], by which that limit is multiplied, as all clocks of the processor.
        air_time: of the direction in which it sends or receives.
        cycles_left: of the computation.
        joules: used since the activity began.
        pieces: idle and off stretches that are not taken yet.
    """

    hardware: DeviceHardware
    time_s: float = 0.0
    temperature_c: float = math.nan
    throttled: bool = False
    battery_j: float = math.nan
    alive: bool = True
    tail_until_s: float = -math.inf
    used_j: float = 0.0
    charged_j: float = 0.0
    throttled_s: float = 0.0
    off_s: float = 0.0
    activity: str = WAITING
    clock_hz: float = 0.0
    capability: float = 1.0
    tx_power_w: float = 0.0
    air_time: AirTime = ALWAYS
    cycles_left: float = 0.0
    joules: float = 0.0
    began_s: float = 0.0
    pieces: list[Piece] = field(default_factory=list)
    _next_event: tuple[float, str] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.began_s = self.time_s
        if self.hardware.thermal is not None and math.isnan(self.temperature_c):
            self.temperature_c = self.hardware.thermal.ambient_c
        if self.hardware.battery is not None and math.isnan(self.battery_j):
            self.battery_j = self.hardware.battery.start * self.hardware.battery.capacity_j

    # --- what it does -------------------------------------------------------------------------

    def begin(
        self,
        activity: str,
        time_s: float,
        clock_hz: float = 0.0,
        cycles: float = 0.0,
        capability: float = 1.0,
        tx_power_w: float = 0.0,
        air_time: AirTime = ALWAYS,
    ) -> None:
        """Go over to another activity at an instant."""
        self.advance(time_s)
        self._end_piece()
        if self.activity in (RECEIVING, SENDING):
            self.tail_until_s = time_s + self.hardware.modem.tail_s
        if activity == CRASHED:
            self.tail_until_s = -math.inf
        self.activity, self.clock_hz, self.cycles_left = activity, clock_hz, cycles
        self.capability, self.tx_power_w, self.air_time = capability, tx_power_w, air_time
        self.joules, self.began_s = 0.0, time_s
        self._next_event = None

    def take_pieces(self, time_s: float) -> list[Piece]:
        """The stretches without a job until an instant that were not taken before.

        A device that has crashed is back then.
        """
        self.advance(time_s)
        self._end_piece()
        if self.activity == CRASHED:
            self.begin(WAITING, time_s)
        pieces, self.pieces = self.pieces, []
        return pieces

    def _end_piece(self) -> None:
        """Note the stretch that ends now, if the device waits or is off."""
        if self.activity not in (WAITING, CRASHED):
            return
        if self.time_s > self.began_s:
            phase = IDLE if self._is_on else OFF
            self.pieces.append(Piece(phase, self.began_s, self.time_s, self.joules))
        self.began_s, self.joules = self.time_s, 0.0

    # --- powers, all constant until the next event --------------------------------------------

    @property
    def _is_on(self) -> bool:
        return self.alive and self.activity != CRASHED

    @property
    def speed_hz(self) -> float:
        """Cycles a second of the job, after throttling and beside other programs."""
        if self.activity != COMPUTING or not self.alive or self.cycles_left <= 0.0:
            return 0.0
        load = self.hardware.load
        return self._clock_hz * (1.0 if load is None else load.share(self.time_s))

    @property
    def _clock_hz(self) -> float:
        thermal = self.hardware.thermal
        if thermal is None or not self.throttled:
            return self.clock_hz
        return min(self.clock_hz, thermal.throttled_hz * self.capability)

    @property
    def processor_w(self) -> float:
        """Power of the processor, W: kappa f^2 a cycle, and the static power."""
        if self.activity != COMPUTING or not self.alive:
            return 0.0
        dynamic_w = compute_j(self.hardware.capacitance, self._clock_hz, self.speed_hz)
        return dynamic_w + self.hardware.static_power_w

    @property
    def power_w(self) -> float:
        """Power of the whole device, W."""
        hardware, modem = self.hardware, self.hardware.modem
        if not self._is_on:
            return 0.0
        if self._carries:
            share = self.air_time.share_at(self.time_s)
            return float(mean_power_w(share, self._on_air_w, hardware.listening_w))
        radio_w = modem.tail_power_w if self.time_s < self.tail_until_s else modem.sleep_power_w
        if self.activity == COMPUTING:
            return self.processor_w + radio_w
        return hardware.idle_power_w + radio_w

    @property
    def _on_air_w(self) -> float:
        """Power in the slots of its direction while it sends or receives, W."""
        if self.activity == SENDING:
            return self.hardware.modem.sending_w(self.tx_power_w)
        return self.hardware.receive_power_w

    @property
    def _carries(self) -> bool:
        """Does it send or receive?"""
        return self.alive and self.activity in (SENDING, RECEIVING)

    def _used_j(self, until_s: float) -> float:
        """Joules until an instant before the next event."""
        seconds = until_s - self.time_s
        if not self._carries:
            return power_j(self.power_w, seconds)
        air_s = self.air_time.air_s(self.time_s, until_s)
        waiting_j = power_j(self.hardware.listening_w, seconds - air_s)
        return power_j(self._on_air_w, air_s) + waiting_j

    def battery_at_j(self, until_s: float) -> float:
        """Energy in the battery at an instant before the next event, J; inf without one."""
        battery = self.hardware.battery
        if battery is None:
            return math.inf
        charged_j = power_j(self._charging_w(), until_s - self.time_s)
        return battery.level_j(self.battery_j + (charged_j - self._used_j(until_s)))

    def _charging_w(self) -> float:
        battery = self.hardware.battery
        return 0.0 if battery is None else battery.charging.power_at_w(self.time_s)

    # --- time ---------------------------------------------------------------------------------

    def at(self, time_s: float) -> DeviceState:
        """The state at a later instant if the device goes on as it does; this one stays."""
        later = self.moved(self.time_s, self.battery_j)
        later.advance(max(time_s, self.time_s))
        return later

    def moved(self, time_s: float, battery_j: float) -> DeviceState:
        """A copy without stretches, at another instant and with another charge."""
        other = copy.copy(self)
        other.pieces, other._next_event = [], None
        other.time_s, other.battery_j = time_s, battery_j
        return other

    def advance(self, time_s: float) -> None:
        """Go on with the activity until an instant, through all events on the way."""
        self.pass_events(time_s)
        if time_s > self.time_s:
            self._pass(time_s, "")

    def pass_events(self, time_s: float) -> None:
        """Go on to the last event until an instant, which changes no number that comes later."""
        while (event := self._next())[0] <= time_s:
            self._pass(max(event[0], self.time_s), event[1])

    def next_event_s(self) -> float:
        """When something changes that no other process knows of, s; inf: never."""
        return self._next()[0]

    def _next(self) -> tuple[float, str]:
        """(instant, kind) of the next event."""
        if self._next_event is None:
            self._next_event = self._find_next()
        return self._next_event

    def _find_next(self) -> tuple[float, str]:
        hardware, now, events = self.hardware, self.time_s, []
        if (speed_hz := self.speed_hz) > 0.0:
            events.append((now + self.cycles_left / speed_hz, "done"))
        if self.activity == COMPUTING and hardware.load is not None and self.cycles_left > 0.0:
            events.append((hardware.load.next_switch_s(now), "load"))
        if hardware.thermal is not None:
            turn = self.temperature_c, self.processor_w, self.throttled
            events.append((now + hardware.thermal.seconds_until_it_turns(*turn), "heat"))
        if now < self.tail_until_s:
            events.append((self.tail_until_s, "tail"))
        if hardware.battery is not None:
            events.append((hardware.battery.charging.next_change_s(now), "charging"))
            edge_s = self.air_time.next_edge_s(now) if self._carries else math.inf
            safe_s = self._level_safe_until_s(hardware.battery) if edge_s < math.inf else now
            events.append((max(edge_s, safe_s), "slot"))
            if safe_s <= edge_s:
                gain_w = self._charging_w() - self.power_w
                left_s, kind = hardware.battery.next_turn(self.battery_j, gain_w, self.alive)
                events.append((now + left_s, kind))
        return min(events, default=(math.inf, ""))

    def _level_safe_until_s(self, battery: Battery) -> float:
        """Until when the battery is neither full nor empty, whatever slots come, s."""
        powers_w, charging_w = (self._on_air_w, self.hardware.listening_w), self._charging_w()
        gains_w = charging_w - max(powers_w), charging_w - min(powers_w)
        return self.time_s + battery.seconds_between_limits(self.battery_j, *gains_w)

    def _pass(self, time_s: float, kind: str) -> None:
        """Let time pass in which every power is constant, and what happens at its end."""
        seconds, used_j = time_s - self.time_s, self._used_j(time_s)
        battery, thermal = self.hardware.battery, self.hardware.thermal
        if battery is not None:
            charged_j = power_j(self._charging_w(), seconds)
            if kind == "empty":  # exactly what it had: no rounding is left over
                used_j, level_j = self.battery_j + charged_j, 0.0
            elif kind == "back":
                level_j = battery.resume * battery.capacity_j
            elif kind == "full":
                level_j = battery.capacity_j
            else:
                level_j = battery.level_j(self.battery_j + (charged_j - used_j))
            # A full battery takes what the device uses, and no more.
            self.charged_j += min(charged_j, battery.capacity_j - self.battery_j + used_j)
            self.battery_j = level_j
        if thermal is not None:
            self.temperature_c = thermal.after(self.temperature_c, self.processor_w, seconds)
            self.throttled_s += seconds if self.throttled else 0.0
        self.off_s += 0.0 if self._is_on else seconds
        done = self.cycles_left if kind == "done" else self.speed_hz * seconds
        self.joules, self.used_j = self.joules + used_j, self.used_j + used_j
        self.cycles_left, self.time_s = max(self.cycles_left - done, 0.0), time_s
        self._next_event = None
        self._happens(kind)

    def _happens(self, kind: str) -> None:
        thermal = self.hardware.thermal
        if kind == "heat" and thermal is not None:
            self.temperature_c = thermal.turns_at_c(self.throttled)
            self.throttled = not self.throttled
        if kind in ("empty", "back"):
            self._end_piece()
            self.alive, self.tail_until_s = kind == "back", -math.inf

    # --- checkpoints --------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The numbers of a device that waits or is off."""
        return Snapshot(*(float(getattr(self, name)) for name in Snapshot._fields))

    @classmethod
    def restored(cls, hardware: DeviceHardware, numbers: Snapshot) -> DeviceState:
        """The state that `snapshot` gave."""
        values = numbers._asdict()
        values |= {name: bool(values[name]) for name in ("throttled", "alive")}
        return cls(hardware, **values)
