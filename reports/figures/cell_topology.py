"""The cell: the base station, its devices, where they are, and the rate that each could have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from edgesim.errors import ScenarioError
from edgesim.results.finished_run import FinishedRun
from edgesim.scenario.loader import load
from reports.run_data.scheme_grouping import Scheme
from reports.styling.axes_and_legends import one_panel
from reports.styling.figure_style import INK, QUIET, FigureStyle
from reports.styling.number_formats import decimals, significant
from reports.styling.table_formats import Column, Table

STATION = "base station"
MOST_NAMED = 30  # devices with a number on them
MOST_DRAWN = 1000
# an angle under which no two of many devices lie behind each other
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))


def node_positions(devices: pd.DataFrame) -> tuple[dict[Any, Any], str]:
    """Node -> (x, y), m, and how they are known.

    Returns:
        "positions"; "distances", where the direction means nothing; or "star" without either.
    """
    names, known = devices["device"].astype(int), devices.notna().all()
    if known.get("x_m", False) and known.get("y_m", False):
        places = devices[["x_m", "y_m"]].to_numpy(dtype=float).tolist()
        return {STATION: (0.0, 0.0), **dict(zip(names, places, strict=True))}, "positions"
    if known.get("distance_m", False):
        kind, turn, radius = "distances", GOLDEN_ANGLE, devices["distance_m"].to_numpy(dtype=float)
    else:
        kind, turn, radius = "star", 2 * math.pi / max(len(devices), 1), np.ones(len(devices))
    angle = np.arange(len(devices)) * turn
    circle = zip(names, radius * np.cos(angle), radius * np.sin(angle), strict=True)
    return {STATION: (0.0, 0.0), **{int(k): (x, y) for k, x, y in circle}}, kind


def edge_positions(run: FinishedRun) -> list[tuple[float, float]]:
    """(x, y) of every edge server of `tiers`, m; empty without, or where the scenario is gone."""
    if run.devices is None or "edge" not in run.devices:
        return []
    try:
        tiers = load(run.folder / "scenario.yaml").tiers
    except ScenarioError:
        return []
    places = [] if tiers is None else [edge.position_m for edge in tiers.edges]
    return [place for place in places if place is not None]


def devices_of(schemes: list[Scheme]) -> pd.DataFrame:
    """The devices of the first run; no rows without a devices.csv."""
    table = schemes[0].first.devices
    return pd.DataFrame() if table is None else table


def has_devices(schemes: list[Scheme]) -> bool:
    """Is any device of the first run known?"""
    return len(devices_of(schemes)) > 0


def cell_topology(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """Devices around the base station; colour: the uplink rate over the whole band in round 0."""
    table = devices_of(schemes)
    where, kind = node_positions(table)
    if len(table) > MOST_DRAWN:
        table = table.iloc[np.linspace(0, len(table) - 1, MOST_DRAWN).round().astype(int)]
    devices = [int(k) for k in table["device"]]
    edges = edge_positions(schemes[0].first) if kind == "positions" else []
    stations = edges or [where[STATION]]
    homes = table["edge"].to_numpy(dtype=int) if edges else np.zeros(len(table), dtype=int)
    figure, panel = one_panel(style, 4.0, 3.2)
    few = len(devices) <= MOST_NAMED
    size = (style.text_pt * 1.9) ** 2 * 0.8 if few else 12
    rays = [(stations[home], where[device]) for home, device in zip(homes, devices, strict=True)]
    panel.add_collection(LineCollection(rays, color="#BBBBBB", lw=0.5 if few else 0.15, zorder=1))
    rate = [math.nan] * len(devices)
    if "rate_bps" in table:
        rate = (table["rate_bps"].to_numpy(dtype=float) / 1e6).tolist()
    known = not all(math.isnan(value) for value in rate)
    fill: dict[str, Any] = {"c": rate, "cmap": "YlGnBu"} if known else {"c": "#DDDDDD"}
    fill |= {"edgecolors": INK, "linewidths": 0.5, "zorder": 2, "plotnonfinite": True}
    x, y = np.transpose([where[device] for device in devices])
    circles = panel.scatter(x, y, s=size, **fill)
    x, y = np.transpose(stations)
    panel.scatter(x, y, s=size, c=INK, marker="^", zorder=2)
    if few:
        shades = rate if known else [0.0] * len(devices)
        _write_numbers(panel, figure, where, dict(zip(devices, shades, strict=True)), size)
    _draw_scale(panel, kind)
    if known:
        bar = figure.colorbar(circles, ax=panel, pad=0.02, aspect=25)
        bar.set_label("uplink rate, whole band (Mbit/s)")
    return figure


def _write_numbers(
    panel: Axes, figure: Figure, where: dict[Any, Any], rate: dict[int, float], size: float
) -> None:
    """The devices' numbers, white on dark; none on a circle that a later one covers."""
    values = list(rate.values())
    dark = 0.5 * (np.nanmin(values) + np.nanmax(values))
    spread = np.ptp([where[node] for node in (STATION, *rate)], axis=0).max() or 1.0
    gap = math.sqrt(size) / 72 / (0.7 * figure.get_figheight()) * spread
    named: list[int] = []
    for device in reversed(rate):  # the last one lies on top
        if all(math.dist(where[device], where[other]) >= gap for other in named):
            named.append(device)
            kind: dict[str, Any] = {"color": "white" if rate[device] > dark else INK, "zorder": 5}
            x, y = where[device]
            panel.text(x, y, str(device), ha="center", va="center", **kind)


def _draw_scale(panel: Axes, kind: str) -> None:
    # room for whole circles, which margins alone do not keep when the aspect is set
    (low, high), room = panel.dataLim.get_points(), 0.08 * max(panel.dataLim.size)
    panel.update_datalim([low - room, high + room])
    panel.set_aspect("equal", adjustable="datalim")
    panel.margins(0.04)
    panel.grid(visible=False)
    if kind == "star":
        panel.set_axis_off()
        return
    panel.tick_params(left=True, bottom=True, labelleft=True, labelbottom=True)
    panel.set(xlabel="x (m)", ylabel="y (m)")
    if kind == "distances":
        panel.set(xlabel="distance from the base station (m)", ylabel="distance (m)")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):g}"))
        _draw_rings(panel)


def _draw_rings(panel: Axes) -> None:
    """Circles of equal distance; only they mean something, the direction does not."""
    limit = max(map(abs, (*panel.get_xlim(), *panel.get_ylim())))
    step = 10 ** math.floor(math.log10(limit / 2))
    step = next(factor * step for factor in (5, 2, 1) if factor * step <= limit / 2 or factor == 1)
    angle = np.linspace(0, 2 * math.pi, 181)
    for radius in np.arange(step, limit, step):
        x, y = radius * np.cos(angle), radius * np.sin(angle)
        panel.plot(x, y, color=QUIET, lw=0.4, ls=":", zorder=0)


def device_table(schemes: list[Scheme]) -> Table | None:
    """The devices of the first run with their rates in round 0; None without a devices.csv."""
    run = schemes[0].first
    if run.devices is None:
        return None
    columns = (
        Column("device", "Device"),
        Column("sector", "Sector"),
        Column("x_m", "x (m)", decimals(1)),
        Column("y_m", "y (m)", decimals(1)),
        Column("distance_m", "Distance (m)", significant(3)),
        Column("path_gain_db", "Path gain (dB)", decimals(1)),
        Column("tx_power_w", "Transmit power (mW)", significant(3, 1e3)),
        Column("cpu_hz", "CPU (GHz)", significant(3, 1e-9)),
        Column("rate_bps", "Rate, whole band (Mbit/s)", significant(4, 1e-6)),
        Column("samples", "Samples"),
    )
    known = {column.name: column for column in columns}
    names = [name for name in run.devices.columns if name in known]
    rows = run.devices[names].astype(object).itertuples(index=False, name=None)
    caption = "Devices, with their uplink rates in the first round if each had the whole band."
    if len(schemes) > 1 or len(schemes[0].runs) > 1:
        caption += f" Scheme {schemes[0].label}, seed {run.seed}."
    return Table("devices", caption, tuple(known[name] for name in names), tuple(rows))
