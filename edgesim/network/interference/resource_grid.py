"""Where the shares of devices lie among the resource blocks of the band that sectors share.

Every sector lays what its devices hold side by side, in device order, from a block of its own that
is drawn once for a run, around the end of the band. A share need not be a whole number of blocks:
two devices of a sector may then have parts of one. Who is done leaves a gap; a sector lays its
devices anew only when one of them holds more than there was room for, or comes by handover.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgesim.network.interference.sector_bands import SectorBands
from fl.contracts import Array, Streams

SLACK = 1e-12  # relative, by which a share may exceed its place: sums are rounded


@dataclass(frozen=True, eq=False)
class Pieces:
    """Parts of blocks that devices hold, by block and then by device.

    Args:
        device: int [P].
        block: of the band, int [P].
        width: part of the block, more than 0 and at most 1 [P].
    """

    device: Array
    block: Array
    width: Array


class ResourceGrid:
    """The places of the shares of a network's sectors.

    Args:
        bands: which share each device holds.
        blocks: N_RB, resource blocks of the band.
        streams: random streams of the run.
    """

    def __init__(self, bands: SectorBands, blocks: int, streams: Streams) -> None:
        self.bands, self.blocks, count = bands, int(blocks), len(bands.couplings)
        drawn = [
            streams.stream("rb-offset", device=s).random() for s in range(bands.couplings.sectors)
        ]
        self.offset = np.floor(np.array(drawn) * self.blocks)  # first block of each sector [S]
        self._width = np.zeros(count)  # share for which there is room
        self._first = np.zeros(count)  # where it begins, in blocks from the start of the band
        self._sector = np.full(count, -1)  # that has laid it

    def forget(self, devices: Array) -> None:
        """Nothing is laid for some devices, int [N]: their round is over."""
        self._width[devices] = 0.0

    def pieces(self, share: Array) -> Pieces:
        """What devices hold of each block.

        Args:
            share: with which each device sends [K]; 0 where it does not.
        """
        self._make_room(share)
        here = np.flatnonzero(share > 0.0)
        start, end = self._first[here], self._first[here] + self.blocks * share[here]
        first = np.floor(start).astype(int)
        count = np.maximum(np.ceil(end).astype(int) - first, 1)
        of = np.repeat(np.arange(len(here)), count)
        block = first[of] + np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
        width = np.minimum(end[of], block + 1.0) - np.maximum(start[of], block)
        block %= self.blocks
        order = np.argsort(block, kind="stable")
        return Pieces(here[of][order], block[order], width[order])

    def _make_room(self, share: Array) -> None:
        """Lay the devices of those sectors anew in which one has no room for its share."""
        serving = self.bands.couplings.serving
        grown = (share > self._width * (1.0 + SLACK)) | (self._sector != serving)
        if not (grown := grown & (share > 0.0)).any():
            return
        held = np.where(self.bands.sending, share, self.bands.held)
        for s in np.unique(serving[grown]).tolist():
            devices = np.flatnonzero(serving == s)
            width = held[devices]
            self._width[devices], self._sector[devices] = width, s
            self._first[devices] = self.offset[s] + self.blocks * (np.cumsum(width) - width)
