"""Texts beside the points of a panel, where there is room for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from reports.styling.figure_style import INK

MOST_LABELS = 40  # of a panel; more cannot be read
APART_PT = 5.0  # between the middle of a point and the corner of its text
SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1))  # right and above first


class PointLabel(NamedTuple):
    """A text for the point (x, y) of a panel."""

    x: float
    y: float
    text: str


def label_points(figure: Figure, panel: Axes, labels: Sequence[PointLabel]) -> None:
    """Write texts beside points; one that would touch another or a marker is left out.

    Args:
        figure: with everything else in its place.
        panel: has the points and other markers, on scales that no longer change.
        labels: the most important ones first.
    """
    figure.draw_without_rendering()  # lays the panels out
    reach = APART_PT * figure.dpi / 72 * 0.8
    marked = [line for line in panel.lines if line.get_marker() not in ("None", "", None)]
    places = [(label.x, label.y) for label in labels]
    points = panel.transData.transform(np.vstack([*places, *(m.get_xydata() for m in marked)]))
    taken = [Bbox([(x - reach, y - reach), (x + reach, y + reach)]) for x, y in points]
    for label in labels[:MOST_LABELS]:
        for across, up in SIDES:
            kind: dict[str, Any] = {"ha": "left" if across > 0 else "right"}
            kind |= {"va": "bottom" if up > 0 else "top", "fontsize": rcParams["xtick.labelsize"]}
            text = panel.annotate(
                label.text, (label.x, label.y), (across * APART_PT, up * APART_PT),
                textcoords="offset points", color=INK, in_layout=False, **kind,
                path_effects=[withStroke(linewidth=2, foreground="white")],
            )  # fmt: skip
            box = text.get_window_extent()
            if _lies_within(box, panel.bbox) and not box.count_overlaps(taken):
                taken.append(box.padded(reach))
                break
            text.remove()


def _lies_within(inner: Bbox, outer: Any) -> bool:
    across = outer.x0 <= inner.x0 and inner.x1 <= outer.x1
    return bool(across and outer.y0 <= inner.y0 and inner.y1 <= outer.y1)
