"""Who is connected to whom: a networkx graph of cells and devices. One star for now; tiers add edge servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx

CELL = "cell 0"


def star(num_devices: int) -> networkx.Graph:
    """One cell in the middle, devices 0..K-1 around it; an edge is a radio link."""
    import networkx

    graph = networkx.Graph()
    graph.add_node(CELL, kind="cell")
    graph.add_nodes_from(range(num_devices), kind="device")
    graph.add_edges_from(((CELL, k) for k in range(num_devices)), medium="radio")
    return graph


def devices_of(graph: networkx.Graph, cell: str = CELL) -> list[int]:
    """Devices that a cell serves, in order."""
    return sorted(node for node in graph.neighbors(cell) if graph.nodes[node]["kind"] == "device")
