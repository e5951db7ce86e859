"""Table of what each scheme had spent when it reached each target accuracy."""

from __future__ import annotations

from typing import Any

from reports.run_data.scheme_grouping import Scheme, target_accuracies, untuned_notes
from reports.run_data.statistics.run_totals import evaluated
from reports.run_data.statistics.seed_intervals import can_be_ranked, target_estimate
from reports.styling.number_formats import MEAN_COUNT, significant
from reports.styling.table_formats import SCHEME, TARGET, Column, Table
from reports.text.number_text import interval_text

TARGET_COSTS = (
    ("rounds", "Rounds", MEAN_COUNT),
    ("time_s", "Time (s)", significant(4)),
    ("bits", "Bits (Mbit)", significant(4, 1e-6)),
    ("energy_j", "Energy (J)", significant(4)),
)


def target_table(schemes: list[Scheme]) -> Table | None:
    """Rounds, time, bits and joules to each target accuracy; None without targets or accuracies."""
    targets = target_accuracies(schemes)
    runs = [run for scheme in schemes for run in scheme.runs]
    if not targets or not any(len(evaluated(run)) for run in runs):
        return None
    columns = [
        TARGET,
        SCHEME,
        Column("reached", "Reached", number=False),
    ]
    rows = tuple(_target_row(scheme, target) for target in targets for scheme in schemes)
    reached = [
        found.n
        for target in targets
        for scheme in schemes
        if (found := target_estimate(scheme, target, "time_s")).n
    ]
    # a mean over the lucky seeds is not better than one over all
    everywhere = {row[2] for row in rows} <= {"yes", "not reached"}
    best = "min" if everywhere and can_be_ranked(schemes) else ""
    for name, title, show in TARGET_COSTS:
        columns += [
            Column(name, title, show, best=best),
            Column(f"{name}_ci95", "± 95 %", show, half_of=name),
        ]
    caption = (
        "To a target accuracy: rounds played up to the first evaluated one whose mean accuracy "
        "reaches it, and what had been spent by then (bits: up and down). With several seeds: "
        "means over those that reached it."
    )
    intervals = [interval_text(reached)] if reached else []
    caption = " ".join([caption, *intervals, *untuned_notes(schemes)])
    return Table("targets", caption, tuple(columns), rows, grouped_by=(TARGET.name,))


def _target_row(scheme: Scheme, target: float) -> tuple[Any, ...]:
    costs = [target_estimate(scheme, target, name) for name, _, _ in TARGET_COSTS]
    reached, seeds = costs[0].n, len(scheme.runs)
    if not reached:
        return target, scheme.label, "not reached", *[None] * (2 * len(costs))
    text = "yes" if reached == seeds else f"{reached} of {seeds} seeds"
    return target, scheme.label, text, *(x for cost in costs for x in (cost.mean, cost.half))
