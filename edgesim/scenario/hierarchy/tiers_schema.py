"""The section tiers of a scenario: edge servers between the devices and a cloud."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import model_validator

from edgesim.scenario.fields import Quantity, WholeNumber, Word, WordList
from edgesim.scenario.hierarchy.value_lists import PointReader, WholeNumberList
from edgesim.scenario.radio.layout_schema import Layout, SingleLayout, site_count
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
        "band of this edge's cell, in both directions",
        "10 MHz",
        None,
        f"{OURS}: network.bandwidth and network.downlink.bandwidth, of each edge",
    )


class LinkSection(Section):
    between: Annotated[tuple[str, ...], WordList("two nodes", "edge 0, cloud")] = key(
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
        # rate would be the capacity away from the cloud, and down_rate that towards it
        if self.between[0] == CLOUD:
            problem = "; write first the end that is farther from the cloud"
            raise refuse(list(self.between), problem, "between")
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
        "the edge servers, each with a cell of its own; not with network.layout, where every site "
        "has an edge server for all of its sectors",
        "[{position: [-200 m, 0 m]}, {position: [200 m, 0 m]}]",
        (),
        "not set: needed without network.layout",
    )
    local_rounds: Annotated[int, WholeNumber(1, 10**6)] = key(
        "kappa_2, rounds of an edge with its devices between two exchanges with the cloud; rounds "
        "counts the exchanges",
        5,
        1,
        f"{HIERFAVG}: 1 is FedAvg",
    )
    association: Annotated[str | None, Word(ASSOCIATIONS)] = key(
        "which edge a device belongs to. nearest: by distance; strongest: by gain before fading, "
        "with network.layout that of the best sector; balanced: the strongest with room, so that "
        "edges have equally many; price: single moves and swaps while what the edges' plans cost "
        "falls; list: as members says",
        "strongest",
        None,
        f"not set: nearest, with network.layout strongest, {OURS}; price: Luo et al., IEEE TWC "
        "2020 (HFEL)",
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
        if self.association == "list" and self.members is None:
            problem = ", which needs members; write for instance members: [0, 0, 1, 1]"
            raise refuse(self.association, problem, "association")
        if self.association is None and self.members is not None:
            problem = "is read with association: list only; remove it, or write that"
            raise ValueRefusedError(problem, keys=("members",))
        if self.association != "list" and self.members is not None:
            problem = ", which reads no members; remove it or write association: list"
            raise refuse(self.association, problem, "association")
        return self


def edge_count(tiers: TiersSection, layout: Layout) -> int:
    """E, number of edge servers: those of the section, or one per site of a layout."""
    return len(tiers.edges) if isinstance(layout, SingleLayout) else site_count(layout)


def association_of(tiers: TiersSection, layout: Layout) -> str:
    """The rule by which devices belong to edges."""
    return tiers.association or ("nearest" if isinstance(layout, SingleLayout) else "strongest")
