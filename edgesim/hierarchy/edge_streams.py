"""Random streams of an edge: its radio has its own, what devices learn is that of any cell.

Edge 0 draws what a cell without tiers draws, so that a hierarchy of one edge is that cell. A device
draws its mini-batches by its own number, whichever edge it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fl.contracts import Array, Streams

# The same at every edge: the weights of the start, and losses drawn per device, not per link.
SHARED = ("init", "path-loss")


@dataclass(frozen=True, eq=False)
class EdgeStreams:
    """Streams of one edge (`fl.contracts.Streams`).

    Args:
        streams: of the run.
        edge: its number.
        members: its devices, by their numbers in the scenario, int [N]: streams of its cell and of
            what they learn; None: of the links of all devices to it.
    """

    streams: Streams
    edge: int
    members: Array | None = None

    def stream(
        self, purpose: str, device: int | None = None, round: int | None = None
    ) -> np.random.Generator:
        if self.members is not None and device is not None:
            return self.streams.stream(purpose, int(self.members[device]), round)
        shared = self.edge == 0 or purpose in SHARED
        name = purpose if shared else f"edge {self.edge}/{purpose}"
        return self.streams.stream(name, device, round)
