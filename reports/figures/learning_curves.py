"""Accuracy and loss over the run: against time, rounds, bits and joules."""

from __future__ import annotations

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


TIME = Abscissa("time_s", 1.0, "simulated time (s)")
ROUND = Abscissa("round", 1.0, "global round")
BITS = Abscissa("bits", 1e-6, "payload, up and down (Mbit)")
JOULES = Abscissa("energy_j", 1.0, "energy, all devices (J)")


def accuracy_curves(schemes: list[Scheme], style: FigureStyle) -> Figure | None:
    """Test accuracy (mean over devices) against simulated seconds and against rounds."""
    return _curves(schemes, style, "accuracy", "test accuracy (%)", 100.0, (TIME, ROUND))


def accuracy_by_spending(schemes: list[Scheme], style: FigureStyle) -> Figure | None:
    """Test accuracy against bits up and down, and joules of all devices, since the first round."""
    figure = _curves(schemes, style, "accuracy", "test accuracy (%)", 100.0, (BITS, JOULES))
    for panel in figure.axes if figure else ():
        spent = np.concatenate([np.asarray(line.get_xdata()) for line in panel.lines])
        spent = spent[spent > 0]
        if len(spent) and spent.max() > 30 * spent.min():
            plain_log(panel.xaxis, panel.set_xscale)
    return figure


def loss_curves(schemes: list[Scheme], style: FigureStyle) -> Figure | None:
    """Test loss (mean over devices) against simulated seconds and against rounds."""
    return _curves(schemes, style, "loss", "test loss", 1.0, (TIME, ROUND))


def _curves(
    schemes: list[Scheme],
    style: FigureStyle,
    column: str,
    title: str,
    scale: float,
    abscissas: tuple[Abscissa, Abscissa],
) -> Figure | None:
    found = [(scheme, curve) for scheme in schemes if (curve := round_curve(scheme, column))]
    if not found:
        return None
    styles = scheme_styles(schemes, style.grey)
    figure, panels = two_panels(style, 3.0, 2.0)
    for i, (scheme, curve) in enumerate(found):
        markers = staggered(i, len(found), len(curve.round)) | {"label": wrap(scheme.label)}
        for panel, against in zip(panels, abscissas, strict=True):
            x = getattr(curve, against.attribute) * against.scale
            _draw_curve(panel, x, curve, scale, styles[scheme.label], markers)
    for panel, against in zip(panels, abscissas, strict=True):
        panel.set(xlabel=against.title)
        panel.set(ylabel=title if not style.wide or panel is panels[0] else "")
        panel.margins(x=0.02)
        if column == "accuracy":
            within_percent(panel)
        if against is ROUND:
            whole_numbers(panel.xaxis)
    legend(figure, panels[0], style)
    return figure


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
