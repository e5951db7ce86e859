"""Accuracy, loss and metrics over the run: against time, rounds, bits and joules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.run_data.scheme_grouping import Scheme
from reports.run_data.statistics.round_curves import RoundCurve, round_curve
from reports.styling.axes_and_legends import (
    draw_seeds,
    legend,
    panels_side_by_side,
    set_scales,
    staggered,
    whole_numbers,
    within_percent,
    wrap,
)
from reports.styling.colours_and_markers import SeriesStyle, scheme_styles
from reports.styling.figure_style import FigureStyle
from reports.styling.number_formats import significant
from reports.styling.table_formats import SCHEME, Column, Table


class Abscissa(NamedTuple):
    """What a curve is drawn against: an attribute of `RoundCurve`, title and unit."""

    attribute: str
    title: str
    unit: str


ABSCISSAS = {
    "time": Abscissa("time_s", "simulated time", "time"),
    "rounds": Abscissa("rounds", "global round", ""),
    "bits": Abscissa("bits", "payload, up and down", "bits"),
    "energy": Abscissa("energy_j", "energy, all devices", "energy"),
}


class Ordinate(NamedTuple):
    """What a curve shows: a column of rounds, title and unit, and whether zero bounds it."""

    column: str
    title: str
    unit: str
    may_be_negative: bool = False


ACCURACY = Ordinate("accuracy", "test accuracy", "%")
LOSS = Ordinate("loss", "test loss", "")
LATENCY = Ordinate("latency_s", "latency per round", "latency")


def own_metric(column: str) -> Ordinate:
    """A metric of the user's own, whose unit and sign nobody knows, under its own name."""
    return Ordinate(column, column, "", may_be_negative=True)


def learning_curves(
    schemes: list[Scheme], shown: Ordinate, against: Sequence[str], style: FigureStyle
) -> Figure:
    """One panel per name in `ABSCISSAS`."""
    styles = scheme_styles(schemes, style.grey)
    height = 3.0 if style.wide else 2.0 * len(against) + 0.6
    size = (style.width_in if len(against) > 1 else min(style.width_in, 5.4), height)
    figure, panels = panels_side_by_side(style, len(against), size, share_y=True)
    for panel, name in zip(panels, against, strict=True):
        draw_curves(panel, schemes, styles, shown, name, style)
        if style.wide and panel is not panels[0]:
            panel.set_ylabel("")
    legend(figure, panels[0], style)
    return figure


def draw_curves(
    panel: Axes,
    schemes: list[Scheme],
    styles: dict[str, SeriesStyle],
    shown: Ordinate,
    against: str,
    style: FigureStyle,
) -> None:
    """One line per scheme that has the column, with its interval, and the titles of the axes.

    Args:
        panel: where to draw.
        schemes: one line each.
        styles: label -> looks.
        shown: what the lines show.
        against: a name in `ABSCISSAS`.
        style: its scales and units, and whether there are bars over devices.
    """
    curves = [(scheme, round_curve(scheme, shown.column)) for scheme in schemes]
    found = [(scheme, curve) for scheme, curve in curves if curve is not None]
    axis = ABSCISSAS[against]
    (across, x_title), (up, y_title) = (style.units.axis(*each[1:3]) for each in (axis, shown))
    for i, (scheme, curve) in enumerate(found):
        markers = staggered(i, len(found), len(curve.rounds)) | {"label": wrap(scheme.label)}
        x, look = getattr(curve, axis.attribute) * across, styles[scheme.label]
        panel.plot(x, curve.mean * up, **look.line, **markers)
        draw_interval(panel, x, curve, up, look.colour)
        if style.device_bars and curve.devices_std is not None:
            bars: dict[str, Any] = {"ecolor": look.colour, "elinewidth": 0.8, "alpha": 0.5}
            bars["errorevery"] = markers["markevery"]
            std = curve.devices_std * up
            panel.errorbar(x, curve.mean * up, std, fmt="none", **bars)
    panel.set(xlabel=x_title, ylabel=y_title)
    panel.margins(x=0.02)
    spent = np.concatenate([np.asarray(line.get_xdata()) for line in panel.lines] or [np.ones(1)])
    spent = spent[spent > 0]
    wide = against in ("bits", "energy") and len(spent) and spent.max() > 30 * spent.min()
    set_scales(panel, style, x="log" if wide else "linear")
    if shown is ACCURACY:
        within_percent(panel)
    elif panel.get_yscale() == "linear" and not (shown.may_be_negative or _any_negative(panel)):
        # below zero is nothing but an interval of few seeds
        panel.set_ylim(bottom=max(0.0, panel.get_ylim()[0]), auto=None)
    if against == "rounds" and panel.get_xscale() == "linear":
        whole_numbers(panel.xaxis)


def _any_negative(panel: Axes) -> bool:
    """Has a line values below zero, as a loss of the user's own may?"""
    return any((np.asarray(line.get_ydata()) < 0).any() for line in panel.lines)


def draw_interval(panel: Axes, x: np.ndarray, curve: RoundCurve, scale: float, colour: str) -> None:
    """The band of the 95 % interval over seeds, or below three seeds the dots of each."""
    mean = curve.mean * scale
    if curve.half is not None:
        low, high = mean - curve.half * scale, mean + curve.half * scale
        panel.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
    elif len(curve.values) > 1:
        # of a long curve as many as can be told apart
        every = slice(None, None, max(1, len(x) // 40))
        for values in curve.values:
            draw_seeds(panel, x[every], values[every] * scale, colour)


def curve_table(schemes: list[Scheme], name: str, column: str, heading: str | None = None) -> Table:
    """One line per scheme and evaluated round: sums by then, the mean, its spread over what."""
    columns = (
        SCHEME,
        Column("rounds", "Rounds"),
        Column("time_s", "Time (s)", significant(5)),
        Column("bits", "Bits (Mbit)", significant(4, 1e-6)),
        Column("energy_j", "Energy (J)", significant(4)),
        Column(column, heading or column.capitalize(), significant(4)),
        Column("ci95", "± 95 %", significant(3), half_of=column),
        Column("std_devices", "± devices", significant(3)),
        Column("seeds", "Seeds"),
    )
    rows = []
    for scheme in schemes:
        curve = round_curve(scheme, column)
        if curve is None:
            continue
        numbers = (curve.rounds, curve.time_s, curve.bits, curve.energy_j, curve.mean)
        rounds = len(curve.rounds)
        spreads = ([None] * rounds if x is None else x for x in (curve.half, curve.devices_std))
        for row in zip(*(values.tolist() for values in numbers), *spreads, strict=True):
            rows.append((scheme.label, *row, len(scheme.runs)))
    caption = (
        "Mean over seeds with its 95 % interval (Student t, three seeds or more); ± devices: one "
        "standard deviation over devices, mean over seeds."
    )
    return Table(name, caption, columns, tuple(rows))
