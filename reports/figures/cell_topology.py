"""The cell as a graph: the base station, its devices, where they are, and the rate that each could have."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from reports.run_data.load_runs import Run
from reports.run_data.schemes import Scheme
from reports.styling.house_style import INK, QUIET, Style
from reports.styling.panels import one_panel
from reports.styling.table_formats import Table
from reports.text.summary_tables import device_table

STATION = "base station"
MOST_NAMED = 30  # devices with a number on them
MOST_DRAWN = 1000
GOLDEN = math.pi * (
    3 - math.sqrt(5)
)  # an angle under which no two of many devices lie behind each other


def network(run: Run):
    """A networkx star: the base station and every device of devices.csv, with its columns as attributes."""
    import networkx

    graph = networkx.Graph()
    graph.add_node(STATION)
    for row in run.devices.to_dict("records"):
        graph.add_node(int(row["device"]), **row)
        graph.add_edge(STATION, int(row["device"]))
    return graph


def positions(run: Run) -> tuple[dict, str]:
    """Node -> (x, y), and what that means: positions (m), distances (m, the angle means nothing), or nothing."""
    table, devices = run.devices, run.devices["device"].astype(int)
    if {"x_m", "y_m"} <= set(table.columns) and table[["x_m", "y_m"]].notna().all(axis=None):
        places = dict(
            zip(devices, table[["x_m", "y_m"]].to_numpy(dtype=float).tolist(), strict=True)
        )
        return {STATION: (0.0, 0.0), **places}, "positions"
    known = "distance_m" in table.columns and table["distance_m"].notna().all()
    radius = table["distance_m"].to_numpy(dtype=float) if known else np.ones(len(table))
    turn = GOLDEN if known else 2 * math.pi / max(len(table), 1)
    angle = np.arange(len(table)) * turn
    places = {
        int(k): (r * math.cos(a), r * math.sin(a))
        for k, r, a in zip(devices, radius, angle, strict=True)
    }
    return {STATION: (0.0, 0.0), **places}, "distances" if known else "star"


def topology(schemes: list[Scheme], style: Style) -> Figure | None:
    """Devices around the base station; colour: the uplink rate over the whole band in round 0."""
    run = schemes[0].first
    if run.devices is None or not len(run.devices):
        return None
    import networkx

    graph, (where, kind) = network(run), positions(run)
    figure, panel = one_panel(style, 4.0, 3.2)
    devices = shown(run)
    graph = graph.subgraph([STATION, *devices])
    few = len(devices) <= MOST_NAMED
    size = (style.size * 1.9) ** 2 * 0.8 if few else 12
    networkx.draw_networkx_edges(
        graph, where, ax=panel, edge_color="#BBBBBB", width=0.5 if few else 0.15
    )
    rate = [graph.nodes[node].get("rate_bps", math.nan) / 1e6 for node in devices]
    known = not all(math.isnan(value) for value in rate)
    paint = {"node_color": rate, "cmap": "YlGnBu"} if known else {"node_color": "#DDDDDD"}
    dots = networkx.draw_networkx_nodes(
        graph, where, devices, ax=panel, node_size=size, edgecolors=INK, linewidths=0.5, **paint
    )
    networkx.draw_networkx_nodes(
        graph, where, [STATION], ax=panel, node_size=size, node_color=INK, node_shape="^"
    )
    if few:
        _numbers(panel, where, devices, rate if known else [0.0] * len(devices), math.sqrt(size))
    _scale(panel, kind)
    if known:
        figure.colorbar(dots, ax=panel, pad=0.02, aspect=25).set_label(
            "uplink rate, whole band (Mbit/s)"
        )
    return figure


def shown(run: Run) -> list[int]:
    """The devices that are drawn: all, or `MOST_DRAWN` evenly spaced by number."""
    devices = run.devices["device"].astype(int).to_numpy()
    if len(devices) > MOST_DRAWN:
        devices = devices[np.linspace(0, len(devices) - 1, MOST_DRAWN).round().astype(int)]
    return devices.tolist()


def _numbers(panel, where: dict, devices: list[int], rate: list[float], points: float) -> None:
    """The devices' numbers, white on dark; none on a circle (so many points wide) that another one covers."""
    dark = 0.5 * (np.nanmin(rate) + np.nanmax(rate))
    spread = np.ptp([where[node] for node in (STATION, *devices)], axis=0).max() or 1.0
    gap = points / 72 / (0.7 * panel.figure.get_figheight()) * spread
    named: list[int] = []
    for device, value in reversed(
        list(zip(devices, rate, strict=True))
    ):  # the last one lies on top
        if any(math.dist(where[device], where[other]) < gap for other in named):
            continue
        named.append(device)
        colour = "white" if value > dark else INK
        panel.text(*where[device], str(device), ha="center", va="center", color=colour, zorder=5)


def _scale(panel, kind: str) -> None:
    panel.set_aspect("equal", adjustable="datalim")
    panel.margins(0.12)
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
        _rings(panel)


def _rings(panel) -> None:
    """Circles of equal distance; only they mean something, the direction does not."""
    limit = max(map(abs, (*panel.get_xlim(), *panel.get_ylim())))
    step = 10 ** math.floor(math.log10(limit / 2))
    step = next(factor * step for factor in (5, 2, 1) if factor * step <= limit / 2 or factor == 1)
    angle = np.linspace(0, 2 * math.pi, 181)
    for radius in np.arange(step, limit, step):
        panel.plot(
            radius * np.cos(angle), radius * np.sin(angle), color=QUIET, lw=0.4, ls=":", zorder=0
        )


def topology_data(schemes: list[Scheme]) -> Table | None:
    return device_table(schemes[0].first)
