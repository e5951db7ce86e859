"""Random streams of an edge: its radio has its own, what devices learn is that of any cell.

Edge 0 draws what a cell without tiers draws, so that a hierarchy of one edge is that cell. A device
draws its mini-batches by its own number, wherever it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fl.contracts import Array, Streams

SAME_START = "init"  # the model starts from the same weights everywhere
SAME_LOSS = "path-loss"  # losses that a scenario draws per device, not per link


@dataclass(frozen=True)
class SiteStreams:
    """Streams of the links of all devices to one edge (`fl.contracts.Streams`).

    Args:
        streams: of the run.
        edge: its number.
    """

    streams: Streams
    edge: int

    def stream(
        self, purpose: str, device: int | None = None, round: int | None = None
    ) -> np.random.Generator:
        shared = self.edge == 0 or purpose == SAME_LOSS
        name = purpose if shared else f"edge {self.edge}/{purpose}"
        return self.streams.stream(name, device, round)


@dataclass(frozen=True, eq=False)
class EdgeStreams:
    """Streams of the cell of one edge and of what its devices learn (`fl.contracts.Streams`).

    Args:
        streams: of the run.
        edge: its number.
        members: its devices, by their numbers in the scenario, int [N].
    """

    streams: Streams
    edge: int
    members: Array

    def stream(
        self, purpose: str, device: int | None = None, round: int | None = None
    ) -> np.random.Generator:
        if device is not None:
            return self.streams.stream(purpose, int(self.members[device]), round)
        shared = self.edge == 0 or purpose == SAME_START
        name = purpose if shared else f"edge {self.edge}/{purpose}"
        return self.streams.stream(name, device, round)
