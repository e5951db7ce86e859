"""Accuracy and loss over the run: against time, rounds, bits and joules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.run_data.run_statistics import RoundCurve, round_curve
from reports.run_data.scheme_grouping import Scheme
from reports.styling.axes_and_legends import (
    legend,
    plain_log,
    staggered,
    two_panels,
    whole_numbers,
    within_percent,
    wrap,
)
from reports.styling.colours_and_markers import SeriesStyle, scheme_styles
from reports.styling.figure_style import FigureStyle
from reports.styling.table_formats import SCHEME, Column, Table, significant


class Abscissa(NamedTuple):
    """What a curve is drawn against: an attribute of `RoundCurve`, a factor, and the title."""

    attribute: str
    scale: float
    title: str


ABSCISSAS = {
    "time": Abscissa("time_s", 1.0, "simulated time (s)"),
    "rounds": Abscissa("round", 1.0, "global round"),
    "bits": Abscissa("bits", 1e-6, "payload, up and down (Mbit)"),
    "energy": Abscissa("energy_j", 1.0, "energy, all devices (J)"),
}


class Ordinate(NamedTuple):
    """What a curve shows: a column of rounds, a factor, and the title."""

    column: str
    scale: float
    title: str


ACCURACY = Ordinate("accuracy", 100.0, "test accuracy (%)")
LOSS = Ordinate("loss", 1.0, "test loss")
LATENCY = Ordinate("latency_s", 1e3, "latency per round (ms)")


def accuracy_curves(schemes: list[Scheme], style: FigureStyle) -> Figure | None:
    """Test accuracy (mean over devices) against simulated seconds and against rounds."""
    return _figure(schemes, style, ACCURACY, ("time", "rounds"))


def accuracy_by_spending(schemes: list[Scheme], style: FigureStyle) -> Figure | None:
    """Test accuracy against bits up and down, and joules of all devices, since the first round."""
    figure = _figure(schemes, style, ACCURACY, ("bits", "energy"))
    for panel in figure.axes if figure else ():
        spent = np.concatenate([np.asarray(line.get_xdata()) for line in panel.lines])
        spent = spent[spent > 0]
        if len(spent) and spent.max() > 30 * spent.min():
            plain_log(panel.xaxis, panel.set_xscale)
    return figure


def loss_curves(schemes: list[Scheme], style: FigureStyle) -> Figure | None:
    """Test loss (mean over devices) against simulated seconds and against rounds."""
    return _figure(schemes, style, LOSS, ("time", "rounds"))


def _figure(
    schemes: list[Scheme], style: FigureStyle, shown: Ordinate, against: Sequence[str]
) -> Figure | None:
    if not any(round_curve(scheme, shown.column) for scheme in schemes):
        return None
    styles = scheme_styles(schemes, style.grey)
    figure, panels = two_panels(style, 3.0, 2.0)
    for panel, name in zip(panels, against, strict=True):
        draw_curves(panel, schemes, styles, shown, name)
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
) -> None:
    """One line per scheme that has the column, with its spread, and the titles of the axes.

    Args:
        panel: where to draw.
        schemes: one line each.
        styles: label -> style.
        shown: what the lines show.
        against: a name in `ABSCISSAS`.
    """
    curves = [(scheme, round_curve(scheme, shown.column)) for scheme in schemes]
    found = [(scheme, curve) for scheme, curve in curves if curve is not None]
    axis = ABSCISSAS[against]
    for i, (scheme, curve) in enumerate(found):
        markers = staggered(i, len(found), len(curve.round)) | {"label": wrap(scheme.label)}
        x = getattr(curve, axis.attribute) * axis.scale
        _draw_curve(panel, x, curve, shown.scale, styles[scheme.label], markers)
    panel.set(xlabel=axis.title, ylabel=shown.title)
    panel.margins(x=0.02)
    if shown is ACCURACY:
        within_percent(panel)
    if against == "rounds":
        whole_numbers(panel.xaxis)


def _draw_curve(
    panel: Axes,
    x: np.ndarray,
    curve: RoundCurve,
    scale: float,
    look: SeriesStyle,
    markers: dict[str, Any],
) -> None:
    """A line with its spread: a band over seeds (narrow), or bars at the markers (over devices)."""
    mean = curve.mean * scale
    panel.plot(x, mean, **look.line, **markers)
    if curve.spread is None:
        return
    spread = curve.spread * scale
    if curve.over == "seeds":
        panel.fill_between(x, mean - spread, mean + spread, color=look.colour, alpha=0.15, lw=0)
    else:
        bars: dict[str, Any] = {"ecolor": look.colour, "elinewidth": 0.8, "alpha": 0.5}
        panel.errorbar(x, mean, spread, fmt="none", errorevery=markers["markevery"], **bars)


def curve_table(schemes: list[Scheme], name: str, column: str) -> Table:
    """One line per scheme and evaluated round: sums by then, the mean, its spread over what."""
    columns = (
        SCHEME,
        Column("round", "Round"),
        Column("time_s", "Time (s)", significant(5)),
        Column("bits", "Bits (Mbit)", significant(4, 1e-6)),
        Column("energy_j", "Energy (J)", significant(4)),
        Column(column, column.replace("_s", " (s)").capitalize(), significant(4)),
        Column("spread", "±", significant(3)),
        Column("spread_over", "± over", number=False),
        Column("seeds", "Seeds"),
    )
    rows = []
    for scheme in schemes:
        curve = round_curve(scheme, column)
        if curve is None:
            continue
        spread = [None] * len(curve.round) if curve.spread is None else curve.spread.tolist()
        numbers = (curve.round, curve.time_s, curve.bits, curve.energy_j, curve.mean)
        for row in zip(*(values.tolist() for values in numbers), spread, strict=True):
            rows.append((scheme.label, *row, curve.over or None, len(scheme.runs)))
    caption = "Mean over seeds; ± as the caption of the figure says."
    return Table(name, caption, columns, tuple(rows))
