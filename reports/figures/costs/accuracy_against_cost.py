"""Accuracy against its cost: Pareto fronts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.run_data.scheme_grouping import Scheme, untuned_notes
from reports.run_data.statistics.metrics import ACCURACY, ENERGY, LATENCY, Metric
from reports.run_data.statistics.seed_intervals import (
    Estimate,
    comparable_estimate,
    estimate,
    final_accuracy,
)
from reports.styling.axes_and_legends import (
    LARGER,
    draw_seeds,
    error_bar,
    from_zero,
    legend,
    set_scales,
    two_panels,
    within_percent,
    wrap,
)
from reports.styling.colours_and_markers import series_styles
from reports.styling.figure_style import INK, FigureStyle
from reports.styling.number_formats import decimals, significant
from reports.styling.point_labels import PointLabel, label_points
from reports.styling.table_formats import SCHEME, Column, Table

FRONT_LINE: dict[str, Any] = {"color": INK, "lw": 0.8, "ls": ":", "zorder": 1}


def pareto_front(cost: Sequence[float], gain: Sequence[float]) -> list[int]:
    """Indices of the points that no other dominates, cheapest first; points with nan are left out.

    A point dominates another if it costs at most as much and gains at least as much, one of them
    strictly. Costs equal to twelve digits are equal: rounding alone makes nothing cheaper.
    """
    points = [
        (float(f"{c:.12g}"), -g, i)
        for i, (c, g) in enumerate(zip(cost, gain, strict=True))
        if not math.isnan(c + g)
    ]
    kept: list[tuple[float, float, int]] = []
    for point in sorted(points):
        if not kept or point[1] < kept[-1][1] or point[:2] == kept[-1][:2]:
            kept.append(point)
    return [i for _, _, i in kept]


def _front(schemes: Sequence[Scheme], cost: Metric) -> list[int]:
    """Indices of the schemes on the front; a mean that lacks a seed is compared with none.

    Where a scheme is not tuned, accuracies rank nobody, and there is no front.
    """
    if untuned_notes(schemes):
        return []
    costs = [estimate(scheme, cost.of).mean for scheme in schemes]
    return pareto_front(costs, [final_accuracy(scheme) for scheme in schemes])


def any_accuracy(schemes: list[Scheme]) -> bool:
    """Does any scheme have a final accuracy?"""
    return any(estimate(scheme, ACCURACY.of).n for scheme in schemes)


def accuracy_against_cost(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """Final accuracy against mean latency and against energy per round; filled: on the front."""
    y = [comparable_estimate(scheme, ACCURACY.of) for scheme in schemes]
    styles = series_styles(schemes, style.grey)
    size = style.marker_pt * 1.3
    figure, panels = two_panels(style, 3.2, 2.2)
    for panel, cost in zip(panels, (LATENCY, ENERGY), strict=True):
        x, (scale, title) = [estimate(s, cost.of) for s in schemes], cost.axis(style.units)
        best = _front(schemes, cost)
        for i, scheme in enumerate(schemes):
            look = styles[scheme.series]
            # of points in one place the earlier ones look out from behind
            later = zip(x[i + 1 :], y[i + 1 :], strict=True)
            above = sum(_near(x[i], one) and _near(y[i], other) for one, other in later)
            kind = look.points | {"ms": size * (1 + LARGER * min(above, 3))}
            kind |= {
                "mfc": look.colour if i in best else "white",
                "xerr": error_bar(x[i].half, scale),
                "yerr": error_bar(y[i].half, 100.0),
            }
            panel.errorbar(x[i].mean * scale, y[i].mean * 100, elinewidth=0.7, **kind)
            if y[i].dots and len(x[i].dots) == len(y[i].dots):
                across, up = np.array(x[i].dots) * scale, np.array(y[i].dots) * 100
                draw_seeds(panel, across, up, look.colour)
        panel.set_xlabel(title)
        set_scales(panel, style)
        from_zero(panel)
        # the best accuracy for a price; what costs still more gains nothing
        dear = panel.get_xlim()[1]
        heights = [y[i].mean * 100 for i in (*best, *best[-1:])]
        prices = [*(x[i].mean * scale for i in best), dear][: len(heights)]
        panel.step(prices, heights, where="post", **FRONT_LINE)
        panel.set_xlim(right=dear)
        within_percent(panel)
        if not style.wide or panel is panels[0]:
            panel.set_ylabel("final accuracy (%)")
    handles = [
        Line2D([], [], **look.points, ms=size, label=wrap(name)) for name, look in styles.items()
    ]
    if not untuned_notes(schemes):
        handles.append(Line2D([], [], label="Pareto front", **FRONT_LINE))
    legend(figure, panels[0], style, handles)
    if any(scheme.point for scheme in schemes):
        for panel, cost in zip(panels, (LATENCY, ENERGY), strict=True):
            label_points(figure, panel, _point_labels(schemes, cost, cost.axis(style.units)[0]))
    return figure


def _point_labels(schemes: list[Scheme], cost: Metric, scale: float) -> list[PointLabel]:
    """The swept values of each scheme beside its point, those on the front first."""
    x, y = ([estimate(scheme, of).mean for scheme in schemes] for of in (cost.of, ACCURACY.of))
    best = _front(schemes, cost)
    rest = [i for i in range(len(schemes)) if i not in best and not math.isnan(x[i] + y[i])]
    return [
        PointLabel(x[i] * scale, y[i] * 100, ", ".join(schemes[i].numbers.values()))
        for i in (*best, *rest)
    ]


def _near(one: Estimate, other: Estimate) -> bool:
    return math.isclose(one.mean, other.mean, rel_tol=0.01)


def pareto_table(schemes: list[Scheme]) -> Table:
    """One line per scheme: accuracy, latency, energy with intervals, and whether on a front.

    Where an accuracy lacks a seed, of how many each is.
    """
    metrics = (ACCURACY, LATENCY, ENERGY)
    columns = [SCHEME]
    for metric in metrics:
        show = decimals(1, 100) if metric is ACCURACY else significant(4, metric.scale)
        columns += [
            Column(metric.column, metric.heading, show),
            Column(f"{metric.column}_ci95", "± 95 %", show, half_of=metric.column),
        ]
    evaluated = [(estimate(s, ACCURACY.of).n, len(s.runs)) for s in schemes]
    some_lack = any(n < seeds for n, seeds in evaluated)
    if some_lack:
        columns += [Column("seeds_evaluated", "Seeds evaluated"), Column("seeds", "Seeds")]
    fronts = []
    for metric in () if untuned_notes(schemes) else (LATENCY, ENERGY):
        title = f"On the front ({metric.name})"
        columns.append(Column(f"front_{metric.name}", title, number=False))
        fronts.append(_front(schemes, metric))
    rows = []
    for i, scheme in enumerate(schemes):
        found = [comparable_estimate(scheme, metric.of) for metric in metrics]
        numbers = [x for each in found for x in (each.mean, each.half)]
        numbers += evaluated[i] if some_lack else ()
        rows.append((scheme.label, *numbers, *("yes" if i in best else "no" for best in fronts)))
    return Table("pareto", "Accuracy and what it costs per round.", tuple(columns), tuple(rows))
