"""Figures of a sweep: a result against a numeric key, one line per series, and over two numeric keys at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.run_data import measures
from reports.run_data.load_runs import Run
from reports.run_data.schemes import MOST_SERIES, Scheme
from reports.run_data.swept_keys import Axis
from reports.styling.house_style import (
    GREY_LINES,
    INK,
    LINES,
    MARKERS,
    RHO,
    THRESHOLD,
    Look,
    Style,
    series_looks,
)
from reports.styling.panels import legend, one_panel, plain_log, within_percent, wrap
from reports.styling.table_formats import Column, Table, digits

MOST_MAPS = 6
LATENCY_KEY = "budget.latency_threshold"


@dataclass(frozen=True)
class Result:
    """One number of a run. column: its name in a CSV, with the unit.     scale: from SI to the unit of the title."""

    name: str
    column: str
    title: str
    scale: float
    of: Callable[[Run], float]


ACCURACY = Result(
    "accuracy",
    "accuracy",
    "final test accuracy (%)",
    100.0,
    lambda run: measures.final(run, "accuracy"),
)
LOSS = Result("loss", "loss", "final test loss", 1.0, lambda run: measures.final(run, "loss"))
LATENCY = Result(
    "latency",
    "latency_s",
    "mean latency per round (ms)",
    1e3,
    lambda run: float(run.rounds["latency_s"].mean()),
)
RATIO = Result("rho", "rho", f"mean pruning ratio {RHO}", 1.0, measures.rho_mean)
ENERGY = Result(
    "energy",
    "energy_j",
    "energy per round (J)",
    1.0,
    lambda run: measures.total(run, "energy_j") / len(run.rounds),
)
RESULTS = (ACCURACY, LOSS, RATIO, LATENCY, ENERGY)


@dataclass(frozen=True)
class Line:
    """A series along an axis: x in the axis's unit, and an estimate over seeds at each."""

    label: str
    series: str
    x: list[float]
    y: list[measures.Estimate]


def lines(
    schemes: list[Scheme], axes: Sequence[Axis], along: Axis, result: Result
) -> tuple[list[Line], str]:
    """A line for every series and every value of the other axes; too many: one axis after the other at its middle.

    Returns the lines and what was chosen ("" where all are there).
    """
    others = [axis for axis in axes if axis is not along]
    here = [scheme for scheme in schemes if along.of(scheme.values) is not None]
    chosen = []
    for axis in list(others):
        values = sorted(
            {number for scheme in here if (number := axis.of(scheme.values)) is not None}
        )
        if len(values) > 1 and len({_line_of(scheme, others) for scheme in here}) > MOST_SERIES:
            middle = values[(len(values) - 1) // 2]
            here = [scheme for scheme in here if axis.of(scheme.values) in (middle, None)]
            chosen.append(f"{axis.name} {middle:g} {axis.unit}".rstrip())
            others.remove(axis)
    groups: dict[str, list[Scheme]] = {}
    for scheme in here:
        groups.setdefault(_line_of(scheme, others), []).append(scheme)
    made = [
        line for label, group in groups.items() if (line := _line(label, group, along, result)).x
    ]
    if len(made) > MOST_SERIES:
        chosen.append(f"the first {MOST_SERIES} of {len(made)} lines")
    return made[:MOST_SERIES], ", ".join(chosen)


def _line_of(scheme: Scheme, others: Sequence[Axis]) -> str:
    parts = [
        f"{axis.name} {number:g} {axis.unit}".rstrip()
        for axis in others
        if axis.key in scheme.numbers and (number := axis.of(scheme.values)) is not None
    ]
    return ", ".join([scheme.series, *parts])


def _line(label: str, group: list[Scheme], along: Axis, result: Result) -> Line:
    points = [(along.of(scheme.values), measures.estimate(scheme, result.of)) for scheme in group]
    known = sorted(((x, y) for x, y in points if y.n), key=lambda point: point[0])
    return Line(label, group[0].series, [x for x, _ in known], [y for _, y in known])


def against(
    schemes: list[Scheme], axes: Sequence[Axis], along: Axis, result: Result, style: Style
) -> Figure | None:
    """A result against one key: mean and 95 % interval over seeds."""
    drawn, _ = lines(schemes, axes, along, result)
    if not any(len(line.x) > 1 for line in drawn):
        return None
    look = _looks(schemes, drawn, style.grey)
    figure, panel = one_panel(style, 3.2, 2.6)
    for i, line in enumerate(drawn):
        mine, size = look[line.label], style.marker * (1.0 + 0.6 * (1 - i / len(drawn)))
        mean = np.array([y.mean for y in line.y]) * result.scale
        half = np.array([0.0 if math.isnan(y.half) else y.half for y in line.y]) * result.scale
        kind = {
            "color": mine.colour,
            "marker": mine.marker,
            "ms": size,
            "capsize": 2.0,
            "elinewidth": 0.8,
        }
        panel.errorbar(
            line.x, mean, half if half.any() else None, ls=mine.line, label=wrap(line.label), **kind
        )
    x = sorted({value for line in drawn for value in line.x})
    if x[0] > 0 and x[-1] >= 20 * x[0]:
        plain_log(panel.xaxis, panel.set_xscale)
    elif len(x) <= 8:
        panel.set_xticks(x, [f"{value:g}" for value in x])
    if along.key == LATENCY_KEY and result is LATENCY:
        y = [_milliseconds(value, along.unit) for value in x]
        panel.plot(x, y, color=THRESHOLD, ls="--", lw=0.9, label="threshold", zorder=1)
    panel.set(xlabel=along.title, ylabel=result.title)
    panel.margins(x=0.04)
    if result is ACCURACY:
        within_percent(panel)
    legend(figure, panel, style)
    return figure


def _milliseconds(value: float, unit: str) -> float:
    from edgesim.scenario.units import parse

    return parse(f"{value!r} {unit}", "s") * 1e3


def _looks(schemes: list[Scheme], drawn: list[Line], grey: bool) -> dict[str, Look]:
    """A series keeps its colour, its lines differ in their dashes; in grey all lines differ in dashes and marker."""
    by_series, seen = series_looks(schemes), dict.fromkeys((line.series for line in drawn), 0)
    taken = {}
    for i, line in enumerate(drawn):
        look, number = by_series[line.series], seen[line.series]
        seen[line.series] += 1
        own = Look(look.colour, MARKERS[i % len(MARKERS)], GREY_LINES[i % len(GREY_LINES)])
        taken[line.label] = (
            own if grey else Look(look.colour, look.marker, LINES[number % len(LINES)])
        )
    return taken


def heat(
    schemes: list[Scheme], axes: Sequence[Axis], result: Result, style: Style
) -> Figure | None:
    """A result over the first two keys, one panel per series, means over seeds written into the cells."""
    maps = heat_maps(schemes, axes, result)[:MOST_MAPS]
    if not maps:
        return None
    columns = min(len(maps), 2) if style.wide else 1
    rows = math.ceil(len(maps) / columns)
    tall = 0.26 * maps[0][1].shape[0] + 1.0
    width = style.width_in if columns > 1 else min(style.width_in, 4.6)
    beside = (
        0.6 * style.size / 72 * len(result.title) + 0.3
    )  # the title of the colours, which runs upwards
    figure = Figure(figsize=(width, max(rows * tall + 0.3, beside)), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    values = np.concatenate([grid.ravel() for _, grid, _, _ in maps]) * result.scale
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    for panel, (label, grid, x, y) in zip(panels, maps, strict=False):
        image = panel.imshow(
            grid * result.scale, cmap="cividis", aspect="auto", origin="lower", vmin=low, vmax=high
        )
        panel.set(xlabel=axes[0].title, ylabel=axes[1].title)
        panel.set_title(wrap(label))
        panel.set_xticks(range(len(x)), [f"{value:g}" for value in x])
        panel.set_yticks(range(len(y)), [f"{value:g}" for value in y])
        panel.tick_params(length=0)
        panel.grid(visible=False)
        _write(panel, grid * result.scale, low, high)
    for panel in panels[len(maps) :]:
        panel.set_visible(False)
    figure.colorbar(image, ax=list(panels[: len(maps)]), pad=0.015, aspect=25).set_label(
        result.title
    )
    return figure


def heat_maps(schemes: list[Scheme], axes: Sequence[Axis], result: Result) -> list[tuple]:
    """(label, grid [y][x] of means with nan where there is no run, x, y) of each series that spans both axes.

    Values of further axes are part of the label.
    """
    if len(axes) < 2:
        return []
    across, up = axes[:2]
    groups: dict[str, list[Scheme]] = {}
    for scheme in schemes:
        if across.of(scheme.values) is not None and up.of(scheme.values) is not None:
            groups.setdefault(_line_of(scheme, axes[2:]), []).append(scheme)
    maps = []
    for label, group in groups.items():
        x, y = (sorted({axis.of(scheme.values) for scheme in group}) for axis in (across, up))
        grid = np.full((len(y), len(x)), math.nan)
        for scheme in group:
            at = y.index(up.of(scheme.values)), x.index(across.of(scheme.values))
            grid[at] = measures.estimate(scheme, result.of).mean
        if len(x) > 1 and len(y) > 1 and not np.isnan(grid).all():
            maps.append((label, grid, x, y))
    return maps


def _write(panel: Axes, grid: np.ndarray, low: float, high: float) -> None:
    if grid.size > 80:
        return
    for (row, column), value in np.ndenumerate(grid):
        if not math.isnan(value):
            dark = value < low + 0.55 * (high - low)
            panel.text(
                column,
                row,
                f"{value:.3g}",
                ha="center",
                va="center",
                color="white" if dark else INK,
            )


def data(schemes: list[Scheme], axes: Sequence[Axis], result: Result) -> Table:
    """One line per scheme: its values on the axes, the mean over seeds with its 95 % interval, and n."""
    keys = tuple(Column(axis.key, axis.title, lambda value: f"{value:g}") for axis in axes)
    show = digits(2, result.scale)
    columns = (
        Column("scheme", "Scheme", number=False),
        *keys,
        Column(result.column, result.title, show),
        Column(f"{result.column}_ci95", "± 95 %", show),
        Column("seeds", "Seeds"),
    )
    rows = []
    for scheme in schemes:
        found = measures.estimate(scheme, result.of)
        rows.append(
            (
                scheme.series,
                *(axis.of(scheme.values) for axis in axes),
                found.mean,
                found.half,
                found.n,
            )
        )
    caption = f"{result.title[0].upper()}{result.title[1:]}; CSV in SI units, the keys in those of their titles."
    return Table(result.name, caption, columns, tuple(rows))
