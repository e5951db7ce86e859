"""A metric against a swept key: one line per series and value of the other keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from matplotlib.figure import Figure

from edgesim.results.flat_scenario import NONE
from edgesim.scenario.units import parse
from reports.run_data.scheme_grouping import MOST_SERIES, Scheme, at_middle_value
from reports.run_data.statistics.metrics import ACCURACY, LATENCY, PRUNING, Metric
from reports.run_data.statistics.round_latencies import thresholds_s
from reports.run_data.statistics.seed_intervals import Estimate, comparable_estimate
from reports.run_data.swept_keys import SweptKey
from reports.styling.axes_and_legends import (
    ROUNDING,
    draw_seeds,
    legend,
    one_panel,
    set_scales,
    ticks_at_values,
    widen_equal,
    within_percent,
    wrap,
)
from reports.styling.colours_and_markers import (
    DASHES,
    GREY_DASHES,
    MARKERS,
    SeriesStyle,
    series_styles,
)
from reports.styling.figure_style import THRESHOLD_LINE, FigureStyle
from reports.styling.number_formats import decimals, significant
from reports.styling.table_formats import Column, Table

LATENCY_KEY = "budget.latency_threshold"
TOLD_APART = 0.005  # of the span of all values: about half the width of a line


@dataclass(frozen=True)
class SweepLine:
    """A series along a key: x in the key's unit, and an estimate over seeds at each."""

    label: str
    series: str
    x: list[float]
    y: list[Estimate]

    @property
    def can_be_drawn(self) -> bool:
        """Has it two points or more, and any finite one?"""
        return len(self.x) > 1 and any(math.isfinite(each.mean) for each in self.y)

    def heights(self, log: bool) -> np.ndarray:
        """Its means as an axis places them."""
        means = np.array([y.mean for y in self.y])
        with np.errstate(divide="ignore", invalid="ignore"):  # what such an axis cannot show
            return np.log(means) if log else means


def sweep_lines(
    schemes: list[Scheme],
    keys: Sequence[SweptKey],
    along: SweptKey,
    metric: Metric,
    family: SweptKey | None = None,
) -> tuple[list[SweepLine], str]:
    """A line for every series and every value of the other keys.

    Where these are too many, one key after the other is held at its middle value, of those at which
    there are lines. The runs of a line differ in no other key of numbers.

    Args:
        schemes: all of the sweep.
        keys: in which they differ.
        along: the key of the axis.
        metric: what the lines show.
        family: the key whose values are lines of their own; all others are held. None: see above.

    Returns:
        The lines, and what was chosen ("" where all are there).
    """
    others = [key for key in keys if key is not along]
    here = [scheme for scheme in schemes if along.of(scheme.values) is not None]
    chosen = []
    for key in list(others):
        middle, text = at_middle_value(here, key, _on_lines(here, others, along))
        lines = len({series_label(scheme, others) for scheme in here})
        if text and key is not family and (family is not None or lines > MOST_SERIES):
            here = middle
            chosen += text
            others.remove(key)
    groups: dict[str, list[Scheme]] = {}
    for scheme in here:
        groups.setdefault(series_label(scheme, others), []).append(scheme)
    lines_found = [_line(label, group, along, metric) for label, group in groups.items()]
    lines_found = [line for line in lines_found if line.x]
    if len(lines_found) > MOST_SERIES:
        chosen.append(f"the first {MOST_SERIES} of {len(lines_found)} lines")
    return lines_found[:MOST_SERIES], ", ".join(chosen)


def _on_lines(schemes: Sequence[Scheme], keys: Sequence[SweptKey], along: SweptKey) -> list[Scheme]:
    """The schemes with another one that differs in nothing but the key of the axis."""
    lines: dict[str, dict[float | None, Scheme]] = {}
    for scheme in schemes:
        lines.setdefault(series_label(scheme, keys), {})[along.of(scheme.values)] = scheme
    return [scheme for line in lines.values() if len(line) > 1 for scheme in line.values()]


def series_label(scheme: Scheme, keys: Sequence[SweptKey]) -> str:
    """The series, with the scheme's values of some keys."""
    parts = [_value_text(scheme, key) for key in keys if key.key in scheme.numbers]
    return ", ".join([scheme.series, *filter(None, parts)])


def _value_text(scheme: Scheme, key: SweptKey) -> str:
    """A scheme's value of a key with its name; empty where it has none."""
    number = key.of(scheme.values)
    if number is not None:
        return key.text(number)
    return f"{key.name} {NONE}" if scheme.values.get(key.key) == NONE else ""


def _line(label: str, group: list[Scheme], along: SweptKey, metric: Metric) -> SweepLine:
    points = []
    for scheme in group:
        x, y = along.of(scheme.values), comparable_estimate(scheme, metric.of)
        if x is not None and y.n:
            points.append((x, y))
    points.sort(key=lambda point: point[0])
    return SweepLine(label, group[0].series, [x for x, _ in points], [y for _, y in points])


def equal_lines(lines: Sequence[SweepLine], log: bool = False) -> list[list[str]]:
    """Labels of lines that lie on one another, in groups; the last of each hides the others.

    Args:
        lines: of one figure.
        log: is its y axis logarithmic?
    """
    heights = [line.heights(log) for line in lines]
    drawn = [np.isfinite(each) for each in heights]
    shown = np.concatenate([each[k] for each, k in zip(heights, drawn, strict=True)] or [[]])
    span = float(np.ptp(shown)) if len(shown) else 0.0
    rounding = ROUNDING * (1.0 if log else float(np.abs(shown).max(initial=0.0)))
    apart = span if span <= rounding else TOLD_APART * span
    groups: list[list[int]] = []
    for i, line in enumerate(lines):
        for group in groups if drawn[i].any() else ():
            first = group[0]
            if line.x == lines[first].x and np.allclose(heights[i], heights[first], 0.0, apart):
                group.append(i)
                break
        else:
            groups.append([i])
    return [[lines[i].label for i in group] for group in groups if len(group) > 1]


def sweep_curves(
    schemes: list[Scheme], lines: list[SweepLine], along: SweptKey, metric: Metric,
    style: FigureStyle,
) -> Figure:  # fmt: skip
    """Mean and 95 % interval over seeds; with the threshold where the latency is along it."""
    figure, panel = one_panel(style, 3.2, 2.6)
    scale, title = metric.axis(style.units)
    for i, (line, look) in enumerate(zip(lines, _styles(schemes, lines, style), strict=True)):
        mean = np.array([y.mean for y in line.y]) * scale
        half = np.nan_to_num([y.half for y in line.y]) * scale
        # the earlier ones look out from behind
        kind = look.line | {
            "ms": style.marker_pt * (1.6 - 0.6 * i / len(lines)),
            "label": wrap(line.label),
        }
        interval = half if half.any() else None
        panel.errorbar(line.x, mean, interval, capsize=2.0, elinewidth=0.8, **kind)
        for x, y in zip(line.x, line.y, strict=True):
            dots = np.array(y.dots) * scale
            draw_seeds(panel, np.full(len(dots), x), dots, look.colour)
    values = sorted({value for line in lines for value in line.x})
    wide = values[0] > 0 and values[-1] >= 20 * values[0]
    set_scales(panel, style, x="log" if wide else "linear")
    ticks_at_values(panel, values)
    if along.key == LATENCY_KEY and metric is LATENCY and thresholds_s(schemes):
        # many points, as on a logarithmic axis it is no straight line
        limits = np.geomspace(values[0], values[-1], 100) if values[0] > 0 else np.array(values)
        limits_s = limits * parse(f"1 {along.unit}", "s")
        panel.plot(limits, limits_s * scale, **THRESHOLD_LINE, label="threshold", zorder=1)
    panel.set(xlabel=along.title, ylabel=title)
    panel.margins(x=0.04)
    widen_equal(panel.yaxis)
    if metric in (ACCURACY, PRUNING):
        within_percent(panel, scale)
    legend(figure, panel, style)
    return figure


def _styles(schemes: list[Scheme], lines: list[SweepLine], style: FigureStyle) -> list[SeriesStyle]:
    """Of each line: colour and marker of its series, dashes of its own; in grey its own marker."""
    by_series = series_styles(schemes)
    spare = {line.series: cycle(DASHES) for line in lines}
    styles = []
    for i, line in enumerate(lines):
        look = by_series[line.series]
        own = SeriesStyle(look.colour, MARKERS[i % len(MARKERS)], GREY_DASHES[i % len(GREY_DASHES)])
        shared = SeriesStyle(look.colour, look.marker, next(spare[line.series]))
        styles.append(own if style.grey else shared)
    return styles


def sweep_table(schemes: list[Scheme], keys: Sequence[SweptKey], metric: Metric) -> Table:
    """One line per scheme: its swept values, the mean over seeds with its 95 % interval, and n."""
    show = decimals(2, metric.scale) if metric.unit == "%" else significant(4, metric.scale)
    columns = (
        Column("scheme", "Scheme", number=False),
        *(Column(key.column, key.title, lambda value: f"{value:g}") for key in keys),
        Column(metric.column, metric.axis()[1], show),
        Column(f"{metric.column}_ci95", "± 95 %", show, half_of=metric.column),
        Column("seeds", "Seeds"),
    )
    rows = []
    for scheme in schemes:
        found = comparable_estimate(scheme, metric.of)
        values = [key.of(scheme.values) for key in keys]
        rows.append((scheme.series, *values, found.mean, found.half, found.n))
    by = " and ".join(key.name for key in keys)
    caption = (
        f"{metric.heading} by {by}: mean over seeds with its 95 % interval (Student t, three seeds "
        "or more, all of which have a value)."
    )
    return Table(metric.name, caption, columns, tuple(rows))
