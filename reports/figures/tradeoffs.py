"""What accuracy costs: seconds, bits and joules to a target, and who is best at which price (the Pareto front)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.figures.sweep_figures import ACCURACY, ENERGY, LATENCY, Result
from reports.run_data import measures
from reports.run_data.schemes import Scheme
from reports.styling.house_style import INK, Style, series_looks
from reports.styling.panels import from_zero, legend, two_panels, within_percent, wrap
from reports.styling.table_formats import Column, Table, digits, figures

COSTS = (
    ("time_s", 1.0, "simulated time (s)"),
    ("bits", 1e-6, "payload (Mbit)"),
    ("energy_j", 1.0, "energy (J)"),
)
TARGET_MARKERS = ("o", "s", "^", "D", "v", "P")


def front(cost: Sequence[float], gain: Sequence[float]) -> list[int]:
    """Indices of the points that no other dominates (costs at most as much, gains at least as much, one of them
    strictly), cheapest first; points with nan are left out. Costs equal to twelve digits are equal."""
    points = [
        (float(f"{c:.12g}"), g, i)
        for i, (c, g) in enumerate(zip(cost, gain, strict=True))
        if not math.isnan(c + g)
    ]
    kept: list[tuple[float, float, int]] = []
    for c, g, i in sorted(points, key=lambda point: (point[0], -point[1])):
        if not kept or g > kept[-1][1] or (c, g) == kept[-1][:2]:
            kept.append((c, g, i))
    return [i for _, _, i in kept]


def pareto(schemes: list[Scheme], style: Style) -> Figure | None:
    """Final accuracy against mean latency and against energy per round; filled: on the front."""
    if not any(measures.estimate(scheme, ACCURACY.of).n for scheme in schemes):
        return None
    look = series_looks(schemes, style.grey)
    figure, panels = two_panels(style, 3.2, 2.2)
    for panel, cost in zip(panels, (LATENCY, ENERGY), strict=True):
        x, y = (
            [measures.estimate(scheme, result.of) for scheme in schemes]
            for result in (cost, ACCURACY)
        )
        best = front([one.mean for one in x], [one.mean for one in y])
        _stairs(panel, [x[i].mean * cost.scale for i in best], [y[i].mean * 100 for i in best])
        for i, scheme in enumerate(schemes):
            mine = look[scheme.series]
            fill = mine.colour if i in best else "white"
            panel.errorbar(
                x[i].mean * cost.scale, y[i].mean * 100, xerr=_bar(x[i], cost.scale), yerr=_bar(y[i], 100.0), ls="none",
                marker=mine.marker, color=mine.colour, mfc=fill, elinewidth=0.7, ms=style.marker * 1.3,
            )  # fmt: skip
        panel.set_xlabel(cost.title)
        from_zero(panel)
        within_percent(panel)
        if not style.wide or panel is panels[0]:
            panel.set_ylabel("final accuracy (%)")
    handles = [
        Line2D(
            [],
            [],
            color=mine.colour,
            marker=mine.marker,
            ls="none",
            ms=style.marker * 1.3,
            label=wrap(name),
        )
        for name, mine in look.items()
    ]
    legend(
        figure,
        panels[0],
        style,
        [*handles, Line2D([], [], color=INK, lw=0.8, ls=":", label="Pareto front")],
    )
    return figure


def _bar(value: measures.Estimate, scale: float) -> float | None:
    return None if math.isnan(value.half) else value.half * scale


def _stairs(panel: Axes, x: list[float], y: list[float]) -> None:
    """What can be had for a price: the best accuracy so far."""
    panel.step(x, y, where="post", color=INK, lw=0.8, ls=":", zorder=1)


def pareto_data(schemes: list[Scheme]) -> Table:
    """One line per scheme: accuracy, latency, energy, each with its interval, and whether it is on the fronts."""
    found = {
        result.name: [measures.estimate(s, result.of) for s in schemes]
        for result in (ACCURACY, LATENCY, ENERGY)
    }
    gain = [one.mean for one in found["accuracy"]]
    on = {name: front([one.mean for one in found[name]], gain) for name in ("latency", "energy")}
    columns = [Column("scheme", "Scheme", number=False)]
    for result in (ACCURACY, LATENCY, ENERGY):
        columns += _with_interval(result)
    columns += [Column(f"front_{name}", f"On the front ({name})", number=False) for name in on]
    rows = []
    for i, scheme in enumerate(schemes):
        numbers = [number for each in found.values() for number in (each[i].mean, each[i].half)]
        rows.append(
            (scheme.label, *numbers, *("yes" if i in best else "no" for best in on.values()))
        )
    return Table("pareto", "Accuracy and what it costs per round.", tuple(columns), tuple(rows))


def _with_interval(result: Result) -> list[Column]:
    title = f"{result.title[0].upper()}{result.title[1:]}"
    show = digits(1, 100) if result is ACCURACY else figures(4, result.scale)
    return [Column(result.column, title, show), Column(f"{result.column}_ci95", "± 95 %", show)]


def targets_of(schemes: list[Scheme]) -> list[float]:
    """The target accuracies that at least one run reached."""
    known = sorted(map(float, schemes[0].first.summary["targets"]))
    return [
        t
        for t in known
        if any(measures.reached(run, t) for scheme in schemes for run in scheme.runs)
    ]


def to_target(schemes: list[Scheme], style: Style) -> Figure | None:
    """Seconds, bits and joules until each target accuracy was first reached: mean and 95 % interval over seeds."""
    targets = targets_of(schemes)
    if not targets:
        return None
    look, count = series_looks(schemes, style.grey), len(schemes)
    height = 0.26 * count + 0.75
    size = (style.width_in, height + 0.2 if style.wide else 3 * height)
    figure = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(wspace=0.05)
    panels = figure.subplots(1, 3, sharey=True) if style.wide else figure.subplots(3, 1)
    for panel, (name, scale, title) in zip(panels, COSTS, strict=True):
        for i, scheme in enumerate(schemes):
            for j, target in enumerate(targets):
                cost = cost_to(scheme, target, name)
                y = i + (j - (len(targets) - 1) / 2) * 0.5 / len(targets)
                kind = {
                    "color": look[scheme.series].colour,
                    "marker": TARGET_MARKERS[j % len(TARGET_MARKERS)],
                }
                if cost.n:
                    panel.errorbar(
                        cost.mean * scale,
                        y,
                        xerr=_bar(cost, scale),
                        ls="none",
                        elinewidth=0.8,
                        **kind,
                    )
        panel.set_xlabel(title)
        panel.set_ylim(count - 0.5, -0.5)
        from_zero(panel)
        panel.set_yticks(range(count), [wrap(scheme.label) for scheme in schemes])
        panel.grid(axis="y", visible=False)
    marks = [
        Line2D(
            [],
            [],
            color=INK,
            marker=TARGET_MARKERS[j % len(TARGET_MARKERS)],
            ls="none",
            label=f"{target:.0%}",
        )
        for j, target in enumerate(targets)
    ]
    figure.legend(
        handles=marks, loc="outside upper left", ncols=6, title="target accuracy", alignment="left"
    )
    return figure


def cost_to(scheme: Scheme, target: float, name: str) -> measures.Estimate:
    """time_s, bits or energy_j to a target accuracy, over the seeds that reached it."""

    def cost(run) -> float:
        hit = measures.reached(run, target)
        return math.nan if hit is None else float(getattr(hit, name))

    return measures.estimate(scheme, cost)


def to_target_data(schemes: list[Scheme]) -> Table:
    """One line per target and scheme, with how many of its seeds reached it."""
    columns = [
        Column("target_accuracy", "Target (%)", digits(0, 100)),
        Column("scheme", "Scheme", number=False),
    ]
    columns += [Column("seeds_reached", "Seeds that reached it"), Column("seeds", "Seeds")]
    for name, scale, title in COSTS:
        columns += [Column(name, f"To it: {title}", figures(4, scale))]
        columns += [Column(f"{name}_ci95", "± 95 %", figures(3, scale))]
    rows = []
    for target in sorted(map(float, schemes[0].first.summary["targets"])):
        for scheme in schemes:
            found = [cost_to(scheme, target, name) for name, _, _ in COSTS]
            numbers = np.ravel([(one.mean, one.half) for one in found]).tolist()
            rows.append((target, scheme.label, found[0].n, len(scheme.runs), *numbers))
    caption = "What it took to a target accuracy, over the seeds that reached it."
    return Table("to-target", caption, tuple(columns), tuple(rows))
