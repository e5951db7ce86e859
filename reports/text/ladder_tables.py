"""How far the conclusion moves over the rungs of `network.fidelity`: two tables."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from reports.run_data.ladder import (
    ACCURACY_THEN,
    Ladder,
    Quantity,
    accuracy_at,
    before,
    common_time_s,
    ladder_of,
    quantities,
    reversed_pairs,
)
from reports.run_data.scheme_grouping import Scheme, untuned_notes
from reports.run_data.statistics.metrics import ENERGY, LATENCY, RHO
from reports.run_data.statistics.run_totals import rho_mean, share_of_selected
from reports.run_data.statistics.seed_intervals import comparable_estimate, seed_mean
from reports.styling.number_formats import decimals, percent_of_rare, significant
from reports.styling.table_formats import Column, Table
from reports.text.number_text import interval_text, seed_counts

POINTS = decimals(1, 100)


def ladder_tables(schemes: list[Scheme]) -> list[Table]:
    """One line per rung and scheme, and one per quantity; none where there is one rung."""
    ladder = ladder_of(schemes)
    return [_results(ladder), _orders(ladder)] if ladder else []


def _estimated(name: str, title: str, show: Any) -> tuple[Column, Column]:
    return Column(name, title, show), Column(f"{name}_ci95", "± 95 %", show, half_of=name)


def _results(ladder: Ladder) -> Table:
    columns = (
        Column("rung", "Rung", number=False),
        Column("scheme", "Scheme", number=False),
        *_estimated("mean_latency_s", "Mean latency (ms)", significant(4, 1e3)),
        Column("promised_late_share", "Late, promised (%)", percent_of_rare()),
        *_estimated("late_share", "Late (%)", percent_of_rare()),
        *_estimated("rho_mean", f"Mean {RHO}", decimals(3)),
        *_estimated("energy_per_round_j", "Energy per round (J)", significant(4)),
        Column("time_s", "Time (s)", significant(3)),
        *_estimated("accuracy_at_time", "Accuracy then (%)", POINTS),
    )
    rows = [
        (rung, name, *_row(scheme, common_time_s(list(found.values()))))
        for rung, found in ladder.items()
        for name, scheme in found.items()
    ]
    caption = (
        "How far does the conclusion move? The schemes on the rungs of network.fidelity. Late: "
        "share of the selected device-rounds, and what the plans promised; time: the end of the "
        "shortest run of the rung, and the accuracy that every scheme has by then. "
        f"{interval_text([n for found in ladder.values() for n in seed_counts(found.values())])}"
    )
    caption = " ".join([caption, *_untuned_notes(ladder)])
    return Table("ladder", caption, columns, tuple(rows), grouped_by=("rung",))


def _row(scheme: Scheme, time_s: float) -> tuple[Any, ...]:
    promised = [run.summary.get("promised_late_share") for run in scheme.runs]
    known = [float(value) for value in promised if value is not None]
    late, latency, rho, energy, accuracy = (
        (found.mean, found.half)
        for found in (
            comparable_estimate(scheme, partial(share_of_selected, column="late")),
            comparable_estimate(scheme, LATENCY.of),
            comparable_estimate(scheme, rho_mean),
            comparable_estimate(scheme, ENERGY.of),
            comparable_estimate(scheme, partial(accuracy_at, time_s=time_s)),
        )
    )
    promise = float(np.mean(known)) if known else None
    return *latency, promise, *late, *rho, *energy, time_s, *accuracy


def _orders(ladder: Ladder) -> Table:
    """One line per quantity: the order on the first rung, and what the others turn round.

    Schemes that are not tuned are not put in an order by accuracy.
    """
    first, *others = ladder
    notes = _untuned_notes(ladder)
    by = {rung: quantities(common_time_s(list(found.values()))) for rung, found in ladder.items()}
    columns = [
        Column("quantity", "Compared by", number=False),
        Column(f"order_{first}", f"Order on {first}, best first", number=False),
        *(Column(f"change_{rung}", f"Turned round on {rung}", number=False) for rung in others),
    ]
    rows = []
    for i, quantity in enumerate(by[first]):
        if notes and quantity.name == ACCURACY_THEN:
            continue
        of_rung = {rung: found[i] for rung, found in by.items()}
        changes = (reversed_pairs(ladder, rung, of_rung) for rung in others)
        told = ("; ".join(found) or "nothing" for found in changes)
        rows.append((quantity.name, _order(ladder[first], quantity), *told))
    caption = (
        "Does the order of the schemes change? Pairs that one rung decides one way and another "
        "rung the other way: with three common seeds or more where the 95 % interval of the "
        "paired difference (Student t) leaves out zero, with fewer by the mean."
    )
    caption = " ".join([caption, *notes])
    return Table("ladder-order", caption, tuple(columns), tuple(rows))


def _untuned_notes(ladder: Ladder) -> list[str]:
    return untuned_notes([scheme for found in ladder.values() for scheme in found.values()])


def _order(found: dict[str, Scheme], by: Quantity) -> str:
    """Names from the best on; an equals sign between neighbours that the seeds do not tell apart.

    Schemes without the quantity are left out.
    """
    value = {name: seed_mean(scheme, by.of) for name, scheme in found.items()}
    known = [name for name in found if not np.isnan(value[name])]
    names = sorted(known, key=lambda name: value[name] if by.less else -value[name])
    text = names[0] if names else ""
    sign = "<" if by.less else ">"
    for one, other in pairwise(names):
        text += f" {sign if before(found[one], found[other], by) else '='} {other}"
    return text
