"""The backhaul between edges and cloud: a graph of links, and transfers that share them.

A transfer is a fluid: it takes bits / rate plus the delays of its links. The rates of all transfers
are max-min fair (`max_min_rates`) and set anew whenever one begins or ends, so that on one common
link they are those of processor sharing.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import simpy

from edgesim.network.band.max_min_rates import max_min_rates
from edgesim.scenario.hierarchy.tiers_schema import CLOUD, TiersSection, edge_name

if TYPE_CHECKING:
    import networkx

Hop = tuple[str, str]  # a link in one direction: from, to
PER_LINK_S = 1e-12  # by which one link more is longer, of paths with the same delay
Carrying = Generator[simpy.Event, Any, None]


def backhaul_graph(tiers: TiersSection, edges: int) -> networkx.DiGraph:
    """The nodes edge 0, edge 1, ..., cloud and routers; both directions of every link.

    Edges of the graph have ``capacity_bps``, ``delay_s`` and ``energy_per_bit_j``.

    Args:
        tiers: the section of the scenario.
        edges: E, number of edge servers.
    """
    import networkx

    graph, own = networkx.DiGraph(), tiers.backhaul
    names = [edge_name(e) for e in range(edges)]
    graph.add_nodes_from(names, kind="edge")
    graph.add_node(CLOUD, kind="cloud")
    links: list[tuple[str, str, Any]] = [
        (each.between[0], each.between[1], each) for each in own.links
    ]
    for one, other, link in links or [(name, CLOUD, own) for name in names]:
        down_bps = link.rate_bps if link.down_rate_bps is None else link.down_rate_bps
        about = {"delay_s": link.delay_s, "energy_per_bit_j": link.energy_per_bit_j}
        graph.add_edge(one, other, capacity_bps=link.rate_bps, **about)
        graph.add_edge(other, one, capacity_bps=down_bps, **about)
    for name in graph.nodes:
        graph.nodes[name].setdefault("kind", "router")
    return graph


class Backhaul:
    """Paths and capacities of a backhaul.

    Args:
        graph: of `backhaul_graph`.
        cut_through: bits flow through all links of a path at once; otherwise one link after the
            other carries all of them.
    """

    def __init__(self, graph: networkx.DiGraph, cut_through: bool = True) -> None:
        self.graph, self.cut_through = graph, cut_through
        self.capacity_bps: dict[Hop, float] = {
            (one, other): link["capacity_bps"] for one, other, link in graph.edges(data=True)
        }

    def path(self, edge: int, up: bool) -> list[Hop]:
        """The links between an edge and the cloud: least delay, then fewest links."""
        import networkx

        ends = (edge_name(edge), CLOUD) if up else (CLOUD, edge_name(edge))
        hops = networkx.shortest_path(
            self.graph, *ends, weight=lambda one, other, link: link["delay_s"] + PER_LINK_S
        )
        return list(pairwise(hops))

    def delay_s(self, path: Sequence[Hop]) -> float:
        """Sum of the delays of a path, s."""
        return math.fsum(self.graph.edges[hop]["delay_s"] for hop in path)

    def energy_j(self, path: Sequence[Hop], bits: float) -> float:
        """Energy of carrying so many bits over a path, J."""
        return bits * math.fsum(self.graph.edges[hop]["energy_per_bit_j"] for hop in path)

    def legs(self, path: list[Hop]) -> list[list[Hop]]:
        """The parts of a path that carry all bits one after the other."""
        return [path] if self.cut_through else [[hop] for hop in path]

    def planned_s(self, edge: int, edges: Sequence[int], bits: float) -> float:
        """Time of a download and an upload of an edge, if all transfer at once all the time, s.

        Args:
            edge: its number.
            edges: all that take part.
            bits: of the model, each way.
        """
        return math.fsum(self._planned_s(edge, edges, bits, up) for up in (False, True))

    def _planned_s(self, edge: int, edges: Sequence[int], bits: float, up: bool) -> float:
        path, seconds = self.path(edge, up), 0.0
        others = [leg for e in edges if e != edge for leg in self.legs(self.path(e, up))]
        for leg in self.legs(path):
            (rate_bps, *_) = max_min_rates([leg, *others], self.capacity_bps)
            seconds += bits / rate_bps + self.delay_s(leg)
        return seconds


class Transfers:
    """The transfers of a run over a backhaul.

    Args:
        env: the simulation environment.
        backhaul: the links.
    """

    def __init__(self, env: simpy.Environment, backhaul: Backhaul) -> None:
        self.env, self.backhaul = env, backhaul
        self._flows: dict[object, list[Hop]] = {}
        self._rates: dict[object, float] = {}
        self._changed = env.event()

    def carry(self, edge: int, bits: float, up: bool) -> Carrying:
        """Take the time that ``bits`` need between an edge and the cloud."""
        for leg in self.backhaul.legs(self.backhaul.path(edge, up)):
            yield from self._flow(leg, bits)
            delay_s = self.backhaul.delay_s(leg)
            if delay_s > 0.0:
                yield self.env.timeout(delay_s)

    def _flow(self, leg: list[Hop], bits: float) -> Carrying:
        """Carry bits over links at once, at the rate that the flows of each instant leave."""
        if all(math.isinf(self.backhaul.capacity_bps[hop]) for hop in leg):
            return
        flow, left = object(), bits
        self._flows[flow] = leg
        self._share_anew()
        while left > 0.0:
            start_s, rate_bps = self.env.now, self._rates[flow]
            finish = self.env.timeout(left / rate_bps)
            yield finish | self._changed
            # Rate x time rounds: where the timer of the last bit rang, all bits are there.
            left = 0.0 if finish.processed else left - rate_bps * (self.env.now - start_s)
        del self._flows[flow]
        self._share_anew()

    def _share_anew(self) -> None:
        """Set the rates of all flows, and wake those that count with the old ones."""
        rates = max_min_rates(list(self._flows.values()), self.backhaul.capacity_bps)
        self._rates = dict(zip(self._flows, rates, strict=True))
        changed, self._changed = self._changed, self.env.event()
        changed.succeed()
