"""Base stations in the plane: hexagonal grids with wrap-around, or given places.

The sites of a hexagonal grid are i a1 + j a2 with a1 = D (1, 0) and a2 = D (1 / 2, sqrt(3) / 2),
D the distance between sites. Wrap-around repeats the whole network: R rings of sites fill the plane
if they are moved by (R + 1) a1 + R a2 and its rotations by 60 degrees, D sqrt(3 R^2 + 3 R + 1) long
(3GPP TR 38.901, Table 7.8-1: geographical distance based wrapping). Every site then has six
neighbours at D, and a device sees one image of each site, the nearest, for all its quantities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgesim.scenario.network_schema import NetworkSection
from edgesim.scenario.radio.layout_schema import HexLayout, SitesLayout, isd_of
from fl.contracts import Array

A1, A2 = np.array([1.0, 0.0]), np.array([0.5, math.sqrt(0.75)])  # basis of the grid, times D
FIRST_DEG = 30.0  # boresight of the first sector where no antenna says one


@dataclass(frozen=True, eq=False)
class Sites:
    """I sites with as many sectors each; S sectors, those of a site side by side.

    Args:
        position_m: where they stand [I, 2], m.
        sectors: of each site.
        first_deg: boresight of a site's first sector, counterclockwise from the x axis.
        isd_m: D of a hexagonal grid; nan: given places.
        period_m: the two vectors by which the network repeats [2, 2], m; None: no wrap-around.
    """

    position_m: Array
    sectors: int = 1
    first_deg: float = FIRST_DEG
    isd_m: float = math.nan
    period_m: Array | None = None

    def __len__(self) -> int:
        """I."""
        return len(self.position_m)

    @cached_property
    def site_of(self) -> Array:
        """Site of every sector, int [S]."""
        return np.repeat(np.arange(len(self)), self.sectors)

    @cached_property
    def boresight_deg(self) -> Array:
        """Direction of every sector, counterclockwise from the x axis [S]."""
        of_one = self.first_deg + 360.0 / self.sectors * np.arange(self.sectors)
        return np.tile(of_one % 360.0, len(self))

    @cached_property
    def images_m(self) -> Array:
        """Moves to the network's nearest copies, itself first [N, 2], m."""
        if self.period_m is None:
            return np.zeros((1, 2))
        a, b = self.period_m
        return np.stack([0.0 * a, a, b, b - a, -a, -b, a - b])

    @cached_property
    def _per_period(self) -> Array:
        """Coordinates of a position by the vectors of the period [2, 2], 1/m."""
        return np.linalg.inv(np.asarray(self.period_m))

    def offset_m(self, site: int, position_m: Array) -> Array:
        """Devices [K, 2] as seen from the nearest image of a site, m."""
        offset = np.asarray(position_m, dtype=float) - self.position_m[site]
        if self.period_m is None:
            return offset
        # into the parallelogram around the origin, from where the nearest image is one of seven
        offset = offset - np.rint(offset @ self._per_period) @ self.period_m
        x_m, y_m = np.moveaxis(offset[:, None] - self.images_m, -1, 0)
        return offset - self.images_m[np.argmin(x_m**2 + y_m**2, axis=1)]

    def nearest(self, position_m: Array) -> tuple[Array, Array]:
        """(nearest site int [K], its distance [K], m) of positions [K, 2]."""
        distance = np.stack([np.hypot(*self.offset_m(i, position_m).T) for i in range(len(self))])
        home = distance.argmin(axis=0)
        return home, distance.min(axis=0)


def hexagonal_grid(rings: int) -> Array:
    """Sites of a hexagonal grid with D = 1, ring by ring [I, 2]."""
    steps = range(-rings, rings + 1)
    cells = [(i, j) for i in steps for j in steps if abs(i + j) <= rings]
    points = [(max(abs(i), abs(j), abs(i + j)), i * A1 + j * A2) for i, j in cells]
    points.sort(key=lambda each: (each[0], math.atan2(each[1][1], each[1][0]) % (2.0 * math.pi)))
    return np.array([point for _, point in points])


def wrap_vectors(rings: int) -> Array:
    """The first two moves to a copy of a hexagonal grid with D = 1 [2, 2]; the second by 60 deg."""
    # a rotation by 60 degrees takes a1 to a2 and a2 to a2 - a1
    return np.stack([(rings + 1) * A1 + rings * A2, (rings + 1) * A2 + rings * (A2 - A1)])


def hexagonal_sites(
    rings: int, isd_m: float, sectors: int = 3, wrap: bool = True, first_deg: float = FIRST_DEG
) -> Sites:
    """A hexagonal layout, the first site at the origin.

    Args:
        rings: of sites around the first; 2 give 19 sites.
        isd_m: distance between neighbouring sites, m.
        sectors: of each site.
        wrap: wrap-around.
        first_deg: boresight of a site's first sector.

    Example:
        >>> len(hexagonal_sites(2, 500.0).site_of)
        57
    """
    period_m = isd_m * wrap_vectors(rings) if wrap else None
    return Sites(isd_m * hexagonal_grid(rings), sectors, first_deg, isd_m, period_m)


def make_sites(network: NetworkSection) -> Sites:
    """The sites of a scenario's ``network`` section."""
    layout, loss = network.layout, network.channel.path_loss
    antenna = getattr(loss, "antenna", None)
    first_deg = FIRST_DEG if antenna is None else antenna.azimuth_deg
    if isinstance(layout, HexLayout):
        isd_m = isd_of(layout, loss.model)
        return hexagonal_sites(layout.rings, isd_m, layout.sectors, layout.wrap, first_deg)
    if isinstance(layout, SitesLayout):
        return Sites(np.array(layout.position.points_m), layout.sectors, first_deg)
    return Sites(np.zeros((1, 2)), 1, first_deg)
