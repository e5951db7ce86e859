"""A cell: its devices, its links and its band."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np
import simpy

from edgesim.network.channel import Channel
from edgesim.network.device import Fleet
from edgesim.network.flows.ideal_downlink import Downlink, IdealDownlink
from edgesim.network.grants import granted_amounts, grants_of
from edgesim.network.hardware.clock_levels import ClockLevels
from edgesim.network.hardware.device_hardware import DeviceHardware
from edgesim.network.hardware.running_devices import RunningDevices
from edgesim.network.planned_gains import PlannedGains
from edgesim.network.planning.admission import plan_of_admitted
from edgesim.network.planning.planner import Allocator, Planner, RoundPlanner
from edgesim.network.span_energy import Ledger
from edgesim.network.uplink import Uplink
from edgesim.presence.absences import Absences
from fl.contracts import Array, Demand, RoundPlan, Streams, View
from fl.repeated_call import RepeatedCall


class Cell:
    """One cell and everything physical in it.

    Args:
        env: the simulation environment, which gives the time.
        channel: gains and rates of the devices.
        fleet: the devices.
        allocator: solves the pruning problem of a round.
        uplink: carries the devices' bits to the server.
        downlink: carries the model to the devices.
        samples: D, training samples [K].
        streams: random streams, for availability and failures.
        budget_s: T_th, latency threshold, s; inf: none.
        when_infeasible: see `edgesim.network.planning.planner.Planner`.
        capability: g -> z [K] in round g; None: the fleet's, in every round.
        planned_gains: what plans take for the channel; None: the gains of the instant.
        hardware: device -> what it is made of, of devices whose state changes as they work.
        keeps_promises: plans divide only what devices at work leave of the band.
        absences: how devices come, go and crash; None: by availability and failures alone.
        levels: clocks that the processors have; None: every one.
        plans: the last plan that cells of the same run were asked for; None: of this cell alone.
    """

    def __init__(
        self,
        env: simpy.Environment,
        channel: Channel,
        fleet: Fleet,
        allocator: Allocator,
        uplink: Uplink,
        downlink: Downlink,
        samples: Any,
        streams: Streams,
        budget_s: float = math.inf,
        when_infeasible: str = "stretch",
        capability: Callable[[int], Array] | None = None,
        planned_gains: PlannedGains | None = None,
        hardware: Mapping[int, DeviceHardware] | None = None,
        keeps_promises: bool = False,
        absences: Absences | None = None,
        levels: ClockLevels | None = None,
        plans: RepeatedCall[RoundPlan] | None = None,
    ) -> None:
        self.env, self.channel, self.fleet = env, channel, fleet
        self.uplink, self.downlink = uplink, downlink
        self.samples, self.streams = np.asarray(samples), streams
        self.budget_s, self.absences = float(budget_s), absences
        self.capability = capability or (lambda g: fleet.capability)
        self.running = RunningDevices(env, hardware, channel.air_times, self.capability)
        self.ledger = Ledger(fleet, self.running, channel.air_times)
        self.keeps_promises = keeps_promises
        self.sector_planner = Planner(
            allocator,
            channel,
            fleet,
            downlink,
            self.budget_s,
            when_infeasible,
            planned_gains or PlannedGains(channel),
            levels,
        )
        self.planner: RoundPlanner = self.sector_planner
        self.plans = plans or RepeatedCall()

    def view(self, g: int, everyone: bool = False) -> View:
        """What the server knows when round g starts.

        Args:
            g: number of the round.
            everyone: every device is there, whatever its availability.
        """
        present = np.ones(len(self.fleet), dtype=bool) if everyone else self.drawn(g)
        if not everyone and self.absences is not None:
            present &= self.absences.presence.at(self.env.now)
        capability = self.capability(g)
        present, cpu_hz, battery_j = self.running.seen(present, self.fleet.cpu_hz, capability)
        power_w = self.channel.sent_w(1.0, self.fleet.tx_power_w, self.env.now)
        snr_per_gain = self.channel.snr_per_gain(1.0, power_w)
        gains = self.planner.gains.at_start(self.env.now, snr_per_gain)
        return View(
            g=g,
            now_s=self.env.now,
            idle=_read_only(np.flatnonzero(present)),
            rate_bps=_read_only(self.channel.rate_bps(1.0, power_w, gains)),
            cpu_hz=_read_only(cpu_hz),
            samples=_read_only(self.samples),
            budget_s=self.budget_s,
            capability=_read_only(capability),
            model_budget=_read_only(self.fleet.model_budget),
            battery_j=None if battery_j is None else _read_only(battery_j),
        )

    def drawn(self, g: int) -> Array:
        """Which devices [K] are available in round g, by their probability."""
        if np.all(self.fleet.availability >= 1.0):
            return np.ones(len(self.fleet), dtype=bool)
        stream = self.streams.stream("availability", round=g)
        return stream.random(len(self.fleet)) < self.fleet.availability

    def there(self, k: int, start_s: float, end_s: float) -> list[tuple[float, float]]:
        """When device k is there between two instants: (start, end) in s, in order."""
        if self.absences is None:
            return [(start_s, end_s)]
        return self.absences.presence.intervals(k, start_s, end_s)

    def next_return_s(self, g: int, left_out: Mapping[int, float]) -> float:
        """Before this instant nobody can take part in round g who cannot now, s; inf: never.

        Args:
            g: number of the round.
            left_out: devices that are there but not asked -> J that their jobs take; inf: their
                batteries hold that.
        """
        back_s = np.full(len(self.fleet), -np.inf)
        if self.absences is not None:
            back_s = self.absences.presence.returns_s(self.env.now)
        for k, energy_s in self.running.energy_returns_s(left_out).items():
            back_s[k] = max(back_s[k], energy_s)
        cannot_now = (back_s > -np.inf) & self.drawn(g)
        return float(back_s[cannot_now].min(initial=np.inf))

    def redrawn_s(self, g: int, left_out: Mapping[int, float]) -> float:
        """When an empty round g would end and others than now may be able to take part, s.

        Who is not available is drawn anew then, and who could not meet the threshold is asked
        again. inf: there are none of them, or no threshold.

        Args:
            g: number of the round.
            left_out: see `next_return_s`.
        """
        waits = self.drawn(g).all() and math.inf not in left_out.values()
        return math.inf if waits else self.env.now + self.budget_s

    def plan(self, demand: Demand, view: View) -> RoundPlan:
        """Shares and pruning ratios of those who can take part in a round: `plan_of_admitted`."""
        band = self.uplink.free_share if self.keeps_promises else 1.0
        one_waits = not isinstance(self.downlink, IdealDownlink)  # for the downloads of others
        asked = demand, view, band, one_waits
        return plan_of_admitted(self.planner, self.plans, *asked, self._too_weak)

    def _too_weak(self, demand: Demand, view: View, plan: RoundPlan) -> dict[int, float]:
        """Devices whose batteries hold less than the plan takes -> that, J."""
        grants = grants_of(plan)
        if not (len(grants) and self.running.has_batteries):
            return {}
        cycles, bits_up, bits_down = granted_amounts(self.fleet, demand, grants)
        down_s, up_s = self.planned_link_s(plan, bits_down, bits_up)
        needed_j = self.running.planned_j(grants, cycles, up_s, down_s)
        assert view.battery_j is not None  # `view` gives it
        weak = needed_j > view.battery_j[grants.device]
        return dict(zip(grants.device[weak].tolist(), needed_j[weak].tolist(), strict=True))

    def planned_channel(self, plan: RoundPlan) -> Channel:
        """The channel for which a plan was made: with the interference that it counts with."""
        return self.channel

    def planned_link_s(
        self, plan: RoundPlan, bits_down: Array, bits_up: Array
    ) -> tuple[Array, Array]:
        """Times that a plan of this instant counts with for the bits of its grants [S], s.

        Returns:
            Time until each has the model, if all downloads begin now, and time of each upload at
            its planned rate; an upload can take `Channel.upload_lag_s` longer. inf: no rate.
        """
        grants = grants_of(plan)
        if plan.forecast is not None:
            rate_bps = plan.forecast.rate_bps
        else:
            granted = grants.device, grants.share, grants.power_w
            rate_bps = self.planned_channel(plan).known_bps(self.env.now, *granted)
        down_s = self.downlink.seconds(bits_down, grants.device, self.planner.gains)
        up_s = np.where(bits_up > 0.0, np.inf, 0.0)
        return down_s, np.divide(bits_up, rate_bps, out=up_s, where=rate_bps > 0.0)

    def sharers(self) -> Array:
        """How many devices share the band with each device, itself included, int [K]."""
        return np.full(len(self.fleet), len(self.fleet))

    def begin_round(self, plan: RoundPlan, others_go_on: bool = False) -> None:
        """Give the links the grants of the round, or further ones beside those in use."""
        self.running.begin_round(others_go_on)
        self.uplink.begin_round(plan.grants, others_go_on)
        self.downlink.begin_round(plan.grants, others_go_on)

    def arrays(self) -> dict[str, Array]:
        """What a checkpoint must know beside the jobs at work, by name."""
        return self.running.arrays()

    def restore_arrays(self, arrays: Mapping[str, Array], at_work: Container[int] = ()) -> None:
        """Put all but the devices that are at work back to where `arrays` saw them."""
        self.running.restore_arrays(arrays, at_work)

    def failures_s(self, g: int) -> Array:
        """When each device [K] fails after the start of round g, s: exponential; inf: never."""
        rate_hz = self.fleet.failure_rate_hz
        if not np.any(rate_hz > 0.0):
            return np.full(len(self.fleet), np.inf)
        waits = self.streams.stream("failure", round=g).standard_exponential(len(self.fleet))
        return np.divide(waits, rate_hz, out=np.full(len(self.fleet), np.inf), where=rate_hz > 0.0)


def _read_only(values: Array) -> Array:
    """The same array, which whoever is shown it cannot change."""
    shown = values.view()
    shown.flags.writeable = False
    return shown
