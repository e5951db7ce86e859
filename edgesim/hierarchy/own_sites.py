"""Edge servers with a cell and a band of their own each, which do not disturb each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import simpy

from edgesim.hierarchy import association
from edgesim.hierarchy.edge_cells import EdgeCell, plan_cost, rows_of, task_of, time_left_s
from edgesim.hierarchy.edge_streams import EdgeStreams
from edgesim.network.band.link_choice import make_links
from edgesim.network.cell import Cell
from edgesim.network.channel import Channel
from edgesim.network.device import Fleet
from edgesim.network.make_channel import channel_options
from edgesim.network.planned_gains import make_planned_gains
from edgesim.network.planning.planner import Allocator
from edgesim.network.propagation.large_scale import LargeScale
from edgesim.network.propagation.path_loss import (
    LossesByPlace,
    large_scale_of,
    links_of,
    path_gains,
    tr38901_sites,
)
from edgesim.scenario.hierarchy.tiers_schema import TiersSection
from edgesim.scenario.loader import Scenario
from edgesim.scenario.radio.channel_schema import Tr38901PathLoss
from fl.contracts import Array, Streams
from fl.method_base.method import Method


class OwnSites:
    """The edges of a scenario without a layout.

    Args:
        scenario: the checked scenario.
        tiers: its section.
        streams: random streams of the run.
        fleet: all devices.
        own: path losses by code of the user's own; None: by the scenario's model.
    """

    def __init__(
        self,
        scenario: Scenario,
        tiers: TiersSection,
        streams: Streams,
        fleet: Fleet,
        own: LossesByPlace | None = None,
    ) -> None:
        edges = range(len(tiers.edges))
        self.sites = [OwnSite(scenario, tiers, e, streams, fleet, own) for e in edges]

    @property
    def distance_m(self) -> Array:
        """From all devices to all edges [E, K], m."""
        return np.stack([site.fleet.distance_m for site in self.sites])

    @property
    def gain(self) -> Array:
        """Path loss x shadowing of all devices at all edges [E, K], linear."""
        return np.stack([site.gain for site in self.sites])

    def cost(
        self, method: Method, allocator: Allocator, backhaul_s: Sequence[float] | None = None
    ) -> association.Cost:
        """What the plan of an edge with some devices costs.

        Args:
            method: of all devices and their data.
            allocator: the solver.
            backhaul_s: of each edge, what its transfers take of a round of the cloud, s; None: 0.
        """
        taken_s = backhaul_s or [0.0] * len(self.sites)
        pairs = zip(self.sites, taken_s, strict=True)
        cells = [site.everybody(method, allocator, each_s) for site, each_s in pairs]
        return plan_cost(lambda e, _: cells[e], method)

    def cells(
        self,
        edge_of: Array,
        threshold_s: Mapping[int, float],
        method: Method,
        capability: Callable[[int], Array],
    ) -> tuple[EdgeCell, ...]:
        """The cells of some edges with their devices.

        Args:
            edge_of: edge of each device, int [K].
            threshold_s: of each edge that has a cell, T_th of one of its rounds, s.
            method: of all devices and their data.
            capability: g -> z [K] in round g.
        """
        return tuple(
            self.sites[e].cell_of(np.flatnonzero(edge_of == e), method, capability, least_s)
            for e, least_s in threshold_s.items()
        )


class OwnSite:
    """An edge and its links to all devices."""

    def __init__(
        self,
        scenario: Scenario,
        tiers: TiersSection,
        e: int,
        streams: Streams,
        fleet: Fleet,
        own: LossesByPlace | None = None,
    ) -> None:
        edge = tiers.edges[e]
        self.number, self.scenario, self.streams = e, scenario, streams
        self.network = scenario.network
        if edge.bandwidth_hz is not None:
            down = self.network.downlink.model_copy(update={"bandwidth_hz": None})  # the cell's
            band = {"bandwidth_hz": edge.bandwidth_hz, "downlink": down}
            self.network = self.network.model_copy(update=band)
        self.fleet = fleet
        if edge.position_m is not None:
            x_m, y_m = fleet.x_m - edge.position_m[0], fleet.y_m - edge.position_m[1]
            self.fleet = replace(fleet, x_m=x_m, y_m=y_m, distance_m=np.hypot(x_m, y_m))
        self.radio = EdgeStreams(streams, e)
        self.links = self._large_scale(tiers, own)

    def _large_scale(self, tiers: TiersSection, own: LossesByPlace | None) -> LargeScale:
        """Path loss and shadowing towards all devices; surroundings are those of the device."""
        loss, fleet = self.network.channel.path_loss, self.fleet
        if not isinstance(loss, Tr38901PathLoss):
            return large_scale_of(self.network, fleet, self.radio, own and own(fleet, self.number))
        origins_m = np.array([edge.position_m or (0.0, 0.0) for edge in tiers.edges])
        sites = tr38901_sites(self.network, loss, fleet.height_m, self.streams, origins_m)
        return links_of(sites[self.number], loss, fleet)

    @property
    def gain(self) -> Array:
        """Path loss x shadowing to all devices [K], linear."""
        return path_gains(self.links)

    def cell_of(
        self,
        members: Array,
        method: Method,
        capability: Callable[[int], Array],
        threshold_s: float,
    ) -> EdgeCell:
        """The cell of this edge with these devices."""
        streams = EdgeStreams(self.streams, self.number, members)
        links = rows_of(self.links, members)
        return EdgeCell(
            self.number,
            members,
            self.network,
            streams,
            rows_of(self.fleet, members),
            Channel(**channel_options(self.network, links, self.radio)),
            replace(method, task=task_of(method.task, members, streams)),
            lambda g: capability(g)[members],
            threshold_s,
        )

    def everybody(self, method: Method, allocator: Allocator, backhaul_s: float) -> Cell:
        """A cell of this edge and all devices before fading, for what-ifs of the association."""
        options = channel_options(self.network, self.links, self.radio)
        channel = Channel(**{**options, "fading": None, "estimate": None})
        uplink, downlink = make_links(simpy.Environment(), self.network, channel, self.radio)
        return Cell(
            env=uplink.env,
            channel=channel,
            fleet=self.fleet,
            allocator=allocator,
            budget_s=time_left_s(self.scenario, backhaul_s),
            uplink=uplink,
            downlink=downlink,
            samples=method.task.samples,
            streams=self.streams,
            planned_gains=make_planned_gains(self.scenario.allocation, channel),
        )
