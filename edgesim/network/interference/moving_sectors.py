"""Devices of a network that move: their gains at all sectors, and the sectors that serve them."""

from __future__ import annotations

import numpy as np

from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.layout.coupling import SectorLinks
from edgesim.network.mobility.serving_sectors import Handover, ServingSectors
from fl.contracts import Array


class MovingSectors:
    """Keeps the couplings of a network as they are at the instants that it is asked for.

    Args:
        sectors: gains and handovers over time.
        channel: of the network, whose couplings and K factors follow the devices.
        site_of: site of every sector, int [S].
        interruption_s: time without a link in a handover, s.
        k_by_place: K factors follow the devices too.
    """

    def __init__(
        self,
        sectors: ServingSectors,
        channel: SectorChannel,
        site_of: Array,
        interruption_s: float = 0.05,
        k_by_place: bool = False,
    ) -> None:
        self.sectors, self.channel, self.site_of = sectors, channel, site_of
        self.interruption_s, self.k_by_place = interruption_s, k_by_place
        self._links: SectorLinks | None = None

    def next_change_s(self, time_s: float) -> float:
        """The first instant after that of `follow` at which something changes, s."""
        return self.sectors.next_change_s(time_s)

    def follow(self, time_s: float) -> list[Handover]:
        """Take the gains of an instant; the handovers since the call before, to be carried out."""
        links = self.sectors.links(time_s)
        if links is not self._links:
            self._links = links
            self.channel.couplings.replace(links.coupling)
            if self.k_by_place:
                self.channel.k_to_sectors = links.k_factor[:, self.site_of]
        return self.sectors.until(time_s)

    def update_k(self) -> None:
        """Take the K factors towards the sites that serve the devices now."""
        if (k_factor := self.channel.k_to_sectors) is not None:
            self.channel.k_now = k_factor[np.arange(len(k_factor)), self.channel.couplings.serving]
