"""Tables of a report: schemes, costs and target accuracies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from edgesim.results.finished_run import FinishedRun
from reports.run_data import run_statistics as stats
from reports.run_data.job_outcomes import any_wasted, wasted
from reports.run_data.metrics import ACCURACY, LATENCY, RHO, own_metrics
from reports.run_data.scheme_grouping import Scheme, target_accuracies, untuned_notes
from reports.styling.table_formats import DASH, SCHEME, TARGET, Column, Table, decimals, significant
from reports.text.number_text import interval_text, seed_counts

TARGET_COSTS = (
    ("rounds", "Rounds", significant(4)),
    ("time_s", "Time (s)", significant(4)),
    ("bits", "Bits (Mbit)", significant(4, 1e-6)),
    ("energy_j", "Energy (J)", significant(4)),
)
Cells = tuple[tuple[Column, Callable[[Scheme], Any]], ...]


def scheme_table(schemes: list[Scheme]) -> Table:
    """One line per scheme: what it is, its accuracy and metric, its pruning, its certificates."""
    points, residual = decimals(1, 100), Column("certificate_worst", "Worst residual", _residual)
    metrics = own_metrics(schemes)
    accuracy = Column("final_accuracy", "Final accuracy (%)", points, best="max")
    cells: Cells = (
        (SCHEME, lambda s: s.label),
        (
            Column("method", "Method", number=False, printed=False),
            lambda s: str(s.first.summary["method"]),
        ),
        (
            Column("solver", "Solver", number=False, printed=False),
            lambda s: str(s.first.summary["solver"] or DASH),
        ),
        (Column("seeds", "Seeds", printed=False), lambda s: len(s.runs)),
        (Column("rounds", "Rounds", _count, printed=False), _rounds_played),
        *_estimated(accuracy, ACCURACY.of),
        (
            Column("final_accuracy_std_devices", "Std over devices (points)", points),
            lambda s: stats.seed_mean(s, lambda run: stats.final(run, "accuracy_std")),
        ),
        *(cell for name in metrics for cell in _final_metric(name)),
        *_estimated(Column("rho_mean", f"Mean {RHO}", decimals(3)), stats.rho_mean),
        (residual, lambda s: float(np.max([stats.worst_residual(run) for run in s.runs]))),
    )
    caption = (
        "Schemes. Accuracy: mean over devices of each device's own model on its own test data, "
        "and its standard deviation over devices. "
        + "".join(f"{name}: mean over devices in the last evaluated round. " for name in metrics)
        + "Residual: the worst of the allocations' "
        f"certificates (relative). {interval_text(seed_counts(schemes))}"
    )
    caption = " ".join([caption, *untuned_notes(schemes)])
    return _by_scheme("schemes", caption, schemes, cells)


def _final_metric(name: str) -> Cells:
    """A metric of the user's own; whether more or less of it is better nobody knows."""
    column = Column(f"final_{name}", f"Final {name}", significant(4))
    return _estimated(column, partial(stats.final, column=name))


def _by_scheme(name: str, caption: str, schemes: list[Scheme], cells: Cells) -> Table:
    ranked = stats.can_be_ranked(schemes)
    columns = tuple(column if ranked else replace(column, best="") for column, _ in cells)
    rows = tuple(tuple(value(scheme) for _, value in cells) for scheme in schemes)
    return Table(name, caption, columns, rows)


def _rounds_played(scheme: Scheme) -> float:
    """Mean over the seeds: where a time ends a run (`stop.time`), not all play as many."""
    played = float(np.mean([len(run.rounds) for run in scheme.runs]))
    return int(played) if played.is_integer() else played


def _count(value: float) -> str:
    return f"{value:.{1 if value % 1 else 0}f}"


def _residual(value: float) -> str:
    return f"{value:.0e}" if value else "0"


def _estimated(column: Column, value: Callable[[FinishedRun], float]) -> Cells:
    """The mean over seeds, and half of its 95 % interval."""
    half = Column(f"{column.name}_ci95", "± 95 %", column.show, half_of=column.name)
    return (
        (column, lambda s: stats.estimate(s, value).mean),
        (half, lambda s: stats.estimate(s, value).half),
    )


def cost_table(schemes: list[Scheme]) -> Table:
    """One line per scheme: latency and its threshold, late and left-out devices, bits, joules."""
    time, bits, joules = significant(4, 1e3), significant(4, 1e-6), significant(4)
    share = decimals(1, 100)
    cells: Cells = (
        (SCHEME, lambda s: s.label),
        *_estimated(Column("mean_latency_s", "Mean latency (ms)", time, best="min"), LATENCY.of),
        (
            Column("std_latency_s", "Std over rounds (ms)", _spread_ms),
            lambda s: float(stats.latencies_s(s).std()),
        ),
        (
            Column("max_latency_s", "Longest (ms)", time),
            lambda s: float(stats.latencies_s(s).max()),
        ),
        (
            Column("latency_threshold_s", "Threshold (ms)", time, printed=False),
            lambda s: s.threshold_s,
        ),
        (Column("late_share", "Late (%)", share), _mean_share("late")),
        *_promises(schemes, share),
        (
            Column("infeasible_share", "Infeasible (%)", share, printed=False),
            _mean_share("infeasible"),
        ),
        *_estimated(Column("bits_up", "Up (Mbit)", bits, best="min"), _total("bits_up")),
        *_estimated(Column("bits_down", "Down (Mbit)", bits, best="min"), _total("bits_down")),
        *_estimated(Column("energy_j", "Energy (J)", joules, best="min"), _total("energy_j")),
        *(waste := _waste(schemes)),
    )
    caption = (
        "Latency per round, and costs. Late and infeasible: share of the selected device-rounds. "
        "Bits and joules: sums over all devices and rounds. "
        f"{interval_text(seed_counts(schemes))}"
    )
    if waste:
        caption += (
            " Wasted: of work whose update was never used: late at a deadline, failed, left with "
            "its device, cancelled, discarded, held or unfinished at the end."
        )
    if _promises(schemes, share):
        caption += (
            " Promised: mean probability of being late of plans that count with fading; beside it, "
            "by how much one per cent more of it for every device changes the sum of the ratios."
        )
    return _by_scheme("costs", caption, schemes, cells)


def _waste(schemes: list[Scheme]) -> Cells:
    """Bits and joules of work that was never used; nothing where all of it was."""
    if not any_wasted(schemes):
        return ()
    bits = Column("wasted_bits", "Wasted bits (Mbit)", significant(4, 1e-6), printed=False)
    joules = Column("wasted_energy_j", "Wasted energy (J)", significant(4))
    return (
        (bits, _mean_waste("bits_up", "bits_down")),
        (joules, _mean_waste("energy_j")),
    )


def _mean_waste(*columns: str) -> Callable[[Scheme], float]:
    return lambda s: stats.seed_mean(s, lambda run: sum(wasted(run, name) for name in columns))


def _promises(schemes: list[Scheme], share: Callable[[float], str]) -> Cells:
    """Late shares that plans promised, and their price; nothing where no plan promised any."""
    promised, price = "promised_late_share", "pruning_per_late_share"
    if not any(promised in run.summary for scheme in schemes for run in scheme.runs):
        return ()
    return (
        (Column(promised, "Promised late (%)", share), _mean_promise(promised, 1.0)),
        (
            Column("pruning_per_late_percent", f"Σ{RHO} per % late", significant(3)),
            _mean_promise(price, 0.01),
        ),
    )


def _mean_promise(key: str, unit: float) -> Callable[[Scheme], float | None]:
    def mean(scheme: Scheme) -> float | None:
        found = [run.summary.get(key) for run in scheme.runs]
        known = [unit * float(value) for value in found if value is not None]
        return float(np.mean(known)) if known else None

    return mean


def _spread_ms(seconds: float) -> str:
    """A standard deviation in ms; less than a nanosecond is rounding, not spread."""
    return significant(2, 1e3)(seconds) if seconds >= 1e-9 else "0"


def _mean_share(column: str) -> Callable[[Scheme], float]:
    return lambda s: stats.seed_mean(s, lambda run: stats.share_of_selected(run, column))


def _total(column: str) -> Callable[[FinishedRun], float]:
    return lambda run: stats.total(run, column)


def target_table(schemes: list[Scheme]) -> Table | None:
    """Rounds, time, bits and joules to each target accuracy; None without targets or accuracies."""
    targets = target_accuracies(schemes)
    runs = [run for scheme in schemes for run in scheme.runs]
    if not targets or not any(len(stats.evaluated(run)) for run in runs):
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
        if (found := stats.target_estimate(scheme, target, "time_s")).n
    ]
    # a mean over the lucky seeds is not better than one over all
    everywhere = {row[2] for row in rows} <= {"yes", "not reached"}
    best = "min" if everywhere and stats.can_be_ranked(schemes) else ""
    for name, title, show in TARGET_COSTS:
        columns += [
            Column(name, title, show, best=best),
            Column(f"{name}_ci95", "± 95 %", show, half_of=name),
        ]
    caption = (
        "To a target accuracy: rounds played up to the first evaluated one whose mean accuracy "
        "reaches it, and what had been spent by then (bits: up and down). With several seeds: "
        f"means over those that reached it. {interval_text(reached or seed_counts(schemes))}"
    )
    caption = " ".join([caption, *untuned_notes(schemes)])
    return Table("targets", caption, tuple(columns), rows, grouped_by=TARGET.name)


def _target_row(scheme: Scheme, target: float) -> tuple[Any, ...]:
    costs = [stats.target_estimate(scheme, target, name) for name, _, _ in TARGET_COSTS]
    reached, seeds = costs[0].n, len(scheme.runs)
    if not reached:
        return target, scheme.label, "not reached", *[None] * (2 * len(costs))
    text = "yes" if reached == seeds else f"{reached} of {seeds} seeds"
    return target, scheme.label, text, *(x for cost in costs for x in (cost.mean, cost.half))
