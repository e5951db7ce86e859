"""The cells of a hierarchy: each edge with its devices, its radio and its part of the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import simpy

from edgesim.errors import InfeasibleScenarioError
from edgesim.hierarchy import association
from edgesim.hierarchy.backhaul import Backhaul, backhaul_graph
from edgesim.hierarchy.edge_streams import EdgeStreams, SiteStreams
from edgesim.network.band.link_choice import make_links
from edgesim.network.cell import Cell
from edgesim.network.channel import Channel, channel_options
from edgesim.network.device import Fleet, capability_by_round
from edgesim.network.planned_gains import make_planned_gains
from edgesim.network.planner import Allocator
from edgesim.network.propagation.large_scale import LargeScale
from edgesim.network.propagation.path_loss import (
    large_scale_of,
    path_gains,
    sector_gain_db,
    tr38901_sites,
)
from edgesim.scenario.hierarchy.tiers_schema import TiersSection, edge_name
from edgesim.scenario.loader import Scenario
from edgesim.scenario.network_schema import NetworkSection
from edgesim.scenario.radio.channel_schema import Tr38901PathLoss
from fl.contracts import Array, Streams
from fl.errors import MethodError
from fl.method_base.method import Method
from fl.task import LearningTask
from solvers import InfeasibleError

MS = 1e3


@dataclass(frozen=True, eq=False)
class EdgeCell:
    """One edge and what belongs to it; devices are numbered from 0 in the order of ``members``.

    Args:
        number: of the edge.
        members: its devices, by their numbers in the scenario, int [N].
        network: the section, with the edge's band.
        streams: random streams of its devices.
        fleet: its devices, the edge at the origin.
        channel: its links.
        method: of its devices and their data.
        capability: g -> z [N] in round g of the edge.
        threshold_s: T_th of one of its rounds, s; inf: none.
    """

    number: int
    members: Array
    network: NetworkSection
    streams: EdgeStreams
    fleet: Fleet
    channel: Channel
    method: Method
    capability: Callable[[int], Array]
    threshold_s: float


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The edges of a run, and what connects them to the cloud.

    Args:
        edges: those that have devices.
        edge_of: edge of each device, int [K].
        backhaul: the links to the cloud.
        model_bits: of the model that travels there, each way.
        local_rounds: kappa_2.
    """

    edges: tuple[EdgeCell, ...]
    edge_of: Array
    backhaul: Backhaul
    model_bits: float
    local_rounds: int

    @cached_property
    def graph(self) -> Any:
        """Devices 0..K-1, edges, routers and cloud as a `networkx.DiGraph`."""
        graph = self.backhaul.graph.copy()
        for k, e in enumerate(self.edge_of.tolist()):
            graph.add_node(k, kind="device")
            graph.add_edge(k, edge_name(e), kind="radio")
            graph.add_edge(edge_name(e), k, kind="radio")
        return graph


def make_hierarchy(
    scenario: Scenario,
    tiers: TiersSection,
    streams: Streams,
    fleet: Fleet,
    method: Method,
    allocator: Allocator,
) -> Hierarchy:
    """Associate the devices of a scenario with its edges, and divide radio and data among them.

    Args:
        scenario: the checked scenario.
        tiers: its section.
        streams: random streams of the run.
        fleet: all devices.
        method: of all devices and their data.
        allocator: the solver, by which the association ``price`` judges.

    Raises:
        InfeasibleScenarioError: the backhaul alone takes the latency threshold.
    """
    sites = [_Site(scenario, tiers, e, streams, fleet) for e in range(len(tiers.edges))]
    edge_of = _associate(scenario, tiers, sites, method, allocator)
    backhaul = Backhaul(backhaul_graph(tiers), tiers.backhaul.forwarding == "cut-through")
    bits = method.task.accounting.weight_bits(method.shared_count)
    served = np.unique(edge_of).tolist()
    capability = capability_by_round(scenario.devices, fleet, streams)
    edges = []
    for e in served:
        threshold_s = edge_threshold_s(scenario, backhaul.planned_s(e, served, bits))
        members = np.flatnonzero(edge_of == e)
        edges.append(sites[e].cell_of(members, method, capability, threshold_s))
    return Hierarchy(tuple(edges), edge_of, backhaul, bits, tiers.local_rounds)


def check_method_of_tiers(name: str, method: Method) -> None:
    """Refuse a method whose model is not the mean of what devices send.

    Raises:
        MethodError: the method, as the sentence names it.
    """
    if method.stale != "damp":
        raise MethodError(
            "name",
            f"is {name}, whose server keeps more than a mean of what devices send, so that the "
            "models of several edges have no mean; use another method, or remove tiers",
        )


def edge_threshold_s(scenario: Scenario, backhaul_s: float) -> float:
    """T_th of a round of an edge: what a round of the cloud leaves it, (T_th - t_bh) / kappa_2.

    Raises:
        InfeasibleScenarioError: nothing is left.
    """
    threshold_s, tiers = scenario.budget.latency_threshold_s, scenario.tiers
    if threshold_s is None or tiers is None:
        return math.inf
    left_s = threshold_s - backhaul_s
    if left_s <= 0.0:
        raise InfeasibleScenarioError(
            f"no device can meet budget.latency_threshold = {threshold_s * MS:g} ms, because the "
            f"backhaul alone takes {backhaul_s * MS:.6g} ms; give more than that"
        )
    return left_s / tiers.local_rounds


class _Site:
    """An edge and its links to all devices."""

    def __init__(
        self, scenario: Scenario, tiers: TiersSection, e: int, streams: Streams, fleet: Fleet
    ) -> None:
        edge = tiers.edges[e]
        self.number, self.scenario, self.streams = e, scenario, streams
        self.network = scenario.network
        if edge.bandwidth_hz is not None:
            self.network = self.network.model_copy(update={"bandwidth_hz": edge.bandwidth_hz})
        self.fleet = fleet
        if edge.position_m is not None:
            x_m, y_m = fleet.x_m - edge.position_m[0], fleet.y_m - edge.position_m[1]
            self.fleet = replace(fleet, x_m=x_m, y_m=y_m, distance_m=np.hypot(x_m, y_m))
        self.radio = SiteStreams(streams, e)
        self.links = self._large_scale(tiers)

    def _large_scale(self, tiers: TiersSection) -> LargeScale:
        """Path loss and shadowing towards all devices; surroundings are those of the device."""
        loss, fleet = self.network.channel.path_loss, self.fleet
        if not isinstance(loss, Tr38901PathLoss):
            return large_scale_of(self.network, fleet, self.radio)
        origins_m = np.array([edge.position_m or (0.0, 0.0) for edge in tiers.edges])
        sites = tr38901_sites(self.network, loss, fleet.height_m, self.streams, origins_m)
        site, position_m = sites[self.number], np.stack([fleet.x_m, fleet.y_m], axis=1)
        found = site.at(position_m)
        drop_m = site.base_height_m - site.around.height_m
        gain_db = sector_gain_db(loss, position_m, drop_m)
        return replace(found, path_loss_db=found.path_loss_db - gain_db)

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
        links = _rows(self.links, members)
        return EdgeCell(
            self.number,
            members,
            self.network,
            streams,
            _rows(self.fleet, members),
            Channel(**channel_options(self.network, links, self.radio)),
            replace(method, task=task_of(method.task, members, streams)),
            lambda g: capability(g)[members],
            threshold_s,
        )

    def everybody(self, method: Method, allocator: Allocator) -> Cell:
        """A cell of this edge and all devices before fading, for what-ifs of the association."""
        channel = Channel(
            **{**channel_options(self.network, self.links, self.radio), "fading": None}
        )
        uplink, downlink = make_links(simpy.Environment(), self.network, channel, self.radio)
        threshold_s = edge_threshold_s(self.scenario, 0.0)
        return Cell(
            env=uplink.env,
            channel=channel,
            fleet=self.fleet,
            allocator=allocator,
            budget_s=threshold_s,
            uplink=uplink,
            downlink=downlink,
            samples=method.task.samples,
            streams=self.streams,
            planned_gains=make_planned_gains(self.scenario.allocation, channel),
        )


def _rows(table: Any, members: Array) -> Any:
    """A dataclass of arrays [K] with the rows of some devices; other fields stay."""
    columns = {each.name: getattr(table, each.name) for each in fields(table)}
    taken = {
        name: column[members] for name, column in columns.items() if isinstance(column, np.ndarray)
    }
    return replace(table, **taken)


def task_of(task: LearningTask, members: Array, streams: Streams) -> LearningTask:
    """The learning task of some of its devices."""
    data: Any = task.data
    if not hasattr(data, "train_index"):  # data that are counted, not looked at
        data = replace(data, samples=data.samples[members])
        return replace(task, data=data, streams=streams)

    def of_members(index: Any) -> list[Array]:
        return [index[k] for k in members.tolist()] if len(index) else []

    data = replace(
        data,
        images=lambda whole=data: (whole.x_train, whole.x_test),
        train_index=of_members(data.train_index),
        test_index=of_members(data.test_index),
        validation_index=of_members(data.validation_index),
    )
    return replace(task, data=data, streams=streams)


def _associate(
    scenario: Scenario,
    tiers: TiersSection,
    sites: list[_Site],
    method: Method,
    allocator: Allocator,
) -> Array:
    """The edge of each device, int [K]."""
    if tiers.members is not None:
        return np.array(tiers.members)
    if tiers.association == "nearest":
        return association.nearest(np.stack([site.fleet.distance_m for site in sites]))
    gain = np.stack([site.gain for site in sites])
    if tiers.association == "strongest":
        return association.strongest(gain)
    if tiers.association == "balanced":
        return association.balanced(gain)
    cost = plan_cost([site.everybody(method, allocator) for site in sites], method)
    return association.by_price(cost, association.strongest(gain), len(sites))


def plan_cost(cells: list[Cell], method: Method) -> association.Cost:
    """What the plan of a round costs an edge: the pruning that it needs, or the time that it takes.

    It is the sum of w_k rho_k where the method leaves the ratios to the solver, and else the time
    of the slowest device, s. Devices that cannot take part make it inf.

    Args:
        cells: of every edge with all devices.
        method: of all devices.
    """

    def cost(e: int, members: tuple[int, ...]) -> float:
        if not members:
            return 0.0
        cell, devices = cells[e], np.array(members)
        view = cell.view(0, everyone=True)
        demand = method.demand(None, view, devices)
        try:
            plan = cell.plan(demand, view)
        except InfeasibleError:
            return math.inf
        if plan.infeasible:
            return math.inf
        share, rho = (
            np.array([getattr(g, name) for g in plan.grants]) for name in ("share", "rho")
        )
        if np.any(demand.rho_max > demand.rho_min):
            stretched = plan.budget_s > cell.budget_s
            return math.inf if stretched else float(np.dot(demand.weight, rho))
        bits = demand.bits_fixed + (1.0 - rho) * demand.bits_prunable
        rate_bps = cell.channel.rate_bps(
            share, cell.fleet.tx_power_w[devices], cell.channel.gains(0.0)[devices]
        )
        return float(np.max(cell.planner.unprunable_s(demand, view) + bits / rate_bps))

    return cost


def gathered(edges: tuple[EdgeCell, ...], columns: list[Any]) -> Array:
    """One array [K] from an array [N] of each edge, in the order of its members."""
    devices = np.concatenate([edge.members for edge in edges])
    values = np.concatenate([np.asarray(each) for each in columns])
    found = np.empty_like(values)
    found[devices] = values
    return found
