"""Devices dropped uniformly over the cells of a layout, at least some distance from every site."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edgesim.network.device_positions import in_hexagon
from edgesim.network.layout.sites import Sites, make_sites
from edgesim.scenario.network_schema import NetworkSection
from edgesim.scenario.radio.layout_schema import HexLayout, nearest_of
from fl.contracts import Array, Streams


@dataclass(frozen=True, eq=False)
class CellDrop:
    """Draws positions over the cells of all sites: hexagons, which fill the network's area.

    Args:
        sites: of a hexagonal grid.
        streams: random streams of the run.
        least_m: distance to every site where a class says none, m.
    """

    sites: Sites
    streams: Streams
    least_m: float = 0.0

    def __call__(self, least_m: float | None, count: int, purpose: str) -> Array:
        """Positions [count, 2], m; prefix stable: a device that is too near draws again by itself.

        Args:
            least_m: distance to every site, less than half the distance between two, m; None: the
                model's.
            count: number of devices.
            purpose: of the random streams.
        """
        position_m, left, attempt = np.empty((count, 2)), np.arange(count), 0
        least_m = self.least_m if least_m is None else least_m
        corner_m = self.sites.isd_m / math.sqrt(3.0)
        while left.size:
            uniform = self.streams.stream(purpose, round=attempt).random((count, 3))[left]
            site = (len(self.sites) * uniform[:, 0]).astype(int)
            # Neighbours stand along the x axis, where this hexagon has a corner: mirrored.
            inside = in_hexagon(corner_m, uniform[:, 1], uniform[:, 2])[:, ::-1]
            position_m[left] = self.sites.position_m[site] + inside
            left = left[np.hypot(*inside.T) < least_m]
            attempt += 1
        return position_m


def make_drop(network: NetworkSection, streams: Streams) -> CellDrop | None:
    """The drop over the cells of a scenario's layout; None: it has none."""
    if not isinstance(network.layout, HexLayout):
        return None
    return CellDrop(make_sites(network), streams, nearest_of(network.channel.path_loss.model))
