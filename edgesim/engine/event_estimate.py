"""How many events a run needs, estimated before it starts from its first round.

A device has some events in every round, and a link one more for every coherence block, and every
refresh of a place, in which it carries bits: a coherence time of nanoseconds would run for years.
Devices whose state changes while they work have more: when other programs come and go, in every
TDD slot in which a full battery beside a charger is drained, and where a job goes on after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass, replace

import numpy as np

from edgesim.network.cell import Cell
from edgesim.network.grants import Grants, granted_amounts, grants_of
from edgesim.network.hardware.device_state import DeviceState
from edgesim.network.span_energy import mean_power_w
from edgesim.network.tdd_service import AirTime, TddService
from edgesim.presence.absences import RESUME
from fl.contracts import Array, Demand, RoundPlan, View

DEVICE_EVENTS = 9  # of a device in a round on a channel that does not change, as SimPy counts them
SWITCH_EVENTS = 3  # of a change of the load: a timer each of job and battery, and who waits for it
CRASH_EVENTS = 5  # of a crash after which the job goes on: it, the repair, and who waits for them
PERIOD_EVENTS = 6  # of a TDD period beside a full battery: two each as slots begin, end, fill it


@dataclass(frozen=True)
class RoundEvents:
    """About how many events a round has, by what they follow from, and how long it is.

    Args:
        devices: that start and end their parts.
        coherence: blocks of the fading.
        refresh: places of devices that move, taken anew.
        programs: other programs that come and go.
        slots: TDD slots beside a full battery.
        crashes: after which jobs go on; jobs that start again do so a bounded number of times.
        longest_s: planned for a device of the round, s.
    """

    devices: float = 0.0
    coherence: float = 0.0
    refresh: float = 0.0
    programs: float = 0.0
    slots: float = 0.0
    crashes: float = 0.0
    longest_s: float = 0.0

    @property
    def counts(self) -> dict[str, float]:
        """The numbers of events."""
        counts = asdict(self)
        del counts["longest_s"]
        return counts

    @property
    def total(self) -> float:
        return sum(self.counts.values())

    def times(self, rounds: int) -> RoundEvents:
        """Those of several rounds."""
        return RoundEvents(*(rounds * each for each in astuple(self)))

    @classmethod
    def joined(cls, parts: Iterable[RoundEvents]) -> RoundEvents:
        """Those of several cells."""
        columns = list(zip(*map(astuple, parts), strict=True))
        return replace(cls(*(sum(column) for column in columns)), longest_s=max(columns[-1]))


def round_events(cell: Cell, demand: Demand, view: View, plan: RoundPlan) -> RoundEvents:
    """Events of round 0, as planned on the channel at its start.

    Args:
        cell: of the run, at its start.
        demand: of all devices.
        view: what the server knows.
        plan: of the round.
    """
    grants = grants_of(plan)
    if not len(grants):
        return RoundEvents(1.0)
    count = len(grants)
    woken = count * (count - 1) / 2 if cell.uplink.reclaims else 0  # by each that is done
    cycles, bits_up, bits_down = granted_amounts(cell.fleet, demand, grants)
    gain = cell.channel.gains(view.now_s)[grants.device]
    with np.errstate(all="ignore"):
        rate_bps = cell.channel.rate_bps(grants.share, grants.power_w, gain)
        up_s = np.where(bits_up > 0.0, bits_up / rate_bps, 0.0)
        down_s = cell.downlink.seconds(bits_down, grants.device, cell.planner.gains)
        coherence, refresh = _channel_steps(cell, up_s + down_s)
        programs, slots = _within_work(cell, grants, cycles, up_s, down_s)
        work_s = down_s + cycles / grants.cpu_hz + up_s
        crashes = _crashes(cell, grants.device, work_s)
    devices, longest_s = count * DEVICE_EVENTS + woken, float(work_s.max())
    return RoundEvents(devices, coherence, refresh, programs, slots, crashes, longest_s)


def _channel_steps(cell: Cell, seconds: Array) -> tuple[float, float]:
    """Blocks of the fading, and refreshes, while devices [S] send or receive for so long [S]."""
    channel = cell.channel
    if channel.static:
        return 0.0, 0.0
    return float(np.sum(seconds / channel.coherence_s)), float(np.sum(seconds / channel.refresh_s))


def _within_work(
    cell: Cell, grants: Grants, cycles: Array, up_s: Array, down_s: Array
) -> tuple[float, float]:
    """Events of devices [S] whose state changes while they work: by programs, and by slots."""
    up, down = cell.running.air_times
    programs = slots = 0.0
    for i, k in enumerate(grants.device.tolist()):
        if (state := cell.running.states.get(k)) is None:
            continue
        hardware = state.hardware
        if hardware.load is not None:
            compute_s = cycles[i] / grants.cpu_hz[i]
            programs += SWITCH_EVENTS * hardware.load.switches_per_s * compute_s
        sending_w = hardware.modem.sending_w(grants.power_w[i])
        slots += _slots(state, up, sending_w, up_s[i])
        slots += _slots(state, down, hardware.receive_power_w, down_s[i])
    return float(programs), float(slots)


def _crashes(cell: Cell, devices: Array, seconds: Array) -> float:
    """Events of crashes after which jobs go on, while devices [S] work for so long [S]."""
    if cell.absences is None:
        return 0.0
    goes_on = np.array([cell.absences.on_failure[k] == RESUME for k in devices.tolist()])
    crashes = cell.fleet.failure_rate_hz[devices] * seconds
    return CRASH_EVENTS * float(np.sum(crashes, where=goes_on))


def _slots(state: DeviceState, air_time: AirTime, on_air_w: float, seconds: float) -> float:
    """Events of slots that drain a battery which its charger fills again within a TDD period."""
    battery, listening_w = state.hardware.battery, state.hardware.listening_w
    if battery is None or not isinstance(air_time, TddService):
        return 0.0
    charging_w = battery.charging.power_w
    spare_w = charging_w - mean_power_w(air_time.share, on_air_w, listening_w)
    if not (spare_w > 0.0 and charging_w < max(on_air_w, listening_w)):
        return 0.0
    full_s = max(seconds - (battery.capacity_j - state.battery_j) / spare_w, 0.0)
    return PERIOD_EVENTS * full_s / air_time.period_s
