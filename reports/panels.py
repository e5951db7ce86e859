"""What the figures share: two panels, markers that do not hide each other, a legend above."""

from __future__ import annotations

import math
import textwrap

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.style import COLUMN_IN, PAGE_IN


def two_panels(wide: bool, wide_in: float, narrow_in: float, share_y: bool = True) -> tuple[Figure, np.ndarray]:
    """Two panels: side by side on the page, one above the other in a column. Heights of one panel in inches."""
    size = (PAGE_IN, wide_in) if wide else (COLUMN_IN, 2 * narrow_in + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, 2, sharey=share_y) if wide else figure.subplots(2, 1)
    return figure, panels


def stagger(i: int, items: list, points: int) -> tuple[int, int]:
    """Markers of the lines at different places, so that equal lines show all their markers."""
    step = max(1, math.ceil(points / 6))
    return (round(i * step / len(items)) if step > 1 else 0), step


def nest(i: int, items: list, points: int) -> float:
    """Marker sizes: where there are too few points to stagger them, the earlier ones look out from behind."""
    return rcParams["lines.markersize"] * (1.0 if points > 6 else 1.0 + 0.3 * (len(items) - 1 - i))


def wrap(label: str) -> str:
    return textwrap.fill(label, 34)


def legend(figure: Figure, panel: Axes, wide: bool) -> None:
    handles, labels = panel.get_legend_handles_labels()
    longest = max(len(line) for label in labels for line in label.splitlines())
    columns = max(1, min(len(labels), int((112 if wide else 58) / (longest + 6))))
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, handlelength=2.2, columnspacing=1.2)
