"""Checks of the section tiers against the rest of its scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgesim.errors import counted
from edgesim.scenario.cells.interference_schema import FULL, LOAD, MEASURED, Interference
from edgesim.scenario.documents.document import KeyPath
from edgesim.scenario.hierarchy.tiers_schema import (
    CLOUD,
    LinkSection,
    TiersSection,
    association_of,
    edge_count,
    edge_name,
)
from edgesim.scenario.radio.layout_schema import SingleLayout
from edgesim.scenario.section import ValueRefusedError, refuse


def check_tiers(tiers: TiersSection, scenario: Any) -> None:
    """Refuse what is right in the section, but does not fit the others.

    Args:
        tiers: the section.
        scenario: the scenario that it is part of (`edgesim.scenario.schema.ScenarioKeys`).
    """
    devices = sum(each.count for each in scenario.devices)
    layout = scenario.network.layout
    single = isinstance(layout, SingleLayout)
    if single and not tiers.edges:
        problem = "is an empty list" if "edges" in tiers.model_fields_set else "is missing"
        problem += "; write at least one edge, such as [{position: [0 m, 0 m]}]"
        raise ValueRefusedError(problem, keys=("tiers", "edges"))
    if tiers.edges and not single:
        problem = f"stands beside network.layout {layout.kind}, whose sites are the edges"
        raise ValueRefusedError(f"{problem}; remove one of the two", keys=("tiers", "edges"))
    edges = edge_count(tiers, layout)
    for i, e in enumerate(tiers.members or ()):
        if e >= edges:
            problem = f"; allowed is 0 to {edges - 1}, the number of an edge"
            raise refuse(e, problem, "tiers", "members", i)
    if tiers.backhaul.links:
        _check_links(tiers.backhaul.links, edges)
    if tiers.members is not None and len(tiers.members) != devices:
        problem = f"has {counted(len(tiers.members), 'value')}, but the devices are {devices}"
        raise ValueRefusedError(f"{problem}; write one per device", keys=("tiers", "members"))
    model = scenario.network.channel.path_loss.model
    if model == "trace":
        problem = f"is {model}, which says nothing of several edges; write another model, or no "
        keys = ("network", "channel", "path_loss", "model")
        raise ValueRefusedError(f"{problem}tiers", keys=keys)
    if association_of(tiers, layout) == "nearest":
        _check_places(scenario, model)
    if model == "constant":
        for e, edge in enumerate(tiers.edges):
            if edge.position_m is not None:
                problem = "is not read with path_loss model constant; remove it"
                raise ValueRefusedError(problem, keys=("tiers", "edges", e, "position"))
    if not single:
        _check_sectors(tiers, scenario)
    for i, each in enumerate(scenario.devices):
        if each.mobility is not None:
            problem = "is not read with tiers, whose devices stay with their edge; remove it"
            raise ValueRefusedError(problem, keys=("devices", i, "mobility"))
    if scenario.clock.mode not in ("synchronous", "deadline"):
        problem = f"is {scenario.clock.mode}, but the edges of tiers know rounds only; write "
        problem += "synchronous or deadline"
        raise ValueRefusedError(problem, keys=("clock", "mode"))


def _check_places(scenario: Any, model: str) -> None:
    """Who belongs to the nearest edge stands somewhere."""
    if model == "constant":
        homeless = "with path_loss model constant nobody has a place"
    else:
        in_cells = not isinstance(scenario.network.layout, SingleLayout)
        placed = [bool(in_cells or each.distance_m or each.position) for each in scenario.devices]
        if all(placed):
            return
        homeless = f"devices.{placed.index(False)} has no place"
    problem = f"is nearest, but {homeless}; write association: strongest, balanced, price or list"
    raise ValueRefusedError(problem, keys=("tiers", "association"))


def _check_links(links: Sequence[LinkSection], edges: int) -> None:
    """Nodes that are edges exist, and from each edge there is a way to the cloud."""
    path: KeyPath = ("tiers", "backhaul", "links")
    known = {edge_name(e) for e in range(edges)}
    for i, link in enumerate(links):
        for name in link.between:
            if name.startswith("edge ") and name not in known:
                problem = f"; allowed are {', '.join(sorted(known))}, {CLOUD} and routers"
                raise refuse(name, problem, *path, i, "between")
        if any(set(link.between) == set(other.between) for other in links[:i]):
            problem = "; this link is there already, keep one of the two"
            raise refuse(list(link.between), problem, *path, i, "between")
    reached, more = {CLOUD}, True
    while more:
        ends = [set(link.between) for link in links]
        new = set[str]().union(*(pair for pair in ends if pair & reached)) - reached
        reached, more = reached | new, bool(new)
    if missing := sorted(known - reached):
        problem = f"lead no way from {missing[0]} to {CLOUD}; write a link for it"
        raise ValueRefusedError(problem, keys=path)


def _check_sectors(tiers: TiersSection, scenario: Any) -> None:
    """Edge servers plan their sectors each on its own, without the plans of the others."""
    network, allocation = scenario.network, scenario.allocation
    for key, is_load in (
        (("network", "interference"), (network.interference or Interference()).mode == LOAD),
        (("allocation", "interference"), allocation.interference == LOAD),
    ):
        if is_load:
            problem = "is load, which needs the plans of all sectors at once, but with tiers every "
            raise ValueRefusedError(f"{problem}edge plans its own; write {FULL}", keys=key)
    if allocation.interference == MEASURED:
        problem = "is measured, which edge servers do not keep so far"
        raise ValueRefusedError(f"{problem}; write {FULL}", keys=("allocation", "interference"))
    if network.downlink.mode != "ideal":
        problem = f"is {network.downlink.mode}, but edge servers at the sites of a layout have "
        problem += "ideal downlinks so far; write ideal"
        raise ValueRefusedError(problem, keys=("network", "downlink", "mode"))
    if tiers.association == "price" and network.power_control is not None:
        problem = "is price, but with network.power_control what an edge costs depends on the "
        problem += "edges of all other devices; write strongest, or remove power_control"
        raise ValueRefusedError(problem, keys=("tiers", "association"))
