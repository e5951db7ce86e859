"""The sites of a layout as edge servers: their sectors share a band, and disturb all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import simpy

from edgesim.hierarchy import association
from edgesim.hierarchy.edge_cells import EdgeCell, plan_cost, rows_of, task_of, time_left_s
from edgesim.hierarchy.edge_streams import EdgeStreams
from edgesim.network.cell import Cell
from edgesim.network.device import Fleet
from edgesim.network.flows.ideal_downlink import IdealDownlink
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.make_network import make_network, served_by
from edgesim.network.interference.network_cell import Network
from edgesim.network.interference.sector_channel import SectorChannel, ServingSites
from edgesim.network.layout.coupling import make_coupling
from edgesim.network.make_channel import radio_options, receiver_loss
from edgesim.network.planning.planner import Allocator
from edgesim.network.propagation.path_loss import LossesByPlace
from edgesim.network.subnetwork import PartChannel, SharedAir
from edgesim.scenario.cells.interference_schema import NONE
from edgesim.scenario.loader import Scenario
from fl.contracts import Array, Streams
from fl.method_base.method import Method


class LayoutSites:
    """The edges of a scenario with a layout: one at every site, for all of its sectors.

    A device that belongs to an edge is served by the sector of its site with the least coupling
    loss.

    Args:
        scenario: the checked scenario.
        streams: random streams of the run.
        fleet: all devices.
        own: path losses by code of the user's own; None: by the scenario's model.
    """

    def __init__(
        self,
        scenario: Scenario,
        streams: Streams,
        fleet: Fleet,
        own: LossesByPlace | None = None,
    ) -> None:
        self.scenario, self.streams, self.fleet = scenario, streams, fleet
        self.coupling = make_coupling(scenario.network, fleet, streams, own)
        self.sites = self.coupling.sites
        self.position_m = np.stack([fleet.x_m, fleet.y_m], axis=1)
        self.links = self.coupling.at(self.position_m)
        # Sectors of a site are side by side, so that of equals the first is the layout's own.
        of_sites = self.links.coupling.reshape(len(fleet), len(self.sites), self.sites.sectors)
        first = self.sites.sectors * np.arange(len(self.sites))[:, None]
        self.sector: Array = first + of_sites.argmax(axis=2).T  # best of each site, int [E, K]
        self.gain: Array = of_sites.max(axis=2).T  # to it, linear [E, K]

    @property
    def distance_m(self) -> Array:
        """From all devices to the nearest image of every site [E, K], m."""
        return self.links.distance_m.T

    def cells(
        self,
        edge_of: Array,
        threshold_s: Mapping[int, float],
        method: Method,
        capability: Callable[[int], Array],
    ) -> tuple[EdgeCell, ...]:
        """The cells of some edges with their devices; see `OwnSites.cells`."""
        scenario, everybody = self.scenario, np.arange(len(self.fleet))
        serving = self.sector[edge_of, everybody]
        channel = served_by(scenario.network, self.sites, self.links, serving, self.streams)
        air = SharedAir(
            scenario.network, scenario.allocation, channel, self.fleet.tx_power_w, self.streams
        )
        return tuple(
            self._cell(e, np.flatnonzero(edge_of == e), air, method, capability, least_s)
            for e, least_s in threshold_s.items()
        )

    def _cell(
        self,
        e: int,
        members: Array,
        air: SharedAir,
        method: Method,
        capability: Callable[[int], Array],
        threshold_s: float,
    ) -> EdgeCell:
        streams = EdgeStreams(self.streams, e, members)
        x_m, y_m = self.sites.offset_m(e, self.position_m[members]).T
        distance_m, sight = self.links.distance_m[members, e], self.links.line_of_sight[members, e]
        notes = self.coupling.beyond_scope(distance_m, sight, members)
        return EdgeCell(
            e,
            members,
            self.scenario.network,
            streams,
            replace(rows_of(self.fleet, members), x_m=x_m, y_m=y_m, distance_m=distance_m),
            PartChannel(air.channel, members, ServingSites(distance_m, sight, notes)),
            replace(method, task=task_of(method.task, members, streams)),
            lambda g: capability(g)[members],
            threshold_s,
            air,
        )

    def cost(
        self, method: Method, allocator: Allocator, backhaul_s: Sequence[float] | None = None
    ) -> association.Cost:
        """What the plan of an edge with some devices costs, while all others send, too.

        Without power control that does not depend on the edges of the others. See `OwnSites.cost`.
        """
        taken_s = backhaul_s or [0.0] * len(self.sites)
        cells = [self._everybody(e, method, allocator, each) for e, each in enumerate(taken_s)]

        def cell_of(e: int, members: Array) -> Cell:
            cell, expected = cells[e], cells[e].planner.expected
            if expected.mode != NONE:
                power_w = np.delete(self.fleet.tx_power_w, members)
                density = power_w / self.scenario.network.bandwidth_hz
                gain = np.delete(self.links.coupling, members, axis=0)
                expected = replace(expected, outside=np.einsum("k,ks->s", density, gain))
                cell.planner = replace(cell.planner, expected=expected)
            return cell

        return plan_cost(cell_of, method)

    def _everybody(
        self, e: int, method: Method, allocator: Allocator, backhaul_s: float
    ) -> Network:
        """The sectors of a site with all devices, before fading."""
        network, couplings = self.scenario.network, Couplings(self.links.coupling, self.sector[e])
        options = radio_options(network, None, self.streams)
        return make_network(
            simpy.Environment(),
            network,
            self.scenario.allocation,
            SectorChannel(couplings, loss=receiver_loss(network), **options),
            self.streams,
            lambda uplink: IdealDownlink(uplink.env, uplink.channel),
            fleet=self.fleet,
            allocator=allocator,
            budget_s=time_left_s(self.scenario, backhaul_s),
            samples=method.task.samples,
        )
