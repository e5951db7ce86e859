"""Texts beside the points of a panel, where there is room for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from reports.styling.figure_style import INK

MOST_LABELS = 40  # of a panel; more cannot be read
APART_PT = 5.0  # between the middle of a point and the corner of its text
POINT_LABEL = "_beside a point"  # no entry of a legend, as it begins with an underscore
NEARER = 1.5  # a text is so many times nearer to its point than to others above or below
SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0))  # right and above first
UPRIGHT = {1: "bottom", 0: "center", -1: "top"}


class PointLabel(NamedTuple):
    """A text for the point (x, y) of a panel."""

    x: float
    y: float
    text: str


def label_points(figure: Figure, panel: Axes, labels: Sequence[PointLabel]) -> None:
    """Write texts beside points; one that would touch another or a marker is hidden, as is one
    that could be read as another point's.

    Args:
        figure: with everything else in its place.
        panel: has the points and other markers, on scales that no longer change.
        labels: the most important ones first.
    """
    for label in labels[:MOST_LABELS]:
        panel.annotate(
            label.text, (label.x, label.y), (0, 0), textcoords="offset points", color=INK,
            fontsize=rcParams["xtick.labelsize"], in_layout=False, label=POINT_LABEL,
            path_effects=[withStroke(linewidth=2, foreground="white")],
        )  # fmt: skip
    points = [(label.x, label.y) for label in labels[MOST_LABELS:]]
    arrange_labels(figure, panel, points)


def arrange_labels(figure: Figure, panel: Axes, others: Sequence[tuple[float, float]] = ()) -> None:
    """Place the texts of `label_points` for the size that the panel has now.

    Args:
        figure: with everything else in its place.
        panel: may have texts beside points.
        others: points without a text, that no text lies on.
    """
    found = (text for text in panel.texts if isinstance(text, Annotation))
    texts = [text for text in found if text.get_label() == POINT_LABEL]
    if not texts:
        return
    figure.draw_without_rendering()  # lays the panels out
    reach = APART_PT * figure.dpi / 72 * 0.8
    marked = [line for line in panel.lines if line.get_marker() not in ("None", "", None)]
    places = [*(text.xy for text in texts), *others]
    points = panel.transData.transform(np.vstack([*places, *(m.get_xydata() for m in marked)]))
    taken = [Bbox([(x - reach, y - reach), (x + reach, y + reach)]) for x, y in points]
    for text, own in zip(texts, points, strict=False):
        for across, up in SIDES:
            text.set(
                ha="left" if across > 0 else "right",
                va=UPRIGHT[up],
                position=(across * APART_PT, up * APART_PT),
                visible=True,
            )
            box = text.get_window_extent()
            rivals = _above_or_below(points[: len(places)], own, box, reach)
            nearer = NEARER * _distances(box, own[None]) < _distances(box, rivals)
            free = nearer.all() and not box.count_overlaps(taken)
            if free and _lies_within(box, panel.bbox):
                taken.append(box.padded(reach))
                break
        else:
            text.set_visible(False)


def _above_or_below(points: np.ndarray, own: np.ndarray, box: Bbox, reach: float) -> np.ndarray:
    """The points [N, 2] in a column with a text's own or with the text, none in its own place."""
    away, x = np.abs(points - own), points[:, 0]
    beside = (away[:, 0] < box.width / 2) | ((box.x0 + 2 * reach < x) & (x < box.x1 - 2 * reach))
    return points[beside & (away.max(axis=1) > reach)]


def _distances(box: Bbox, points: np.ndarray) -> np.ndarray:
    """From a box to each point [N, 2], pixels; 0 within it."""
    beyond = np.maximum(box.min - points, points - box.max).clip(0)
    return np.asarray(np.hypot(*beyond.T))


def _lies_within(inner: Bbox, outer: Any) -> bool:
    across = outer.x0 <= inner.x0 and inner.x1 <= outer.x1
    return bool(across and outer.y0 <= inner.y0 and inner.y1 <= outer.y1)
