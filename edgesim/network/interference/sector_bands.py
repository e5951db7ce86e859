"""The shares of the sectors' bands that devices hold, also through handovers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgesim.network.interference.couplings import Couplings
from edgesim.network.uplink import SHARE_SLACK
from fl.contracts import Array, Grant


class SectorBands:
    """Who holds which share of the band of its sector; they sum to at most 1 in every sector.

    Args:
        couplings: which sector serves each device.
        reclaim: what devices that are done held goes to those of their sector that send, in
            proportion to their own shares; else it stays free.
    """

    def __init__(self, couplings: Couplings, reclaim: bool = False) -> None:
        self.couplings, self.reclaim, count = couplings, reclaim, len(couplings)
        self.granted, self.held = np.zeros(count), np.zeros(count)
        self.sending = np.zeros(count, dtype=bool)
        self.freed = np.zeros(couplings.sectors)  # by devices that are done, with reclaim
        self.short: list[int] = []  # handed over to a sector without room, in this order

    def forget(self, among: Array | None = None) -> None:
        """Nobody holds anything.

        Args:
            among: devices of sectors of which this is true, int [N]; None: all.
        """
        devices = np.arange(len(self.couplings)) if among is None else among
        self.granted[devices] = self.held[devices] = 0.0
        self.sending[devices] = False
        if among is None:
            self.freed[:] = 0.0
        self.freed[self.couplings.serving[devices]] = 0.0
        self.short = [k for k in self.short if k not in devices]

    def grant(self, grants: Sequence[Grant]) -> None:
        """Reserve the shares of devices that start.

        Raises:
            ValueError: a negative share, or more than the whole band of a sector.
        """
        for grant in grants:
            self.granted[grant.device] = self.held[grant.device] = grant.share
        totals = self.reserved()
        if not totals.max(initial=0.0) <= 1.0 + SHARE_SLACK or self.held.min(initial=0.0) < 0.0:
            raise ValueError(
                f"the band shares of a sector sum to {float(totals.max())!r}; "
                "they must be at least 0 and sum to at most 1"
            )

    def reserved(self) -> Array:
        """Sum of the shares that are held in each sector [S]."""
        sums: Array = np.bincount(self.couplings.serving, self.held, self.couplings.sectors)
        return sums + self.freed

    def begin(self, device: int, share: float) -> None:
        """The device sends from now on.

        Args:
            device: k.
            share: that it was granted; who was away meanwhile takes what is free of it again.
        """
        self.sending[device] = True
        if self.granted[device] <= 0.0 < share:
            self.granted[device] = share
            room = self._room(int(self.couplings.serving[device]))
            is_whole = room >= share * (1.0 - SHARE_SLACK)  # what the others hold is rounded
            self.held[device] = share if is_whole else room
            if not is_whole:
                self.short.append(device)

    def pause(self, device: int) -> None:
        """The device does not send for a while, and keeps what it holds."""
        self.sending[device] = False

    def release(self, device: int) -> None:
        """The device needs its share no longer."""
        freed, self.held[device] = float(self.held[device]), 0.0
        self.granted[device], self.sending[device] = 0.0, False
        if device in self.short:
            self.short.remove(device)
        self._give(int(self.couplings.serving[device]), freed)

    def hand_over(self, device: int, sector: int) -> None:
        """The device goes on in another sector, with what is free there of the share it had.

        What is missing it gets when something frees. Tells the couplings of the new sector.
        """
        before, freed = int(self.couplings.serving[device]), float(self.held[device])
        if sector == before:
            return
        self.held[device] = 0.0
        self.couplings.move(device, sector)
        self._give(before, freed)
        if device in self.short:
            self.short.remove(device)
        if self.granted[device] > 0.0:
            self.short.append(device)
            # What others are lent of those who are done is free for who comes.
            self._give(sector, self._room(sector), keep=False)
            self.freed[sector] = min(self.freed[sector], self._room(sector))

    def _room(self, sector: int) -> float:
        """What nobody holds of the band of a sector."""
        held = float(self.reserved()[sector] - self.freed[sector])
        return max(0.0, 1.0 - held)

    def _give(self, sector: int, share: float, keep: bool = True) -> None:
        """Divide what is free in a sector among devices that were handed over; keep the rest."""
        for device in [k for k in self.short if self.couplings.serving[k] == sector]:
            taken = min(share, float(self.granted[device] - self.held[device]))
            self.held[device] += taken
            share -= taken
            if self.held[device] >= self.granted[device]:
                self.short.remove(device)
        if keep and self.reclaim:
            self.freed[sector] += share

    def shares(self) -> Array:
        """Share [K] with which each device sends now; 0 where it does not."""
        using = np.where(self.sending, self.held, 0.0)
        if not self.reclaim:
            return using
        serving = self.couplings.serving
        sums = np.bincount(serving, using, self.couplings.sectors)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(sums > 0.0, 1.0 + self.freed / sums, 1.0)
        return using * factor[serving]
