"""The network from above: sites, sectors, and who is served by which of them, how well."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from edgesim.errors import ScenarioError
from edgesim.network.layout.sites import Sites, make_sites
from edgesim.results.finished_run import FinishedRun
from edgesim.scenario.loader import load
from reports.figures.cell_topology import devices_of
from reports.run_data.scheme_grouping import Scheme
from reports.styling.axes_and_legends import legend, panels_side_by_side
from reports.styling.figure_style import INK, FigureStyle

SECTOR_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
SECTOR_MARKERS = ("o", "s", "^", "D", "v", "P")
FLATTEST = 0.4  # shorter side of a map over the longer one
AWAY = "#999999"  # devices that no sector reaches, or without a value


def has_sectors(run: FinishedRun) -> bool:
    """Does devices.csv say which sector serves each device, and where all are?"""
    return run.devices is not None and {"sector", "x_m", "y_m"} <= set(run.devices.columns)


def sites_of(run: FinishedRun) -> Sites | None:
    """The sites of the run's own scenario; None where it cannot be read."""
    try:
        return make_sites(load(run.folder / "scenario.yaml").network)
    except ScenarioError:
        return None


def mean_sinr_db(run: FinishedRun) -> np.ndarray | None:
    """Mean SINR of the uploads of each device [K], dB, nan without one; None where not recorded."""
    if "sinr_db" not in run.device_rounds or run.devices is None:
        return None
    mean = run.device_rounds.groupby("device")["sinr_db"].mean()
    return mean.reindex(run.devices["device"]).to_numpy()


def sector_map(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """Devices by the sector that serves them, and by the SINR of their uploads or coupling loss."""
    run = schemes[0].first
    sites, devices = sites_of(run), devices_of(schemes)
    height = 3.4 if style.wide else 5.4
    figure, (left, right) = panels_side_by_side(style, 2, (style.width_in, height), share_y=True)
    per_site = sites.sectors if sites is not None else 3
    dots: dict[str, Any] = {"s": max(4.0, min(20.0, 4000 / len(devices))), "lw": 0, "zorder": 2}
    which = devices["sector"].to_numpy()
    served = which >= 0
    # sites with one sector each have six looks, without a name
    which = which % per_site if per_site > 1 or sites is None else looks_of_sites(sites)[which]
    for i in range(per_site if per_site > 1 else len(SECTOR_COLOURS)):
        look = {"color": SECTOR_COLOURS[i % 6], "marker": SECTOR_MARKERS[i % 6]}
        here, name = devices[served & (which == i)], f"sector {i + 1}" if per_site > 1 else None
        left.scatter(here["x_m"], here["y_m"], label=name, **look, **dots)
    if not served.all():
        away = devices[~served]
        left.scatter(away["x_m"], away["y_m"], label="out of reach", color=AWAY, marker="X", **dots)
    sinr = mean_sinr_db(run)
    value = -devices["path_gain_db"].to_numpy() if sinr is None else sinr
    colours = colormaps["viridis"].with_extremes(bad=AWAY)
    shade: dict[str, Any] = {"c": value, "cmap": colours, "plotnonfinite": True}
    shown = right.scatter(devices["x_m"], devices["y_m"], **shade, **dots)
    title = "coupling loss (dB)" if sinr is None else "SINR of uploads, mean (dB)"
    # beside the axes and as high as they are, also where their aspect makes them low
    figure.colorbar(shown, cax=right.inset_axes((1.03, 0.0, 0.03, 1.0))).set_label(title)
    for panel in (left, right):
        if sites is not None:
            draw_sites(panel, sites)
        leave_room(panel)
        panel.set_aspect("equal")
        panel.grid(visible=False)
        panel.set(xlabel="x (m)", ylabel="y (m)")
    if style.wide:
        right.set_ylabel("")
    if sites is not None:
        lines = LineCollection(_links(sites, devices[served]), color="#BBBBBB", lw=0.25, zorder=1)
        left.add_collection(lines, autolim=False)
    legend(figure, left, style)
    return figure


def leave_room(panel: Axes) -> None:
    """Around a long row, so that the axes are not as low as its markers."""
    for low, high, limit in (
        (*panel.get_xlim(), panel.set_xlim),
        (*panel.get_ylim(), panel.set_ylim),
    ):
        least = FLATTEST * max(np.ptp(panel.get_xlim()), np.ptp(panel.get_ylim()))
        if high - low < least:
            limit(0.5 * (low + high - least), 0.5 * (low + high + least))


def looks_of_sites(sites: Sites) -> np.ndarray:
    """A look for every site [I], int: that whose sites so far are furthest, a new one first.

    With wrap-around as a device is served, over the edge; of looks equally far in the picture.
    """
    looks = np.zeros(len(sites), dtype=int)
    for site, place in enumerate(sites.position_m):
        before = sites.position_m[:site]
        away = np.hypot(*np.stack([sites.offset_m(site, before), before - place]).T)
        least = [
            away[looks[:site] == look].min(axis=0, initial=math.inf)
            for look in range(len(SECTOR_COLOURS))
        ]
        # to a millimetre, so that rounding decides nothing
        far = np.round(least, 3).tolist()
        looks[site] = far.index(max(far))
    return looks


def draw_sites(panel: Axes, sites: Sites) -> None:
    """A triangle for every site, and a stroke into the direction of each of its sectors."""
    x, y = sites.position_m.T
    panel.scatter(x, y, s=14, c=INK, marker="^", zorder=4, lw=0)
    reach = 0.16 * _distance_m(sites)
    angle = np.radians(sites.boresight_deg)
    start = sites.position_m[sites.site_of]
    end = start + reach * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if sites.sectors > 1:
        strokes = np.stack([start, end], axis=1)
        panel.add_collection(LineCollection(list(strokes), color=INK, lw=0.9, zorder=3))


def _distance_m(sites: Sites) -> float:
    """Between neighbouring sites, m; of given places the least that there is."""
    if not math.isnan(sites.isd_m) or len(sites) < 2:
        return 0.0 if math.isnan(sites.isd_m) else sites.isd_m
    apart = np.hypot(*(sites.position_m[:, None] - sites.position_m[None]).transpose(2, 0, 1))
    return float(apart[apart > 0].min())


def _links(sites: Sites, devices: pd.DataFrame) -> list[np.ndarray]:
    """A line from every device to the image of the site that serves it; with wrap-around some
    leave the picture.
    """
    places = devices[["x_m", "y_m"]].to_numpy(dtype=float)
    homes = sites.site_of[devices["sector"].to_numpy(dtype=int)]
    lines = []
    for place, site in zip(places, homes, strict=True):
        offset = sites.offset_m(int(site), place[None])[0]
        lines.append(np.stack([place, place - offset]))
    return lines
