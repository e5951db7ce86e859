"""Figures along the keys of a sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from reports.catalog.report_figure import (
    SWEEP,
    ReportFigure,
    lacking_text,
    shown_text,
    spread_text,
)
from reports.figures import sweep_curves, sweep_maps
from reports.report_options import ReportOptions
from reports.run_data.scheme_grouping import Scheme
from reports.run_data.scheme_selection import (
    UnfitOptionError,
    axis_along,
    find_key,
    word_keys,
)
from reports.run_data.statistics.metrics import ACCURACY, LATENCY, Metric, all_metrics
from reports.run_data.swept_keys import SweptKey, numeric_differences

METRIC_TITLES = {
    "accuracy": "Final accuracy",
    "loss": "Final loss",
    "rho": "Pruning ratio",
    "latency": "Latency",
    "energy": "Energy",
}


def sweep_figures(
    schemes: list[Scheme], keys: Sequence[SweptKey], options: ReportOptions
) -> tuple[list[ReportFigure], list[str]]:
    """The figures along each swept key and over two, and why there is none along a key.

    Raises:
        UnfitOptionError: the options name a key that was not swept, or one key as both.
    """
    figures, notes, metrics = [], [], all_metrics(schemes)
    axes: Sequence[SweptKey] = keys
    if options.along:
        along, keys = axis_along(schemes, keys, options.along)
        axes = [along]
    either = [*keys, *word_keys(schemes)]
    family = find_key("family", options.family, either) if options.family else None
    if options.along and family is axes[0]:
        raise UnfitOptionError("family", f"names {family.key}, which is along; write another key.")
    for key in axes:
        for metric in metrics:
            lines, chosen = sweep_curves.sweep_lines(schemes, keys, key, metric, family)
            if not any(line.can_be_drawn for line in lines):
                continue
            figures.append(
                ReportFigure(
                    SWEEP,
                    f"{metric.name}-by-{key.slug}",
                    f"{_metric_title(metric)} against {key.name}",
                    f"Mean over seeds{_spread_text(lines)}.{lacking_text(schemes, metric)}"
                    f"{_equal_text(lines, options.y_scale == 'log')}{shown_text(chosen)}",
                    partial(sweep_curves.sweep_curves, schemes, lines, key, metric),
                    partial(sweep_curves.sweep_table, schemes, keys, metric),
                )
            )
        if not any(figure.name.endswith(f"-by-{key.slug}") for figure in figures):
            notes.append(_no_axis(schemes, key))
    for metric in (ACCURACY, LATENCY):
        maps = sweep_maps.sweep_maps(schemes, keys, metric)
        if maps:
            more = len(maps) - sweep_maps.MOST_MAPS
            without = sweep_maps.left_out(schemes, keys)
            rest = f" {more} further series are in the data." if more > 0 else ""
            figures.append(
                ReportFigure(
                    SWEEP,
                    f"{metric.name}-map",
                    f"{_metric_title(metric)} over {keys[0].name} and {keys[1].name}",
                    "Means over seeds; a blank cell has no value of a finished run."
                    f"{lacking_text(schemes, metric)}{rest}{without}",
                    partial(sweep_maps.sweep_map_figure, schemes, keys, metric),
                    partial(sweep_curves.sweep_table, schemes, keys, metric),
                )
            )
    return figures, notes


def _spread_text(lines: Sequence[sweep_curves.SweepLine]) -> str:
    """What stands at the points that have an interval or dots."""
    shown = [y for line in lines for y in line.y if y.dots or not math.isnan(y.half)]
    return spread_text({y.n for y in shown})


def _equal_text(lines: Sequence[sweep_curves.SweepLine], log: bool) -> str:
    """Which lines cannot be seen behind others."""
    groups = [" = ".join(labels) for labels in sweep_curves.equal_lines(lines, log)]
    return f" Equal lines hide one another: {'; '.join(groups)}." if groups else ""


def _no_axis(schemes: list[Scheme], key: SweptKey) -> str:
    """Why there is no figure along a key: runs that differ in it differ in others, too."""
    others = numeric_differences([scheme.values for scheme in schemes if key.key in scheme.numbers])
    names = ", ".join(other for other in others if other != key.key)
    return (
        f"No figure against {key.key}: no two runs of a scheme differ in it alone. They differ in "
        f"{names} too; the option along={key.key} draws them all the same, with the keys named."
    )


def _metric_title(metric: Metric) -> str:
    return METRIC_TITLES.get(metric.name, metric.heading)
