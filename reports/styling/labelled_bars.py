"""Horizontal bars and ranges of schemes, one row each, with label and number above it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import blended_transform_factory

from reports.run_data.scheme_grouping import Scheme
from reports.styling.axes_and_legends import wrap
from reports.styling.figure_style import INK, QUIET
from reports.styling.number_formats import NumberFormat, significant

FOUR_DIGITS = significant(4)
ROW_CHARACTERS = 46  # of a line of text in half a page, or in a column


def stacked_bars(
    panel: Axes,
    schemes: list[Scheme],
    parts: dict[str, list[float]],
    colours: dict[str, str],
    hatched: dict[str, str],
    unit: str,
    total: NumberFormat = FOUR_DIGITS,
) -> None:
    """Stacked bars, one per scheme, with its label and total above.

    Args:
        panel: where to draw.
        schemes: one row each.
        parts: name of a part -> its length for each scheme, in the unit of the axis.
        colours: name of a part -> colour.
        hatched: name of a part -> hatch, "" for none.
        unit: written behind the totals.
        total: how they are shown.
    """
    left = np.zeros(len(schemes))
    rows = np.arange(len(schemes))
    for name, row in parts.items():
        edge: dict[str, Any] = {"edgecolor": INK if hatched[name] else "white", "lw": 0.3}
        edge |= {"hatch": hatched[name], "color": colours[name], "label": wrap(name)}
        panel.barh(rows, row, left=left, height=0.34, **edge)
        left += np.asarray(row)
    totals = [f"{total(length)} {unit}" for length in left]
    row_labels(panel, [scheme.label for scheme in schemes], totals)
    rows_from_above(panel, len(schemes))
    bars_legend(panel, parts)


def bars_legend(panel: Axes, names: Collection[str]) -> None:
    """The legend of one panel above it, in as many columns as fit."""
    if not names:
        return
    columns = max(1, min(len(names), ROW_CHARACTERS // (max(map(len, names)) + 5)))
    look: dict[str, Any] = {"handlelength": 1.4, "handletextpad": 0.4, "columnspacing": 0.8}
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0)}
    panel.legend(ncols=columns, borderaxespad=0.2, **look, **place)


def row_labels(panel: Axes, labels: Sequence[str], numbers: Sequence[str]) -> None:
    """A line of text above each row; it may run over the whole width of the panel, and what is
    drawn below it ends at its box.
    """
    place = blended_transform_factory(panel.transAxes, panel.transData)
    box: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
    align: dict[str, Any] = {"va": "bottom", "ha": "left", "color": INK, "zorder": 4}
    names = told_apart(labels, [ROW_CHARACTERS - len(number) for number in numbers])
    for row, (name, number) in enumerate(zip(names, numbers, strict=True)):
        text = f"{name}: {number}"
        panel.text(0.012, row - 0.26, text, transform=place, bbox=box, **align)


def told_apart(labels: Sequence[str], most: Sequence[int]) -> list[str]:
    """Labels of so many characters each, no two alike: cut in the middle, or else numbered, where
    `shortened` takes away what tells them apart.
    """
    for cut in (shortened, _cut_in_the_middle):
        short = [cut(label, room) for label, room in zip(labels, most, strict=True)]
        if len(set(short)) == len(set(labels)):
            return short
    numbered = [f"{i}. {label}" for i, label in enumerate(labels, start=1)]
    return [shortened(label, room) for label, room in zip(numbered, most, strict=True)]


def shortened(label: str, most: int) -> str:
    """A label of so many characters: cut in its name, not in the bracket that distinguishes it."""
    if len(label) <= most:
        return label
    bracket = "".join(label.partition(" (")[1:])
    if most - len(bracket) < 4:
        bracket = ""
    return f"{label[: most - len(bracket) - 1].rstrip()}…{bracket}"


def _cut_in_the_middle(label: str, most: int) -> str:
    if len(label) <= most:
        return label
    end = most // 2
    return f"{label[: most - end - 1].rstrip()}…{label[-end:].lstrip()}"


def rows_from_above(panel: Axes, count: int) -> None:
    """A y axis of rows with room for the text above each."""
    panel.set_ylim(count - 0.55, -0.95)
    panel.set_yticks([])
    panel.grid(axis="y", visible=False)
    panel.spines["left"].set_color(QUIET)
