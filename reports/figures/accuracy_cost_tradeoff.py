"""Accuracy against its cost: Pareto fronts, and the cost to reach a target accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgesim.errors import counted
from reports.axis_units import USUAL_UNITS
from reports.run_data.scheme_grouping import Scheme, target_accuracies
from reports.run_data.statistics.metrics import ACCURACY, ENERGY, LATENCY, Metric
from reports.run_data.statistics.seed_intervals import Estimate, estimate, target_estimate
from reports.styling.axes_and_legends import (
    LARGER,
    draw_seeds,
    from_zero,
    legend,
    panels_side_by_side,
    set_scales,
    two_panels,
    within_percent,
    wrap,
)
from reports.styling.colours_and_markers import MARKERS, series_styles
from reports.styling.figure_style import INK, FigureStyle
from reports.styling.point_labels import PointLabel, label_points
from reports.styling.table_formats import SCHEME, TARGET, Column, Table, decimals, significant

COSTS = (
    ("time_s", "simulated time", "time"),
    ("bits", "payload", "bits"),
    ("energy_j", "energy", "energy"),
)
FRONT_LINE: dict[str, Any] = {"color": INK, "lw": 0.8, "ls": ":", "zorder": 1}
NAME_CHARACTERS = 22  # of a line beside a panel that fills a column


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


def accuracy_against_cost(schemes: list[Scheme], style: FigureStyle) -> Figure | None:
    """Final accuracy against mean latency and against energy per round; filled: on the front."""
    y = [estimate(scheme, ACCURACY.of) for scheme in schemes]
    if not any(one.n for one in y):
        return None
    styles = series_styles(schemes, style.grey)
    size = style.marker_pt * 1.3
    figure, panels = two_panels(style, 3.2, 2.2)
    for panel, cost in zip(panels, (LATENCY, ENERGY), strict=True):
        x, (scale, title) = [estimate(s, cost.of) for s in schemes], cost.axis(style.units)
        best = pareto_front([one.mean for one in x], [one.mean for one in y])
        for i, scheme in enumerate(schemes):
            look = styles[scheme.series]
            # of points in one place the earlier ones look out from behind
            later = zip(x[i + 1 :], y[i + 1 :], strict=True)
            above = sum(_near(x[i], one) and _near(y[i], other) for one, other in later)
            kind = look.points | {"ms": size * (1 + LARGER * min(above, 3))}
            kind |= {
                "mfc": look.colour if i in best else "white",
                "xerr": _half(x[i], scale),
                "yerr": _half(y[i], 100.0),
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
    handles.append(Line2D([], [], label="Pareto front", **FRONT_LINE))
    legend(figure, panels[0], style, handles)
    if any(scheme.point for scheme in schemes):
        for panel, cost in zip(panels, (LATENCY, ENERGY), strict=True):
            label_points(figure, panel, _point_labels(schemes, cost, cost.axis(style.units)[0]))
    return figure


def _point_labels(schemes: list[Scheme], cost: Metric, scale: float) -> list[PointLabel]:
    """The swept values of each scheme beside its point, those on the front first."""
    x, y = ([estimate(scheme, of).mean for scheme in schemes] for of in (cost.of, ACCURACY.of))
    best = pareto_front(x, y)
    rest = [i for i in range(len(schemes)) if i not in best and not math.isnan(x[i] + y[i])]
    return [
        PointLabel(x[i] * scale, y[i] * 100, ", ".join(schemes[i].numbers.values()))
        for i in (*best, *rest)
    ]


def _near(one: Estimate, other: Estimate) -> bool:
    return math.isclose(one.mean, other.mean, rel_tol=0.01)


def _half(value: Estimate, scale: float) -> float | None:
    return None if math.isnan(value.half) else value.half * scale


def pareto_table(schemes: list[Scheme]) -> Table:
    """One line per scheme: accuracy, latency, energy with intervals, and whether on the fronts."""
    metrics = (ACCURACY, LATENCY, ENERGY)
    columns = [SCHEME]
    for metric in metrics:
        show = decimals(1, 100) if metric is ACCURACY else significant(4, metric.scale)
        columns += [
            Column(metric.column, metric.heading, show),
            Column(f"{metric.column}_ci95", "± 95 %", show, half_of=metric.column),
        ]
    accuracy, *costs = ([estimate(s, metric.of) for s in schemes] for metric in metrics)
    gain, fronts = [one.mean for one in accuracy], []
    for metric, values in zip((LATENCY, ENERGY), costs, strict=True):
        title = f"On the front ({metric.name})"
        columns.append(Column(f"front_{metric.name}", title, number=False))
        fronts.append(pareto_front([one.mean for one in values], gain))
    rows = []
    for i, scheme in enumerate(schemes):
        numbers = [x for each in (accuracy, *costs) for x in (each[i].mean, each[i].half)]
        rows.append((scheme.label, *numbers, *("yes" if i in best else "no" for best in fronts)))
    return Table("pareto", "Accuracy and what it costs per round.", tuple(columns), tuple(rows))


def target_costs(schemes: list[Scheme], style: FigureStyle) -> Figure | None:
    """Seconds, bits and joules to each target accuracy: mean and 95 % interval over seeds.

    None where no run reached a target.
    """
    known = target_accuracies(schemes)
    targets = [t for t in known if any(target_estimate(s, t, "time_s").n for s in schemes)]
    if not targets:
        return None
    styles, count = series_styles(schemes, style.grey), len(schemes)
    names = [_reached_name(scheme, targets, style) for scheme in schemes]
    lines = max(name.count("\n") for name in names) + 1
    # a line takes 0.135 in, and names are further apart than lines of one
    height = max(0.26, 0.135 * lines + 0.1, 0.08 * len(targets)) * count + 0.75
    size = (style.width_in, height + 0.2 if style.wide else 3 * height)
    figure, panels = panels_side_by_side(style, len(COSTS), size, share_y=True)
    looks = [_target_look(j) for j in range(len(targets))]
    for panel, (name, *axis) in zip(panels, COSTS, strict=True):
        scale, title = style.units.axis(*axis)
        for i, scheme in enumerate(schemes):
            colour = styles[scheme.series].colour
            for j, target in enumerate(targets):
                cost = target_estimate(scheme, target, name)
                y = i + (j - (len(targets) - 1) / 2) * 0.5 / len(targets)
                if cost.n:
                    kind: dict[str, Any] = {
                        "ls": "none",
                        "elinewidth": 0.8,
                        "color": colour,
                        **looks[j],
                    }
                    panel.errorbar(cost.mean * scale, y, xerr=_half(cost, scale), **kind)
                    dots = np.array(cost.dots) * scale
                    draw_seeds(panel, dots, np.full(len(dots), y), colour)
        panel.set_xlabel(title)
        panel.set_ylim(count - 0.5, -0.5)
        from_zero(panel)
        panel.set_yticks(range(count), names)
        panel.grid(axis="y", visible=False)
    handles = [
        Line2D([], [], color=INK, ls="none", label=_target_name([target]), **look)
        for look, target in zip(looks, targets, strict=True)
    ]
    legend(figure, None, style, handles, title="target accuracy")
    return figure


def _target_look(j: int) -> dict[str, Any]:
    """The marker of target j: filled as long as there are some, then hollow."""
    return {
        "marker": MARKERS[j % len(MARKERS)],
        "fillstyle": "full" if j < len(MARKERS) else "none",
    }


def _target_name(targets: Sequence[float]) -> str:
    """One target, or the first and the last of several."""
    ends = dict.fromkeys((targets[0], targets[-1]))
    return "\N{EN DASH}".join(TARGET.show(target) for target in ends) + "%"


def _reached_name(scheme: Scheme, targets: Sequence[float], style: FigureStyle) -> str:
    """The label, and how many seeds are in the means of the targets that some did not reach.

    Who reaches a target reaches all below it, so that targets of one number lie side by side.
    """
    seeds = len(scheme.runs)
    room = {} if style.wide else {"most": NAME_CHARACTERS}
    label = wrap(scheme.label, **room)
    found = {target: target_estimate(scheme, target, "time_s").n for target in targets}
    some = [
        f"{_target_name(list(alike))}: {n}"
        for n, alike in groupby(targets, key=found.__getitem__)
        if n < seeds
    ]
    if not some:
        return label
    reached = f"({', '.join(some)} of {counted(seeds, 'seed')})"
    return f"{label}\n{wrap(reached, **room)}"


def target_cost_table(schemes: list[Scheme]) -> Table:
    """One line per target and scheme, with how many of its seeds reached it."""
    columns = [
        TARGET,
        SCHEME,
        Column("seeds_reached", "Seeds that reached it"),
        Column("seeds", "Seeds"),
    ]
    for name, *axis in COSTS:
        scale, title = USUAL_UNITS.axis(*axis)
        columns += [
            Column(name, f"To it: {title}", significant(4, scale)),
            Column(f"{name}_ci95", "± 95 %", significant(3, scale), half_of=name),
        ]
    rows = []
    for target in target_accuracies(schemes):
        for scheme in schemes:
            found = [target_estimate(scheme, target, name) for name, _, _ in COSTS]
            numbers = np.ravel([(one.mean, one.half) for one in found]).tolist()
            rows.append((target, scheme.label, found[0].n, len(scheme.runs), *numbers))
    caption = "What it took to a target accuracy, over the seeds that reached it."
    return Table("to-target", caption, tuple(columns), tuple(rows))
