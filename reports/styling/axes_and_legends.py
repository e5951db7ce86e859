"""Parts that figures share: panels, markers, a legend above, scales with plain numbers."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from reports.axis_units import USUAL_UNITS, AxisUnits
from reports.styling.figure_style import THRESHOLD_LINE, FigureStyle
from reports.styling.unbroken_units import unbroken

LARGER = 0.6  # of a marker that looks out from behind others
ROUNDING = 1e-6  # relative; what differs by less is drawn as equal
MOST_TICKS = 8  # at values of a sweep
LEAST_APART = 1 / 9  # of a logarithmic axis, between two of them
JOINT = "\0"  # within a label that is broken into lines; no label has one


def panels_side_by_side(
    style: FigureStyle, count: int, size_in: tuple[float, float], share_y: bool
) -> tuple[Figure, np.ndarray]:
    """Panels side by side on a page, one above the other in a column.

    Args:
        style: which of both.
        count: how many panels.
        size_in: width and height of the figure, inches.
        share_y: one y axis for panels side by side.
    """
    # room between the last number of one axis and the first of the next
    layout = ConstrainedLayoutEngine(wspace=0.05)
    figure = Figure(figsize=size_in, layout=layout)
    if style.wide:
        return figure, figure.subplots(1, count, sharey=share_y, squeeze=False).ravel()
    return figure, figure.subplots(count, 1, squeeze=False).ravel()


def two_panels(
    style: FigureStyle, wide_in: float, narrow_in: float, share_y: bool = True
) -> tuple[Figure, np.ndarray]:
    """Two panels; the height of one is wide_in on a page, narrow_in in a column."""
    height = wide_in if style.wide else 2 * narrow_in + 0.6
    return panels_side_by_side(style, 2, (style.width_in, height), share_y)


def one_panel(style: FigureStyle, wide_in: float, narrow_in: float) -> tuple[Figure, Axes]:
    """A single panel; heights as in `two_panels`."""
    size = (min(style.width_in, 5.4), wide_in if style.wide else narrow_in)
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def staggered(i: int, lines: int, points: int) -> dict[str, Any]:
    """Markers that line i of several does not hide behind those of equal lines.

    They stand at other points, or, where there are too few points, the earlier ones are larger,
    at most by `LARGER`.
    """
    step = max(1, math.ceil(points / 6))
    start = round(i * step / lines) if step > 1 else 0
    larger = 1.0 if points > 6 else 1.0 + LARGER * (lines - 1 - i) / max(1, lines - 1)
    return {"markevery": (start, step), "ms": rcParams["lines.markersize"] * larger}


def wrap(label: str, most: int = 34) -> str:
    """A label in lines of so many characters, by default those that fit a legend or a title.

    A number and its unit stay in one line, where they fit.
    """
    words = unbroken(label, JOINT).split(" ")
    fitting = (word if len(word) <= most else word.replace(JOINT, " ") for word in words)
    lines = textwrap.fill(" ".join(fitting), most).replace(JOINT, " ")
    # matplotlib leaves labels that begin with an underscore out of legends
    return f"\N{ZERO WIDTH SPACE}{lines}" if lines.startswith("_") else lines


def threshold_handles(limits_s: Sequence[float], units: AxisUnits) -> list[Line2D]:
    """A legend's entries for some latency thresholds."""
    names = [threshold_label(limit, units) for limit in limits_s]
    return [Line2D([], [], **THRESHOLD_LINE, label=name) for name in names]


def threshold_label(limit_s: float, units: AxisUnits = USUAL_UNITS) -> str:
    """What the line of a latency threshold is called."""
    return f"threshold {threshold_text(limit_s, units)}"


def threshold_text(limit_s: float, units: AxisUnits) -> str:
    """A latency threshold in four figures, without an exponent up to 1e9: "25000 us"."""
    scale, _ = units.axis("", "latency")
    return f"{float(f'{limit_s * scale:.4g}'):.9g} {units.latency}"


def legend(
    figure: Figure,
    panel: Axes | None,
    style: FigureStyle,
    extra: Sequence[Artist] = (),
    title: str = "",
) -> None:
    """The panel's labels, and the extra handles, above the figure in as many columns as fit.

    The title is a line of its own above them.
    """
    known, names = panel.get_legend_handles_labels() if panel is not None else ([], [])
    handles, labels = [*known, *extra], [*names, *(str(handle.get_label()) for handle in extra)]
    if not labels:
        return
    place: dict[str, Any] = {"loc": "outside upper left", "handlelength": 2.6, "columnspacing": 1.2}
    place |= {"title": title or None, "alignment": "left"}
    first, *others = _arrangements(labels, figure.get_figwidth() * 132 / style.text_pt)
    fewer = [each for each in others if _rows(*each) < _rows(*first)]
    for columns, texts in (*sorted(fewer, key=lambda each: _rows(*each)), first):
        made = figure.legend(handles, texts, ncols=columns, **place)
        # other resolutions round the widths of letters otherwise
        if texts is labels or made.get_window_extent().width <= 0.95 * figure.bbox.width:
            break
        made.remove()
    for handle, text in zip(handles, texts, strict=True):
        handle.set_label(text)
    rows = _rows(columns, texts) + bool(title)
    figure.set_figheight(figure.get_figheight() + max(0, rows - 2) * style.text_pt * 1.4 / 72)


def _arrangements(labels: list[str], room: float) -> Iterator[tuple[int, list[str]]]:
    """Columns and the labels in them: as they are, then wrapped anew for so many columns.

    Args:
        labels: of a legend, in lines.
        room: characters beside each other, about.
    """
    longest = max(len(line) for label in labels for line in label.splitlines())
    yield max(1, min(len(labels), int(room / (longest + 7)))), labels
    texts = [re.sub(r"(?<=\S)-\n", "-", label).replace("\n", " ") for label in labels]
    word = max(len(word) for text in texts for word in unbroken(text, JOINT).split() or [""])
    for columns in range(1, len(labels) + 1):
        most = int(room / columns) - 7
        if most >= max(word, 12):
            yield columns, [wrap(text, most) for text in texts]


def _rows(columns: int, labels: list[str]) -> int:
    """Lines of text of a legend."""
    return math.ceil(len(labels) / columns) * max(len(label.splitlines()) for label in labels)


def whole_numbers(axis: Axis, bins: Any = "auto") -> None:
    """Ticks at whole numbers only, also where there is a single one."""
    axis.set_major_locator(MaxNLocator(integer=True, nbins=bins, min_n_ticks=1))
    low, high = axis.get_view_interval()
    if abs(high - low) < 1:
        middle = round((low + high) / 2)
        name = "x" if axis is axis.axes.xaxis else "y"
        axis.axes.set(**{f"{name}lim": (middle - 0.5, middle + 0.5)})


def ticks_at_values(panel: Axes, values: Sequence[float]) -> None:
    """Ticks along x at the values themselves, where these are few and stand apart.

    Args:
        panel: whose x axis has its scale.
        values: in ascending order.
    """
    is_log = panel.get_xscale() == "log"
    shown = [value for value in values if value > 0 or not is_log]
    apart = np.diff(np.log(shown)) if is_log else np.ones(1)
    if len(shown) <= MOST_TICKS and (apart >= LEAST_APART * apart.sum()).all():
        panel.set_xticks(shown, [f"{value:g}" for value in shown])
        panel.set_xticks([], minor=True)


def within_percent(panel: Axes, whole: float = 100.0) -> None:
    """Cut the axis where percentages end; the interval of few seeds goes on beyond.

    Args:
        panel: with shares along y.
        whole: what 100 % are there.
    """
    if panel.get_yscale() == "linear":
        low, high = panel.get_ylim()
        high = min(high, 1.02 * whole)
        # so little below zero that a marker there is whole, and no number stands there
        panel.set_ylim(max(low, -0.02 * high), high, auto=None)


def widen_equal(axis: Axis) -> None:
    """Room around values that are equal but for rounding, which would fill the axis otherwise."""
    low, high = axis.get_data_interval()
    middle = 0.5 * (low + high)
    if 0 < high - low <= ROUNDING * abs(middle):
        name, room = "x" if axis is axis.axes.xaxis else "y", 0.05 * abs(middle)
        axis.axes.set(**{f"{name}lim": (middle - room, middle + room)})


def from_zero(panel: Axes) -> None:
    """Costs from zero to a little beyond the largest, whose marker then is whole."""
    if panel.get_xscale() != "linear":
        return
    largest = panel.dataLim.x1
    panel.set_xlim(0, 1.05 * largest if 0 < largest < math.inf else None)


def set_scales(panel: Axes, style: FigureStyle, x: str = "linear", y: str = "linear") -> None:
    """The scales that the style asks for, and where it leaves them open those given."""
    if (x if style.x_scale == "auto" else style.x_scale) == "log":
        plain_log(panel.xaxis, panel.set_xscale)
    if (y if style.y_scale == "auto" else style.y_scale) == "log":
        plain_log(panel.yaxis, panel.set_yscale)


def show_whole_share(panel: Axes) -> None:
    """From 0 to 100 % with a margin, unless a logarithm hides 0."""
    if panel.get_yscale() == "linear":
        panel.set_ylim(-2, 104)


def draw_seeds(panel: Axes, x: np.ndarray, y: np.ndarray, colour: str) -> None:
    """Dots of single seeds, in place of an interval that so few of them do not give."""
    panel.plot(x, y, ls="none", marker=".", ms=rcParams["lines.markersize"], color=colour, mew=0)


def error_bar(half: float, scale: float) -> float | None:
    """Half of an interval in the unit of the axis; None without one."""
    return None if math.isnan(half) else half * scale


def plain_log(axis: Axis, set_scale: Callable[[str], None]) -> None:
    """A logarithmic axis with plain numbers at its decades, or at 1, 2, 5 where it has few."""
    if axis.get_data_interval()[1] <= 0:  # nothing of it could be drawn
        return
    set_scale("log")
    low, high = axis.get_view_interval()
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
    locator = axis.get_major_locator()
    if isinstance(locator, LogLocator) and high / max(low, 1e-300) < 300:
        locator.set_params(subs=(1.0, 2.0, 5.0))
