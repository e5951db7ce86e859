"""A metric over the first two swept keys: one map per series, with the means in its cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from edgesim.results.flat_scenario import NONE
from reports.figures.sweep_curves import series_label
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.metrics import Metric
from reports.run_data.statistics.seed_intervals import estimate
from reports.run_data.swept_keys import SweptKey
from reports.styling.axes_and_legends import ROUNDING, wrap
from reports.styling.figure_style import INK, FigureStyle
from reports.styling.number_formats import significant

MOST_MAPS = 6
UPWARDS = 24  # letters in a line of the title of an axis that runs upwards
PANEL = 0.72  # of the figure's width for each column: what axes and colours leave to the cells


class SweepMap(NamedTuple):
    """Means over seeds of one series [y][x], nan where there is no run; and the keys' values."""

    label: str
    grid: np.ndarray
    x: list[float]
    y: list[float]


def sweep_maps(schemes: list[Scheme], keys: Sequence[SweptKey], metric: Metric) -> list[SweepMap]:
    """The map of each series that spans both keys; values of further keys are part of the label."""
    if len(keys) < 2:
        return []
    groups: dict[str, dict[tuple[float, float], Scheme]] = {}
    for scheme in schemes:
        across, up = (key.of(scheme.values) for key in keys[:2])
        if across is not None and up is not None:
            groups.setdefault(series_label(scheme, keys[2:]), {})[across, up] = scheme
    maps = []
    for label, cells in groups.items():
        x, y = (sorted({place[i] for place in cells}) for i in (0, 1))
        grid = np.full((len(y), len(x)), math.nan)
        for (across, up), scheme in cells.items():
            grid[y.index(up), x.index(across)] = estimate(scheme, metric.of).mean
        if len(x) > 1 and len(y) > 1 and not np.isnan(grid).all():
            maps.append(SweepMap(label, grid, x, y))
    return maps


def left_out(schemes: Sequence[Scheme], keys: Sequence[SweptKey]) -> str:
    """Which runs no map has, as no place of an axis is theirs; "" where all have one."""
    missing = [
        f"{key.name} {NONE}"
        for key in keys[:2]
        if any(scheme.values.get(key.key) == NONE for scheme in schemes)
    ]
    return f" Runs at {' or '.join(missing)} are in the data only." if missing else ""


def sweep_map_figure(
    schemes: list[Scheme], keys: Sequence[SweptKey], metric: Metric, style: FigureStyle
) -> Figure:
    """One panel per series, at most `MOST_MAPS`, with one scale of colours."""
    maps = sweep_maps(schemes, keys, metric)[:MOST_MAPS]
    columns = min(len(maps), 2) if style.wide else 1
    rows = math.ceil(len(maps) / columns)
    width = style.width_in if columns > 1 else min(style.width_in, 4.6)
    across, up = wrap(keys[0].title), wrap(keys[1].title, UPWARDS)
    # the titles of rows and of colours run upwards and must fit
    letter_in, (scale, name) = 0.6 * style.text_pt / 72, metric.axis(style.units)
    tall = max(0.26 * len(maps[0].y) + 1.0, letter_in * max(map(len, up.splitlines())))
    tall += 0.25 * across.count("\n")
    title = letter_in * len(name) + 0.3
    figure = Figure(figsize=(width, max(rows * tall + 0.3, title)), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    values = np.concatenate([each.grid.ravel() for each in maps]) * scale
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    # one object: limits that are equal are widened for all panels at once
    equal = high - low <= ROUNDING * abs(high)
    norm = Normalize(low, low if equal else high)
    for panel, (label, grid, x, y) in zip(panels, maps, strict=False):
        grid = grid * scale
        image = panel.imshow(grid, cmap="cividis", aspect="auto", origin="lower", norm=norm)
        panel.set(xlabel=across, ylabel=up)
        panel.set_title(wrap(label))
        panel.set_xticks(range(len(x)), [f"{value:g}" for value in x])
        panel.set_yticks(range(len(y)), [f"{value:g}" for value in y])
        panel.tick_params(length=0)
        panel.grid(visible=False)
        _write_cells(panel, grid, low + 0.55 * (high - low), PANEL * width / columns / len(x))
    for panel in panels[len(maps) :]:
        panel.set_visible(False)
    shown = list(panels[: len(maps)])
    figure.colorbar(image, ax=shown, pad=0.015, aspect=25).set_label(name)
    return figure


def _write_cells(panel: Axes, grid: np.ndarray, dark: float, cell_in: float) -> None:
    """The numbers in their cells, where all fit into the width of one."""
    texts = {
        at: significant(3)(value) for at, value in np.ndenumerate(grid) if not math.isnan(value)
    }
    character_in = 0.6 * rcParams["font.size"] / 72
    if max(map(len, texts.values())) * character_in > cell_in:
        return
    for (row, column), text in texts.items():
        colour = "white" if grid[row, column] < dark else INK
        panel.text(column, row, text, ha="center", va="center", color=colour)
