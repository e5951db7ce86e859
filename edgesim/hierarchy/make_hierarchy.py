"""The hierarchy of a scenario with tiers: its devices associated with edges, and divided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from edgesim.hierarchy import association
from edgesim.hierarchy.backhaul import Backhaul, backhaul_graph
from edgesim.hierarchy.edge_cells import EdgeCell, edge_threshold_s
from edgesim.hierarchy.layout_sites import LayoutSites
from edgesim.hierarchy.own_sites import OwnSites
from edgesim.network.device import Fleet, capability_by_round
from edgesim.network.planning.planner import Allocator
from edgesim.network.propagation.path_loss import LossesByPlace
from edgesim.network.subnetwork import SharedAir
from edgesim.scenario.hierarchy.tiers_schema import (
    TiersSection,
    association_of,
    edge_count,
    edge_name,
)
from edgesim.scenario.loader import Scenario
from edgesim.scenario.radio.layout_schema import SingleLayout
from fl.contracts import Array, Streams
from fl.errors import MethodError
from fl.method_base.method import Method


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

    @property
    def air(self) -> SharedAir | None:
        """Of the network that the edges share; None: every edge has a band of its own."""
        return self.edges[0].air

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
    own: LossesByPlace | None = None,
) -> Hierarchy:
    """Associate the devices of a scenario with its edges, and divide radio and data among them.

    Args:
        scenario: the checked scenario.
        tiers: its section.
        streams: random streams of the run.
        fleet: all devices.
        method: of all devices and their data.
        allocator: the solver, by which the association ``price`` judges.
        own: path losses by code of the user's own; None: by the scenario's model.

    Raises:
        InfeasibleScenarioError: the backhaul alone takes the latency threshold.
    """
    layout = scenario.network.layout
    sites: OwnSites | LayoutSites
    if isinstance(layout, SingleLayout):
        sites = OwnSites(scenario, tiers, streams, fleet, own)
    else:
        sites = LayoutSites(scenario, streams, fleet, own)
    edges = range(edge_count(tiers, layout))
    graph = backhaul_graph(tiers, len(edges))
    backhaul = Backhaul(graph, tiers.backhaul.forwarding == "cut-through")
    bits = method.task.accounting.weight_bits(method.shared_count)

    def cost() -> association.Cost:
        backhaul_s = [backhaul.planned_s(e, edges, bits) for e in edges]
        return sites.cost(method, allocator, backhaul_s)

    edge_of = _associate(tiers, association_of(tiers, layout), sites, cost)
    served = np.unique(edge_of).tolist()
    threshold_s = {
        e: edge_threshold_s(scenario, backhaul.planned_s(e, served, bits)) for e in served
    }
    capability = capability_by_round(scenario.devices, fleet, streams)
    cells = sites.cells(edge_of, threshold_s, method, capability)
    return Hierarchy(cells, edge_of, backhaul, bits, tiers.local_rounds)


def _associate(
    tiers: TiersSection,
    rule: str,
    sites: OwnSites | LayoutSites,
    cost: Callable[[], association.Cost],
) -> Array:
    """The edge of each device, int [K]."""
    if tiers.members is not None:
        return np.array(tiers.members)
    if rule == "nearest":
        return association.nearest(sites.distance_m)
    if rule == "balanced":
        return association.balanced(sites.gain)
    strongest = association.strongest(sites.gain)
    if rule == "strongest":
        return strongest
    return association.by_price(cost(), strongest, len(sites.gain))


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
