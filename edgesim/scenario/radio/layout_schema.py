"""The sections layout and power_control of a scenario: sites, sectors, uplink power."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from edgesim.scenario.fields import Boolean, Quantity, WholeNumber
from edgesim.scenario.radio.placement import Placement, PlacementReader
from edgesim.scenario.section import OURS, Section, key, refuse
from edgesim.scenario.units import format_quantity

DISTANCE_M = {"uma": 500.0, "umi": 200.0, "rma": 1732.0, "inh": 20.0}  # between sites
P0_W = 10.0**-23.2 * (1.0 - 1e-9), 10.0**-0.6 * (1.0 + 1e-9)  # -202 and 24 dBm
ALPHAS = (0.0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of 3GPP TS 38.331, Alpha
NEAREST_M = {"umi": 10.0, "inh": 0.0}  # a device to a site; 35 m elsewhere


class SingleLayout(Section):
    kind: Literal["single"] = key("single: one base station at the origin, one sector", "single")


class HexLayout(Section):
    kind: Literal["hex"] = key("hex: sites on a hexagonal grid, the first at the origin", "hex")
    rings: Annotated[int, WholeNumber(0, 10)] = key(
        "rings of sites around the first: 1 gives 7 sites, 2 give 19",
        2,
        2,
        "3GPP TR 38.901, Table 7.8-1: 19 sites",
    )
    isd_m: Annotated[float | None, Quantity("m", 1.0, 1e5, above=False)] = key(
        "distance between neighbouring sites",
        "500 m",
        None,
        "not set: 500 m; umi 200 m, rma 1732 m, inh 20 m, 3GPP TR 38.901, Tables 7.2-1 to 7.2-3",
    )
    sectors: Annotated[int, WholeNumber(1, 12)] = key(
        "sectors of a site, their boresights at equal angles; the first is antenna.azimuth",
        3,
        3,
        "3GPP TR 38.901, Tables 7.2-1 and 7.8-1",
    )
    wrap: Annotated[bool, Boolean()] = key(
        "wrap-around: every site has six images, so that none is at an edge; a device sees the "
        "nearest image of a site",
        False,
        True,
        "3GPP TR 38.901, Table 7.8-1: geographical wrap-around",
    )


class SitesLayout(Section):
    kind: Literal["sites"] = key("sites: base stations at given places", "sites")
    position: Annotated[Placement, PlacementReader(("list", "csv"))] = key(
        "where the sites stand",
        "{list: [[0 m, 0 m], [500 m, 0 m]]}",
    )
    sectors: Annotated[int, WholeNumber(1, 12)] = key(
        "sectors of a site, their boresights at equal angles; the first is antenna.azimuth",
        3,
        1,
        f"{OURS}: of sites one in all directions",
    )

    @model_validator(mode="after")
    def _are_points(self) -> SitesLayout:
        if len(set(self.position.points_m)) < len(self.position.points_m):
            raise refuse(self.position.kind, " has two sites at one point; move one", "position")
        return self


Layout = SingleLayout | HexLayout | SitesLayout


class PowerControlSection(Section):
    p0_w: Annotated[float, Quantity("W", high=1e3)] = key(
        "P0, power that should arrive per resource block of 180 kHz where alpha is 1, -202 dBm to "
        "24 dBm as in 3GPP TS 38.331",
        "-85 dBm",
        10.0**-11.5,
        f"{OURS}: -85 dBm",
    )
    alpha: Annotated[float, Quantity(high=1.0, above=False)] = key(
        "share of the path loss (dB) that a device makes up for, one of the values of 3GPP TS "
        "38.331: 0 (nothing of it), 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1 (all of it)",
        0.8,
        0.8,
        f"{OURS}: a common value of 3GPP TS 38.331, field Alpha",
    )

    @model_validator(mode="after")
    def _of_the_standard(self) -> PowerControlSection:
        if not P0_W[0] <= self.p0_w <= P0_W[1]:
            problem = "; TS 38.331, p0-NominalWithGrant, has -202 dBm to 24 dBm"
            raise refuse(format_quantity(self.p0_w, "W"), problem, "p0")
        if self.alpha not in ALPHAS:
            values = ", ".join(f"{each:g}" for each in ALPHAS)
            raise refuse(self.alpha, f"; TS 38.331, Alpha, has {values}", "alpha")
        return self


def site_count(layout: Layout) -> int:
    """I, number of sites of a layout."""
    if isinstance(layout, HexLayout):
        return 1 + 3 * layout.rings * (layout.rings + 1)
    return len(layout.position.points_m) if isinstance(layout, SitesLayout) else 1


def isd_of(layout: HexLayout, model: str) -> float:
    """Distance between the sites under a path loss model, m."""
    return DISTANCE_M.get(model, 500.0) if layout.isd_m is None else layout.isd_m


def nearest_of(model: str) -> float:
    """Least distance of a device to a site, 3GPP TR 38.901, Tables 7.2-1 to 7.2-3, m."""
    return NEAREST_M.get(model, 35.0)
