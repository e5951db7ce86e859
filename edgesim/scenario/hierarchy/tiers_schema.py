"""The section tiers of a scenario: edge servers between the devices and a cloud."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import model_validator

from edgesim.scenario.fields import Quantity, WholeNumber, Word, WordList
from edgesim.scenario.hierarchy.value_lists import PointReader, WholeNumberList
from edgesim.scenario.section import (
    OURS,
    PER_SECTION,
    Section,
    ValueRefusedError,
    key,
    refuse,
    yaml_key,
)

ASSOCIATIONS = ("nearest", "strongest", "balanced", "price", "list")
HIERFAVG = "Liu, Zhang, Song and Letaief, ICC 2020"
CLOUD = "cloud"


def edge_name(e: int) -> str:
    """The node of an edge server in the graph."""
    return f"edge {e}"


class EdgeSection(Section):
    position_m: Annotated[tuple[float, float] | None, PointReader()] = key(
        "where the edge server and its base station stand, [x, y]; the devices' positions and "
        "distances are about the same origin",
        ["-200 m", "0 m"],
        None,
        f"{OURS}: the origin",
    )
    bandwidth_hz: Annotated[float | None, Quantity("Hz")] = key(
        "band of this edge's cell", "10 MHz", None, f"{OURS}: network.bandwidth, of each edge"
    )


class LinkSection(Section):
    between: Annotated[tuple[str, ...], WordList("two nodes")] = key(
        "the ends, first the one that is farther from the cloud: edge 0, edge 1, ..., cloud, or a "
        "name of a router",
        ["edge 0", "router"],
    )
    rate_bps: Annotated[float, Quantity("bit/s", absent=math.inf, none=True)] = key(
        "capacity towards the cloud, shared max-min fairly by the transfers on it; none: no limit",
        "1 Gbit/s",
        math.inf,
        f"{OURS}: no limit unless one is given",
    )
    down_rate_bps: Annotated[float | None, Quantity("bit/s")] = key(
        "capacity away from the cloud", "1 Gbit/s", None, f"{OURS}: that towards the cloud"
    )
    delay_s: Annotated[float, Quantity("s", above=False)] = key(
        "time until a bit that enters the link leaves it", "5 ms", 0.0, f"{OURS}: none"
    )
    energy_per_bit_j: Annotated[float, Quantity("J", above=False)] = key(
        "energy of carrying one bit, both directions alike", "10 nJ", 0.0, f"{OURS}: not charged"
    )

    @model_validator(mode="after")
    def _two_ends(self) -> LinkSection:
        if len(self.between) != 2 or self.between[0] == self.between[1]:
            raise refuse(list(self.between), "; write two nodes such as [edge 0, cloud]", "between")
        return self


class BackhaulSection(Section):
    rate_bps: Annotated[float, Quantity("bit/s", absent=math.inf, none=True)] = key(
        "capacity towards the cloud of the link that each edge has of its own; none: no limit",
        "1 Gbit/s",
        math.inf,
        f"{OURS}: no limit unless one is given",
    )
    down_rate_bps: Annotated[float | None, Quantity("bit/s")] = key(
        "capacity of that link away from the cloud",
        "1 Gbit/s",
        None,
        f"{OURS}: that towards the cloud",
    )
    delay_s: Annotated[float, Quantity("s", above=False)] = key(
        "delay of that link", "5 ms", 0.0, f"{OURS}: none"
    )
    energy_per_bit_j: Annotated[float, Quantity("J", above=False)] = key(
        "energy of carrying one bit over that link", "10 nJ", 0.0, f"{OURS}: not charged"
    )
    forwarding: Annotated[str, Word(("cut-through", "store-and-forward"))] = key(
        "cut-through: bits flow through all links of a path at once; store-and-forward: the whole "
        "model arrives at a node before it goes on",
        "store-and-forward",
        "cut-through",
        f"{OURS}: fluid",
    )
    links: tuple[LinkSection, ...] = key(
        "the links of another backhaul than one link of its own from each edge to the cloud; "
        "instead of rate, down_rate, delay and energy_per_bit",
        "[{between: [edge 0, router], rate: 1 Gbit/s}, {between: [router, cloud], delay: 5 ms}]",
        (),
        f"{OURS}: one from each edge",
    )

    @model_validator(mode="after")
    def _one_of_two_forms(self) -> BackhaulSection:
        for name in ("rate_bps", "down_rate_bps", "delay_s", "energy_per_bit_j"):
            if self.links and getattr(self, name) != type(self).model_fields[name].default:
                problem = "stands beside links; write it into each of the links, or remove them"
                raise ValueRefusedError(problem, keys=(yaml_key(name),))
        return self


class TiersSection(Section):
    edges: tuple[EdgeSection, ...] = key(
        "the edge servers, each with a cell of its own",
        "[{position: [-200 m, 0 m]}, {position: [200 m, 0 m]}]",
    )
    local_rounds: Annotated[int, WholeNumber(1, 10**6)] = key(
        "kappa_2, rounds of an edge with its devices between two exchanges with the cloud; rounds "
        "counts the exchanges",
        5,
        1,
        f"{HIERFAVG}: 1 is FedAvg",
    )
    association: Annotated[str, Word(ASSOCIATIONS)] = key(
        "which edge a device belongs to. nearest: by distance; strongest: by gain before fading; "
        "balanced: the strongest with room, so that edges have equally many; price: single moves "
        "and swaps while what the edges' plans cost falls; list: as members says",
        "strongest",
        "nearest",
        f"{OURS}; price: Luo et al., IEEE TWC 2020 (HFEL)",
    )
    members: Annotated[tuple[int, ...] | None, WholeNumberList("the edge of each device")] = key(
        "number of the edge of each device, with association: list",
        [0, 0, 1, 1],
        None,
        "not set: needed with association list only",
    )
    backhaul: BackhaulSection = key(
        "the links between edges and cloud",
        "{rate: 1 Gbit/s, delay: 5 ms}",
        BackhaulSection(),
        PER_SECTION,
    )

    @model_validator(mode="after")
    def _fits_together(self) -> TiersSection:
        if not self.edges:
            problem = "is an empty list; write at least one edge, such as {position: [0 m, 0 m]}"
            raise ValueRefusedError(problem, keys=("edges",))
        if self.association == "list" and self.members is None:
            problem = ", which needs members; write for instance members: [0, 0, 1, 1]"
            raise refuse(self.association, problem, "association")
        if self.association != "list" and self.members is not None:
            problem = ", which reads no members; remove it or write association: list"
            raise refuse(self.association, problem, "association")
        for i, e in enumerate(self.members or ()):
            if e >= len(self.edges):
                problem = f"; allowed is 0 to {len(self.edges) - 1}, the number of an edge"
                raise refuse(e, problem, "members", i)
        self._check_links()
        return self

    def _check_links(self) -> None:
        """Nodes that are edges exist, and from each edge there is a way to the cloud."""
        links = self.backhaul.links
        if not links:
            return
        known = {edge_name(e) for e in range(len(self.edges))}
        for i, link in enumerate(links):
            for name in link.between:
                if name.startswith("edge ") and name not in known:
                    problem = f"; allowed are {', '.join(sorted(known))}, {CLOUD} and routers"
                    raise refuse(name, problem, "backhaul", "links", i, "between")
            if any(set(link.between) == set(other.between) for other in links[:i]):
                problem = "; this link is there already, keep one of the two"
                raise refuse(list(link.between), problem, "backhaul", "links", i, "between")
        reached, more = {CLOUD}, True
        while more:
            ends = [set(link.between) for link in links]
            new = set[str]().union(*(pair for pair in ends if pair & reached)) - reached
            reached, more = reached | new, bool(new)
        if missing := sorted(known - reached):
            problem = f"lead no way from {missing[0]} to {CLOUD}; write a link for it"
            raise ValueRefusedError(problem, keys=("backhaul", "links"))


def check_tiers(tiers: TiersSection, scenario: Any) -> None:
    """Refuse what is right in the section, but does not fit the others.

    Args:
        tiers: the section.
        scenario: the scenario that it is part of (`edgesim.scenario.schema.ScenarioKeys`).
    """
    devices = sum(each.count for each in scenario.devices)
    if tiers.members is not None and len(tiers.members) != devices:
        problem = f"has {len(tiers.members)} values, but the devices are {devices}"
        raise ValueRefusedError(f"{problem}; write one per device", keys=("tiers", "members"))
    model = scenario.network.channel.path_loss.model
    if model in ("trace", "code"):
        problem = f"is {model}, which says nothing of several edges; write another model, or no "
        keys = ("network", "channel", "path_loss", "model")
        raise ValueRefusedError(f"{problem}tiers", keys=keys)
    if model == "constant":
        if tiers.association == "nearest":
            problem = "is nearest, but with path_loss model constant nobody has a place; write "
            problem += "association: strongest, balanced, price or list"
            raise ValueRefusedError(problem, keys=("tiers", "association"))
        for e, edge in enumerate(tiers.edges):
            if edge.position_m is not None:
                problem = "is not read with path_loss model constant; remove it"
                raise ValueRefusedError(problem, keys=("tiers", "edges", e, "position"))
    layout = scenario.network.layout.kind
    if layout != "single":
        problem = f"is {layout}, but the cells of tiers are those of tiers.edges; remove one"
        raise ValueRefusedError(problem, keys=("network", "layout", "kind"))
    for i, each in enumerate(scenario.devices):
        if each.mobility is not None:
            problem = "is not read with tiers, whose devices stay with their edge; remove it"
            raise ValueRefusedError(problem, keys=("devices", i, "mobility"))
    if scenario.clock.mode not in ("synchronous", "deadline"):
        problem = f"is {scenario.clock.mode}, but the edges of tiers know rounds only; write "
        problem += "synchronous or deadline"
        raise ValueRefusedError(problem, keys=("clock", "mode"))
