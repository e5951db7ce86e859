"""The ledger: the joules of a span. Nothing else computes joules.

    computing     kappa f^2 per cycle        (dynamic power kappa f^3 of a CMOS core at clock f)
                  + static power x time
    sending       transmit power x air time  (the radio is on for the whole upload, also in a fade;
                  idle power while others have the whole band)
    receiving     receive power x air time
    idle          idle power x time

Idle power is what a device draws while it waits for the others; it is not added to the power of
computing or sending. Under a TDD pattern air time is that in the slots of the link's direction; in
the other slots a device that sends or receives waits, too. What devices with a state
(`edgesim.network.hardware`) use is the integral of their power over the span.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from edgesim.network.device import Fleet
from edgesim.network.grants import Grants
from edgesim.network.tdd_service import ALWAYS, AirTime, AirTimes
from fl.contracts import Array, Grant

Joules = Callable[
    [Any], Any
]  # closed span(s) -> joules: a float, or an array [S] of spans as columns


class RunningMeter(Protocol):
    """Devices with a state, such as `edgesim.network.hardware.running_devices.RunningDevices`."""

    @property
    def states(self) -> Mapping[int, Any]: ...

    def joules(self, k: int) -> float:
        """What device k has used since its activity began, J."""
        ...


def compute_j(capacitance: Any, cpu_hz: Any, cycles: Any) -> Any:
    """Energy of ``cycles`` at clock f, kappa f^2 cycles, J: Burd and Brodersen, 1996."""
    return capacitance * squared(cpu_hz) * cycles


def squared(value: Any) -> Any:
    """value^2, element by element."""
    # numpy rounds powers of arrays otherwise than Python; rounds as processes and rounds as arrays
    # must give the same bytes.
    return np.array([x**2 for x in value.tolist()]) if isinstance(value, np.ndarray) else value**2


def power_j(power_w: Any, seconds: Any) -> Any:
    """Energy of a constant power, J."""
    return power_w * seconds


def mean_power_w(air_share: float, on_air_w: Any, waiting_w: Any) -> Any:
    """Power of a transfer that is on the air for this share of its time, W."""
    return air_share * on_air_w + (1.0 - air_share) * waiting_w


@dataclass(frozen=True)
class Ledger:
    """Prices spans: each method returns the function that turns a closed span into joules.

    With one grant or device: of a `edgesim.records.span.Span`. With `Grants`, or devices [S]: of
    the columns of their spans (`edgesim.engine.vectorised.device_spans.SpanColumns`).

    Args:
        fleet: all devices.
        running: those with a state, which know what they have used.
        air_times: of uplink and downlink.
    """

    fleet: Fleet
    running: RunningMeter | None = None
    air_times: AirTimes = (ALWAYS, ALWAYS)

    def computing(self, grant: Grant | Grants) -> Joules:
        if (metered := self._metered(grant.device)) is not None:
            return metered
        capacitance = _of(self.fleet.capacitance, grant.device)
        static_w = _of(self.fleet.static_power_w, grant.device)
        if not np.any(static_w):
            return lambda span: compute_j(capacitance, grant.cpu_hz, span.cycles)
        return lambda span: (
            compute_j(capacitance, grant.cpu_hz, span.cycles) + power_j(static_w, span.seconds)
        )

    def sending(self, grant: Grant | Grants) -> Joules:
        if (metered := self._metered(grant.device)) is not None:
            return metered
        return self._transfer(grant.device, grant.power_w, self.air_times[0])

    def receiving(self, device: int | Array) -> Joules:
        if (metered := self._metered(device)) is not None:
            return metered
        power_w = _of(self.fleet.receive_power_w, device)
        return self._transfer(device, power_w, self.air_times[1])

    def idle(self, device: int | Array) -> Joules:
        power_w = _of(self.fleet.idle_power_w, device)
        return lambda span: power_j(power_w, span.seconds)

    def _transfer(self, device: int | Array, on_air_w: Any, air_time: AirTime) -> Joules:
        """The price of a span in which the radio is on the air for a part of the time."""
        idle_w = _of(self.fleet.idle_power_w, device)

        def energy(span: Any) -> Any:
            having_band_s = span.seconds - span.waited_s
            waited_air_s = span.waited_air_s
            if waited_air_s is None:
                waited_air_s = air_time.share * span.waited_s
            air_s = air_time.air_s(span.start_s, span.end_s) - waited_air_s
            waiting_s = span.waited_s + (having_band_s - air_s)
            return power_j(on_air_w, air_s) + power_j(idle_w, waiting_s)

        return energy

    def _metered(self, device: int | Array) -> Joules | None:
        """The price of a span of a device that knows what it has used; None: it does not."""
        running = self.running
        if running is None or isinstance(device, np.ndarray) or device not in running.states:
            return None
        return lambda span: running.joules(device)


def _of(column: Array, device: int | Array) -> Any:
    """The value of one device as a plain number, or those of several as an array."""
    return column[device] if isinstance(device, np.ndarray) else float(column[device])
