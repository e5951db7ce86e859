"""Accuracy and loss over the run: against time, rounds, bits and joules."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.run_data import measures
from reports.run_data.schemes import Scheme
from reports.styling.house_style import Style, looks
from reports.styling.panels import (
    legend,
    nest,
    plain_log,
    stagger,
    two_panels,
    whole_numbers,
    within_percent,
    wrap,
)

TIME = ("time_s", 1.0, "simulated time (s)")
ROUND = ("round", 1.0, "global round")
BITS = ("bits", 1e-6, "payload, up and down (Mbit)")
JOULES = ("energy_j", 1.0, "energy, all devices (J)")


def accuracy(schemes: list[Scheme], style: Style) -> Figure | None:
    """Test accuracy (mean over devices) against simulated seconds and against rounds."""
    return _curves(schemes, style, "accuracy", "test accuracy (%)", 100.0)


def spending(schemes: list[Scheme], style: Style) -> Figure | None:
    """Test accuracy against what it took: bits up and down, and joules of all devices, from the first round on."""
    figure = _curves(schemes, style, "accuracy", "test accuracy (%)", 100.0, (BITS, JOULES))
    for panel in figure.axes if figure else ():
        spent = [x for line in panel.lines for x in line.get_xdata() if x > 0]
        if spent and max(spent) > 30 * min(spent):
            plain_log(panel.xaxis, panel.set_xscale)
    return figure


def loss(schemes: list[Scheme], style: Style) -> Figure | None:
    """Test loss (mean over devices) against simulated seconds and against rounds."""
    return _curves(schemes, style, "loss", "test loss", 1.0)


def _curves(
    schemes: list[Scheme],
    style: Style,
    column: str,
    label: str,
    scale: float,
    against: tuple = (TIME, ROUND),
) -> Figure | None:
    """One panel for each of two quantities (attribute of `measures.Curve`, factor, name) that it is drawn against."""
    found = [(scheme, curve) for scheme in schemes if (curve := measures.curve(scheme, column))]
    if not found:
        return None
    look = looks(schemes, style.grey)
    figure, panels = two_panels(style, 3.0, 2.0)
    for i, (scheme, curve) in enumerate(found):
        for panel, (name, factor, _) in zip(panels, against, strict=True):
            x = getattr(curve, name) * factor
            every = stagger(i, found, len(x))
            _curve(
                panel,
                x,
                curve,
                scale,
                look[scheme.label],
                every,
                label=wrap(scheme.label),
                ms=nest(i, found, len(x)),
            )
    for panel, (name, _, title) in zip(panels, against, strict=True):
        panel.set(xlabel=title, ylabel=label if not style.wide or panel is panels[0] else "")
        panel.margins(x=0.02)
        if scale == 100.0:
            within_percent(panel)
        if name == "round":
            whole_numbers(panel.xaxis)
    legend(figure, panels[0], style)
    return figure


def _curve(
    panel: Axes, x: np.ndarray, curve: measures.Curve, scale: float, look, every, **kind
) -> None:
    """A line with its spread: a band over seeds (narrow), or bars at the markers over devices (wide)."""
    mean = curve.mean * scale
    panel.plot(
        x, mean, color=look.colour, ls=look.line, marker=look.marker, markevery=every, **kind
    )
    if curve.spread is None:
        return
    spread = curve.spread * scale
    if curve.over == "seeds":
        panel.fill_between(x, mean - spread, mean + spread, color=look.colour, alpha=0.15, lw=0)
    else:
        bars = {"ecolor": look.colour, "elinewidth": 0.8, "alpha": 0.5}
        panel.errorbar(x, mean, spread, fmt="none", errorevery=every, **bars)
