"""A cell: its devices, its links and its band."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from edgesim.network.channel import Channel
from edgesim.network.device import Fleet
from edgesim.network.fluid_links import Downlink, Uplink
from edgesim.network.planned_gains import PlannedGains
from edgesim.network.planner import Allocator, Planner
from edgesim.network.span_energy import Ledger
from fl.contracts import Array, Demand, RoundPlan, Streams, View

if TYPE_CHECKING:
    import networkx


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
        when_infeasible: see `edgesim.network.planner.Planner`.
        capability: g -> z [K] in round g; None: the fleet's, in every round.
        planned_gains: what plans take for the channel; None: the gains of the instant.
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
    ) -> None:
        self.env, self.channel, self.fleet = env, channel, fleet
        self.uplink, self.downlink = uplink, downlink
        self.samples, self.streams = np.asarray(samples), streams
        self.budget_s = float(budget_s)
        self.capability = capability or (lambda g: fleet.capability)
        self.ledger = Ledger(fleet)
        self.planner = Planner(
            allocator,
            channel,
            fleet,
            downlink,
            self.budget_s,
            when_infeasible,
            planned_gains or PlannedGains(channel),
        )

    @cached_property
    def topology(self) -> networkx.Graph:
        """The radio links: a star of the cell and its devices 0..K-1."""
        import networkx

        return networkx.star_graph(["cell 0", *range(len(self.fleet))])

    def view(self, g: int, everyone: bool = False) -> View:
        """What the server knows when round g starts.

        Args:
            g: number of the round.
            everyone: every device is there, whatever its availability.
        """
        present = np.ones(len(self.fleet), dtype=bool)
        if not everyone and np.any(self.fleet.availability < 1.0):
            stream = self.streams.stream("availability", round=g)
            present = stream.random(len(self.fleet)) < self.fleet.availability
        capability = self.capability(g)
        snr_per_gain = self.fleet.tx_power_w / self.channel.band_noise_w
        gains = self.planner.gains.at_start(self.env.now, snr_per_gain)
        return View(
            g=g,
            now_s=self.env.now,
            idle=np.flatnonzero(present),
            rate_bps=self.channel.rate_bps(1.0, self.fleet.tx_power_w, gains),
            cpu_hz=self.fleet.cpu_hz * capability,
            samples=self.samples,
            budget_s=self.budget_s,
            capability=capability,
            model_budget=self.fleet.model_budget,
        )

    def plan(self, demand: Demand, view: View) -> RoundPlan:
        """Shares and pruning ratios of a round: `edgesim.network.planner.Planner.plan`."""
        return self.planner.plan(demand, view)

    def begin_round(self, plan: RoundPlan, others_go_on: bool = False) -> None:
        """Give the links the grants of the round, or further ones beside those in use."""
        self.uplink.begin_round(plan.grants, others_go_on)
        self.downlink.begin_round(plan.grants, others_go_on)

    def failures_s(self, g: int) -> Array:
        """When each device [K] fails after the start of round g, s: exponential; inf: never."""
        rate_hz = self.fleet.failure_rate_hz
        if not np.any(rate_hz > 0.0):
            return np.full(len(self.fleet), np.inf)
        waits = self.streams.stream("failure", round=g).standard_exponential(len(self.fleet))
        return np.divide(waits, rate_hz, out=np.full(len(self.fleet), np.inf), where=rate_hz > 0.0)
