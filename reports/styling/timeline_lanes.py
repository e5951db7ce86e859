"""Lanes of timelines: bars of spans in the row of each device, and names of bars and marks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import AbstractPathEffect, Normal, Stroke

from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.round_latencies import ordered_phases
from reports.styling.colours_and_markers import hatches, phase_colours
from reports.styling.figure_style import INK, FigureStyle

LANE = 0.78  # of a device's row that its bars fill
MOST_NUMBERED = 12  # rows up to which every device has its number


def name_marks(figure: Figure, handles: list[Artist], most: int) -> None:
    """The legend of a timeline above it, in as many columns as fit, at most so many."""
    place: dict[str, Any] = {"loc": "outside upper left", "handlelength": 1.2, "columnspacing": 1.0}
    for columns in range(min(len(handles), most), 0, -1):
        made = figure.legend(handles=handles, ncols=columns, **place)
        if columns == 1 or made.get_window_extent().x1 <= figure.bbox.x1:
            return
        made.remove()


def draw_spans(
    panel: Axes,
    spans: pd.DataFrame,
    lane: dict[int, int],
    fill: dict[str, dict[str, Any]],
    start_s: float,
    scale: float,
) -> set[str]:
    """A bar for every span in the lane of its device, and which phases have a visible length.

    Args:
        panel: where to draw.
        spans: rows of spans.
        lane: device -> its row.
        fill: phase -> how its bars look.
        start_s: where the time axis begins.
        scale: from seconds to the unit of the axis.
    """
    drawn: set[str] = set()
    for phase, part in spans.groupby("phase", sort=False):
        left, right = ((part[x].to_numpy() - start_s) * scale for x in ("start_s", "end_s"))
        y = np.array([lane[int(k)] for k in part["device"]])
        low, high = y - LANE / 2, y + LANE / 2
        corners = np.stack([[left, low], [right, low], [right, high], [left, high]])
        bars = corners.transpose(2, 0, 1).tolist()  # [bar][corner][x, y]
        panel.add_collection(PolyCollection(bars, **fill[str(phase)]))
        if (right > left).any():
            drawn.add(str(phase))
    return drawn


def phase_fills(schemes: list[Scheme], style: FigureStyle) -> dict[str, dict[str, Any]]:
    """Phase -> how its bars look, in the order of a job."""
    phases = ordered_phases([p for scheme in schemes for p in scheme.first.spans["phase"].unique()])
    colours, hatched = phase_colours(phases), hatches(phases, style)
    return {p: {"fc": colours[p], "hatch": hatched[p], "ec": INK, "lw": 0} for p in phases}


def name_lanes(panel: Axes, shown: list[int]) -> None:
    """The y axis of a timeline: a row for each device, numbered as far as there is room."""
    panel.set_ylim(len(shown) - 0.4, -0.6)
    step = 1 if len(shown) <= MOST_NUMBERED else 2
    panel.set_yticks(range(0, len(shown), step), [str(device) for device in shown[::step]])
    panel.tick_params(axis="y", length=0)
    panel.set_ylabel("device")
    panel.grid(axis="y", visible=False)


def white_edge(width_pt: float) -> list[AbstractPathEffect]:
    """Around a line so wide, which a dark bar would swallow, above all in grey."""
    return [Stroke(linewidth=width_pt + 1.4, foreground="white"), Normal()]
