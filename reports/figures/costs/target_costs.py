"""Cost to reach a target accuracy: seconds, bits and joules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgesim.errors import counted
from reports.axis_units import USUAL_UNITS
from reports.run_data.scheme_grouping import Scheme, target_accuracies
from reports.run_data.statistics.seed_intervals import target_estimate
from reports.styling.axes_and_legends import (
    draw_seeds,
    error_bar,
    from_zero,
    legend,
    panels_side_by_side,
    set_scales,
    wrap,
)
from reports.styling.colours_and_markers import MARKERS, series_styles
from reports.styling.figure_style import INK, FigureStyle
from reports.styling.number_formats import significant
from reports.styling.table_formats import SCHEME, TARGET, Column, Table

COSTS = (
    ("time_s", "simulated time", "time"),
    ("bits", "payload", "bits"),
    ("energy_j", "energy", "energy"),
)
NAME_CHARACTERS = 22  # of a line beside a panel that fills a column


def reached_targets(schemes: list[Scheme]) -> list[float]:
    """The target accuracies that any run reached."""
    known = target_accuracies(schemes)
    return [t for t in known if any(target_estimate(s, t, "time_s").n for s in schemes)]


def target_costs(schemes: list[Scheme], style: FigureStyle) -> Figure:
    """Seconds, bits and joules to each target accuracy: mean and 95 % interval over seeds."""
    targets = reached_targets(schemes)
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
                    panel.errorbar(cost.mean * scale, y, xerr=error_bar(cost.half, scale), **kind)
                    dots = np.array(cost.dots) * scale
                    draw_seeds(panel, dots, np.full(len(dots), y), colour)
        panel.set_xlabel(title)
        panel.set_ylim(count - 0.5, -0.5)
        set_scales(panel, replace(style, y_scale="linear"))  # schemes stand along y
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
