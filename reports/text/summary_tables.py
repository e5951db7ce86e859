"""Tables of a report with a line per scheme: what each is, and its costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from edgesim.results.finished_run import FinishedRun
from reports.run_data.job_outcomes import any_wasted, wasted
from reports.run_data.scheme_grouping import Scheme, untuned_notes
from reports.run_data.statistics.metrics import ACCURACY, LATENCY, LOSS, RHO, own_metrics
from reports.run_data.statistics.round_latencies import latencies_s
from reports.run_data.statistics.run_totals import (
    final,
    rho_mean,
    share_of_selected,
    total,
    worst_residual,
)
from reports.run_data.statistics.seed_intervals import (
    can_be_ranked,
    comparable_estimate,
    estimate,
    seed_mean,
)
from reports.styling.number_formats import MEAN_COUNT, decimals, percent_of_rare, significant
from reports.styling.table_formats import DASH, SCHEME, Column, Table
from reports.text.number_text import interval_text, range_text, seed_counts

Cells = tuple[tuple[Column, Callable[[Scheme], Any]], ...]


def scheme_table(schemes: list[Scheme]) -> Table:
    """One line per scheme: what it is, its accuracy and metric, its pruning, its certificates.

    Of real targets there is no accuracy, and the loss stands in its place.
    """
    residual = Column("certificate_worst", "Worst residual", _residual)
    metrics = own_metrics(schemes)
    learned, meaning = _final_loss() if _have_real_targets(schemes) else _final_accuracy()
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
        (Column("rounds", "Rounds", MEAN_COUNT, printed=False), _rounds_played),
        *learned,
        *(cell for name in metrics for cell in _final_metric(name)),
        *_estimated(Column("rho_mean", f"Mean {RHO}", decimals(3)), rho_mean),
        (residual, lambda s: float(np.max([worst_residual(run) for run in s.runs]))),
    )
    caption = (
        f"Schemes. {meaning}"
        + "".join(f"{name}: mean over devices in the last evaluated round. " for name in metrics)
        + "Residual: the worst of the allocations' "
        f"certificates (relative). {interval_text(seed_counts(schemes))}"
    )
    caption = " ".join([caption, *untuned_notes(schemes)])
    return _by_scheme("schemes", caption, schemes, cells)


def _have_real_targets(schemes: list[Scheme]) -> bool:
    runs = [run for scheme in schemes for run in scheme.runs]
    accurate, lossy = (np.isfinite([each.of(run) for run in runs]) for each in (ACCURACY, LOSS))
    return bool(lossy.any() and not accurate.any())


def _final_accuracy() -> tuple[Cells, str]:
    points = decimals(1, 100)
    accuracy = Column("final_accuracy", "Final accuracy (%)", points, best="max")
    cells = (
        *_estimated(accuracy, ACCURACY.of),
        (
            Column("final_accuracy_std_devices", "Std over devices (points)", points),
            lambda s: seed_mean(s, lambda run: final(run, "accuracy_std")),
        ),
    )
    meaning = (
        "Accuracy: mean over devices of each device's own model on its own test data, and its "
        "standard deviation over devices. "
    )
    return cells, meaning


def _final_loss() -> tuple[Cells, str]:
    loss = Column("final_loss", "Final loss", significant(4), best="min")
    meaning = "Loss: mean over devices of each device's own model on its own test data. "
    return _estimated(loss, LOSS.of), meaning


def _final_metric(name: str) -> Cells:
    """A metric of the user's own; whether more or less of it is better nobody knows."""
    column = Column(f"final_{name}", f"Final {name}", significant(4))
    return _estimated(column, partial(final, column=name))


def _by_scheme(name: str, caption: str, schemes: list[Scheme], cells: Cells) -> Table:
    ranked = can_be_ranked(schemes)
    columns = tuple(column if ranked else replace(column, best="") for column, _ in cells)
    rows = tuple(tuple(value(scheme) for _, value in cells) for scheme in schemes)
    return Table(name, caption, columns, rows)


def _rounds_played(scheme: Scheme) -> float:
    """Mean over the seeds: where a time ends a run (`stop.time`), not all play as many."""
    played = float(np.mean([len(run.rounds) for run in scheme.runs]))
    return int(played) if played.is_integer() else played


def _residual(value: float) -> str:
    return f"{value:.0e}" if value else "0"


def _estimated(column: Column, value: Callable[[FinishedRun], float]) -> Cells:
    """The mean over seeds, and half of its 95 % interval where every seed has a value."""
    half = Column(f"{column.name}_ci95", "± 95 %", column.show, half_of=column.name)
    return (
        (column, lambda s: estimate(s, value).mean),
        (half, lambda s: comparable_estimate(s, value).half),
    )


def cost_table(schemes: list[Scheme]) -> Table:
    """One line per scheme: latency and its threshold, late and left-out devices, bits, joules."""
    time, bits, joules = significant(4, 1e3), significant(4, 1e-6), significant(4)
    share = percent_of_rare()
    rounds = [len(run.rounds) for scheme in schemes for run in scheme.runs]
    # a sum over fewer rounds is less for no merit
    least = "min" if len(set(rounds)) == 1 else ""
    cells: Cells = (
        (SCHEME, lambda s: s.label),
        *_estimated(Column("mean_latency_s", "Mean latency (ms)", time, best="min"), LATENCY.of),
        (
            Column("std_latency_s", "Std over rounds (ms)", _spread_ms),
            lambda s: float(latencies_s(s).std()),
        ),
        (
            Column("max_latency_s", "Longest (ms)", time),
            lambda s: float(latencies_s(s).max()),
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
        *_estimated(Column("bits_up", "Up (Mbit)", bits, best=least), _total("bits_up")),
        *_estimated(Column("bits_down", "Down (Mbit)", bits, best=least), _total("bits_down")),
        *_estimated(Column("energy_j", "Energy (J)", joules, best=least), _total("energy_j")),
        *(waste := _waste(schemes)),
    )
    caption = (
        "Latency per round, and costs. Late and infeasible: share of the selected device-rounds. "
        f"Bits and joules: sums over all devices and rounds.{_no_comparison(rounds)} "
        f"{interval_text(seed_counts(schemes))}"
    )
    if waste:
        caption += (
            " Wasted: of jobs whose update was never used: late at a deadline, failed, left with "
            "their device, cancelled, discarded, held or unfinished at the end. What a job did "
            "before it began anew counts with the job; what a server failure undid counts as used."
        )
    if _promises(schemes, share):
        caption += (
            " Promised: mean probability of being late of plans that count with fading; beside it, "
            "by how much one per cent more of it for every device changes the sum of the ratios."
        )
    return _by_scheme("costs", caption, schemes, cells)


def _no_comparison(rounds: list[int]) -> str:
    """Why sums over the runs' rounds are not compared, where these differ in number."""
    if len(set(rounds)) == 1:
        return ""
    return f" The runs have {range_text(rounds)} rounds, so that these sums rank nobody."


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
    return lambda s: seed_mean(s, lambda run: sum(wasted(run, name) for name in columns))


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
    return lambda s: seed_mean(s, lambda run: share_of_selected(run, column))


def _total(column: str) -> Callable[[FinishedRun], float]:
    return lambda run: total(run, column)
