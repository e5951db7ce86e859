"""The two styles of figures, and their matplotlib settings.

`SCREEN` is for the page and slides; `IEEE` for a column of a paper, 3.5 in wide and 8 pt, which
must be readable in grey: there every line has its own dashes and marker, and every kind of bar its
own hatch.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import matplotlib.style

from reports.axis_units import USUAL_UNITS, AxisUnits

COLUMN_IN, PAGE_IN = 3.5, 7.4  # widths: an IEEE column, and the page
INK, QUIET, GRID = "#222222", "#666666", "#DDDDDD"
THRESHOLD = "#B3261E"
THRESHOLD_LINE: dict[str, Any] = {"color": THRESHOLD, "ls": "--", "lw": 0.9}


@dataclass(frozen=True)
class FigureStyle:
    """How figures look. Width in inches; text, lines and markers in points.

    grey: readable without colour.     serif: letters as in the text of a paper.
    x_scale, y_scale: "linear" or "log", of curves; "auto": what suits the data.
    device_bars: learning curves have bars of one standard deviation over devices.
    units: of the axes.
    """

    name: str
    width_in: float
    text_pt: float
    line_pt: float
    marker_pt: float
    grey: bool
    serif: bool = False
    x_scale: str = "auto"
    y_scale: str = "auto"
    device_bars: bool = False
    units: AxisUnits = USUAL_UNITS

    @property
    def wide(self) -> bool:
        """Room for two panels side by side."""
        return self.width_in > 5


# columns of a page -> width of a figure
WIDTHS_IN = {"screen": {1: 3.7, 2: PAGE_IN}, "ieee": {1: COLUMN_IN, 2: 7.16}}
SCREEN = FigureStyle("screen", PAGE_IN, 9.0, 1.4, 4.5, grey=False)
IEEE = FigureStyle("ieee", COLUMN_IN, 8.0, 1.1, 3.4, grey=True)
STYLES = {style.name: style for style in (SCREEN, IEEE)}


# no figure names them; every look-up of a font compares the lists, long by default
OTHER_FONTS = ("serif", "sans-serif", "cursive", "fantasy", "monospace")


def styled(style: FigureStyle) -> AbstractContextManager[None]:
    """Figures that are made within this context have the style, whatever is set outside."""
    others: dict[Any, Any] = {f"font.{kind}": ["DejaVu Sans"] for kind in OTHER_FONTS}
    return matplotlib.style.context(settings(style) | others, after_reset=True)


def settings(style: FigureStyle) -> dict[Any, Any]:
    """What the style sets, as matplotlib's rcParams."""
    # text becomes paths in SVG, so that the page needs no font
    small = style.text_pt if style.grey else style.text_pt - 1  # 8 pt is the least in a paper
    ticks = {
        f"{axis}tick.{key}": value
        for axis in "xy"
        for key, value in (
            ("labelsize", small),
            ("color", QUIET),
            ("labelcolor", INK),
            ("major.width", 0.6),
            ("major.size", 2.5),
        )
    }
    return ticks | {
        # both come with matplotlib, so that figures are the same on every machine
        "font.family": ["STIXGeneral", "DejaVu Serif"] if style.serif else "DejaVu Sans",
        "font.size": style.text_pt,
        "axes.titlesize": style.text_pt,
        "axes.labelsize": style.text_pt,
        "legend.fontsize": max(small, style.text_pt - 0.5),
        "text.parse_math": False,
        "text.color": INK,
        "axes.edgecolor": QUIET,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "axes.formatter.useoffset": False,  # 25.001, not 0.001 and "+2.5e1" in a corner
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": GRID,
        "grid.linewidth": 0.5,
        "hatch.linewidth": 0.5,
        "hatch.color": INK,
        "lines.linewidth": style.line_pt,
        "lines.markersize": style.marker_pt,
        "legend.frameon": False,
        "figure.dpi": 150,
        "savefig.dpi": 600 if style.grey else 200,
        # papers must embed TrueType; the outlines of Type 3 take a third of the time
        "pdf.fonttype": 42 if style.grey else 3,
        "svg.fonttype": "path",
        "svg.hashsalt": "edgesim",
    }
