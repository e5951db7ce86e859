"""The numbers of the page's charts, as JSON that can stand in a page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reports.axis_units import USUAL_UNITS, AxisUnits
from reports.figures.learning_curves import ABSCISSAS, ACCURACY, LATENCY, LOSS, own_metric
from reports.run_data.scheme_grouping import MOST_SERIES, Scheme
from reports.run_data.statistics.metrics import all_metrics, own_metrics
from reports.run_data.statistics.round_curves import RoundCurve, round_curve
from reports.run_data.statistics.seed_intervals import comparable_estimate
from reports.run_data.swept_keys import SweptKey
from reports.styling.colours_and_markers import scheme_styles, series_styles

MOST_LINES, MOST_POINTS = 40, 250  # what the page carries; the CSV has all
DIGITS = 6


def chart_data(
    schemes: list[Scheme], keys: Sequence[SweptKey], units: AxisUnits = USUAL_UNITS
) -> dict[str, Any]:
    """The curves of the rounds, and of a sweep its points.

    Args:
        schemes: of the report, in its order.
        keys: the swept ones.
        units: of the axes.

    Returns:
        {"curves": ..., "sweep": ...}; either is None where there is nothing to show.
    """
    sweep = _sweep(schemes, keys, units) if keys else None
    return {"curves": _curves(schemes, units), "sweep": sweep}


def lines_text(schemes: list[Scheme]) -> str:
    """Which curves are there and are seen at first; "" where that are all."""
    count = len(schemes)
    if count <= MOST_SERIES:
        return ""
    if count <= MOST_LINES:
        return f"Of the {count} schemes the curves of the first {MOST_SERIES} are switched on."
    return (
        f"Of the {count} schemes the first {MOST_LINES} have a curve here, of which the first "
        f"{MOST_SERIES} are switched on."
    )


def as_script_text(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _curves(schemes: list[Scheme], units: AxisUnits) -> dict[str, Any] | None:
    looks, quantities = scheme_styles(schemes), []
    for shown in (ACCURACY, LOSS, LATENCY, *map(own_metric, own_metrics(schemes))):
        lines, (scale, title) = [], units.axis(shown.title, shown.unit)
        for scheme in schemes[:MOST_LINES]:
            curve = round_curve(scheme, shown.column)
            if curve is not None and curve.can_be_drawn:
                look = looks[scheme.label]
                dash = [] if isinstance(look.dashes, str) else [2 * x for x in look.dashes[1]]
                line = {"label": scheme.label, "colour": look.colour, "dash": dash}
                lines.append(line | _line(curve, scale, units))
        if lines:
            quantities.append({"title": title, "lines": lines})
    titles = {name: units.axis(axis.title, axis.unit)[1] for name, axis in ABSCISSAS.items()}
    axes = [{"name": name, "title": title} for name, title in titles.items()]
    chosen = {"axes": axes, "quantities": quantities, "shown": MOST_SERIES}
    return chosen if quantities else None


def _line(curve: RoundCurve, scale: float, units: AxisUnits) -> dict[str, Any]:
    """At most `MOST_POINTS` of a curve, evenly spaced, the last one always."""
    step = math.ceil(len(curve.rounds) / MOST_POINTS)
    kept = np.arange(len(curve.rounds) - 1, -1, -step)[::-1]
    line: dict[str, Any] = {
        name: _rounded(getattr(curve, axis.attribute)[kept] * units.axis("", axis.unit)[0])
        for name, axis in ABSCISSAS.items()
    }
    line["y"] = _rounded(curve.mean[kept] * scale)
    line["half"] = None if curve.half is None else _rounded(curve.half[kept] * scale)
    return line


def _sweep(schemes: list[Scheme], keys: Sequence[SweptKey], units: AxisUnits) -> dict[str, Any]:
    points, metrics = [], all_metrics(schemes)
    for scheme in schemes:
        values: list[list[float | None]] = []
        for metric in metrics:
            found = comparable_estimate(scheme, metric.of)
            values.append(_rounded(np.array([found.mean, found.half]) * metric.axis(units)[0]))
        at = [key.value_in(scheme.values) for key in keys]
        points.append({"series": scheme.series, "at": at, "values": values})
    return {
        "keys": [{"title": key.title, "unit": key.unit, "name": key.name} for key in keys],
        "metrics": [metric.axis(units)[1] for metric in metrics],
        "colours": {name: look.colour for name, look in series_styles(schemes).items()},
        "points": points,
    }


def _rounded(values: np.ndarray) -> list[float | None]:
    shown = (float(f"{value:.{DIGITS}g}") for value in values.tolist())
    return [value if math.isfinite(value) else None for value in shown]
