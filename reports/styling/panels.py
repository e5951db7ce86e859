"""What the figures share: panels, markers that do not hide each other, a legend above, plain numbers on log axes."""

from __future__ import annotations

import math
import textwrap

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from reports.styling.house_style import Style


def two_panels(
    style: Style, wide_in: float, narrow_in: float, share_y: bool = True
) -> tuple[Figure, np.ndarray]:
    """Two panels: side by side on the page, one above the other in a column. Heights of one panel in inches."""
    size = (style.width_in, wide_in if style.wide else 2 * narrow_in + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(
        wspace=0.05
    )  # room between the last number of one axis and the first of the next
    panels = figure.subplots(1, 2, sharey=share_y) if style.wide else figure.subplots(2, 1)
    return figure, panels


def one_panel(style: Style, wide_in: float, narrow_in: float) -> tuple[Figure, Axes]:
    """A single panel; heights in inches."""
    size = (min(style.width_in, 5.4), wide_in if style.wide else narrow_in)
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def stagger(i: int, items: list, points: int) -> tuple[int, int]:
    """Markers of the lines at different places, so that equal lines show all their markers."""
    step = max(1, math.ceil(points / 6))
    return (round(i * step / len(items)) if step > 1 else 0), step


def nest(i: int, items: list, points: int) -> float:
    """Marker sizes: where there are too few points to stagger them, the earlier ones look out from behind."""
    return rcParams["lines.markersize"] * (1.0 if points > 6 else 1.0 + 0.3 * (len(items) - 1 - i))


def wrap(label: str) -> str:
    return textwrap.fill(label, 34)


def legend(figure: Figure, panel: Axes, style: Style, extra: list = ()) -> None:
    """The panel's labels, and the extra handles, above the figure in as many columns as fit."""
    handles, labels = panel.get_legend_handles_labels()
    handles, labels = [*handles, *extra], [*labels, *(handle.get_label() for handle in extra)]
    if not labels:
        return
    longest = max(len(line) for label in labels for line in label.splitlines())
    room = figure.get_figwidth() * 132 / style.size  # characters, about
    columns = max(1, min(len(labels), int(room / (longest + 7))))
    rows = math.ceil(len(labels) / columns) * max(len(label.splitlines()) for label in labels)
    figure.set_figheight(figure.get_figheight() + max(0, rows - 2) * style.size * 1.4 / 72)
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        ncols=columns,
        handlelength=2.6,
        columnspacing=1.2,
    )


def whole_numbers(axis: Axis, bins: int | str = "auto") -> None:
    """Ticks at whole numbers only, also where there is a single one."""
    axis.set_major_locator(MaxNLocator(integer=True, nbins=bins, min_n_ticks=1))
    low, high = axis.get_view_interval()
    if abs(high - low) < 1:
        middle = round((low + high) / 2)
        axis.axes.set(**{f"{axis.axis_name}lim": (middle - 0.5, middle + 0.5)})


def within_percent(panel: Axes) -> None:
    """Cut the axis where percentages end; the interval of few seeds goes on beyond."""
    low, high = panel.get_ylim()
    panel.set_ylim(max(low, -2), min(high, 102))


def from_zero(panel: Axes) -> None:
    """An axis of costs: from zero to a little beyond the largest, so that its marker is whole where all are equal."""
    largest = panel.dataLim.x1
    panel.set_xlim(0, 1.05 * largest if 0 < largest < math.inf else None)


def plain_log(axis, set_scale) -> None:
    """A logarithmic axis with plain numbers at its decades, or at 1, 2, 5 where it has few of them."""
    set_scale("log")
    low, high = axis.get_view_interval()
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
    if high / max(low, 1e-300) < 300:
        axis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
