"""Pivoted tables of a sweep: the values of one key across, series and other keys down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from edgesim.results.flat_scenario import NONE
from reports.run_data.scheme_grouping import Scheme, untuned_notes
from reports.run_data.statistics.metrics import ACCURACY, Metric, all_metrics
from reports.run_data.statistics.seed_intervals import (
    Estimate,
    can_be_ranked,
    comparable_estimate,
    estimate,
)
from reports.run_data.swept_keys import SweptKey
from reports.styling.number_formats import decimals, significant
from reports.styling.table_formats import Column, Table
from reports.text.number_text import interval_text, seed_counts

MOST_ACROSS = 10  # values beside each other
NOTHING = Estimate(math.nan, math.nan, ())
Value = float | str  # a number in the unit of its key, or "none"


def sweep_pivots(
    schemes: list[Scheme], keys: Sequence[SweptKey], along: SweptKey | None = None
) -> list[Table]:
    """One table per metric that any run has; none where nothing was swept.

    Args:
        schemes: all of the sweep.
        keys: in which they differ.
        along: the key across; None: the one with the most values that fit beside each other.
    """
    numbers = {key.key: _values(schemes, key) for key in keys}
    fitting = [key for key in keys if 2 <= len(numbers[key.key]) <= MOST_ACROSS]
    across = along or max(fitting, key=lambda key: len(numbers[key.key]), default=None)
    if across is None:
        return []
    down = [key for key in keys if key is not across]
    tables = [
        _pivot(schemes, across, numbers[across.key], down, metric)
        for metric in all_metrics(schemes)
        if any(estimate(scheme, metric.of).n for scheme in schemes)
    ]
    return [table for table in tables if table is not None]


def _values(schemes: list[Scheme], key: SweptKey) -> list[Value]:
    """The numbers of a key, smallest first, and "none" where some scheme has that."""
    found = {_value(scheme, key) for scheme in schemes if key.key in scheme.numbers}
    numbers: list[Value] = sorted(value for value in found if isinstance(value, float))
    return [*numbers, NONE] if NONE in found else numbers


def _value(scheme: Scheme, key: SweptKey) -> Value | None:
    """None where a scheme does not have the key."""
    return NONE if scheme.values.get(key.key) == NONE else key.of(scheme.values)


def _text(value: Value, unit: str = "") -> str:
    return value if isinstance(value, str) else f"{value:g} {unit}".rstrip()


def _pivot(
    schemes: list[Scheme],
    across: SweptKey,
    values: list[Value],
    down: Sequence[SweptKey],
    metric: Metric,
) -> Table | None:
    """None where no row would have two values."""
    cells: dict[tuple[Any, ...], dict[Value, Estimate]] = {}
    for scheme in schemes:
        found_at = _value(scheme, across)
        if found_at in values:
            row = (scheme.series, *(_value(scheme, key) for key in down))
            cells.setdefault(row, {})[found_at] = comparable_estimate(scheme, metric.of)
    if not any(len(found) > 1 for found in cells.values()):
        return None
    show = decimals(1, metric.scale) if metric.unit == "%" else significant(4, metric.scale)
    best = metric.best if can_be_ranked(schemes) else ""
    columns = [Column("scheme", "Scheme", number=False)]
    columns += [Column(key.column, key.title, _text) for key in down]
    for value in values:
        title = _text(value, across.unit)
        name = f"{metric.column} at {across.key} {title}"
        columns += [
            Column(name, title, show, best=best),
            Column(f"{name}, ci95", "± 95 %", show, half_of=name),
        ]
    rows = []
    for row, found in cells.items():
        estimates = [found.get(value, NOTHING) for value in values]
        rows.append((*row, *(x for each in estimates for x in (each.mean, each.half))))
    caption = (
        f"{metric.heading} by {across.name}: mean over seeds. {interval_text(seed_counts(schemes))}"
    )
    if metric is ACCURACY:
        caption = " ".join([caption, *untuned_notes(schemes)])
    # schemes are compared at equal values; of one scheme its best value is of interest
    several = len({row[0] for row in rows}) > 1
    grouped_by = tuple(key.column for key in down) if several else ()
    name = f"{metric.name}-by-{across.slug}"
    return Table(name, caption, tuple(columns), tuple(rows), grouped_by)
