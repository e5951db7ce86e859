"""Device rounds from spans, rounds from device rounds and scores, summary.json from rounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from edgesim.errors import counted
from edgesim.records.rows_from_spans import COUNTED, ENDINGS, WAITING, device_row
from edgesim.records.span import Span
from edgesim.records.summary import promises, summarise
from edgesim.verification.check_result import (
    FAILED,
    PASSED,
    CheckResult,
    first_difference,
)
from fl.contracts import Grant, Outcome

if TYPE_CHECKING:
    import pandas as pd

Tables = dict[str, "pd.DataFrame"]
DEVICE_ROUNDS, ROUNDS, SUMMARY = "device rounds", "rounds", "summary"
FROM_SPANS = (  # of device_rounds; spans have no FLOPs
    *("rate_bps", "download_s", "compute_s", "upload_s", "finish_s", "dispatched_s"),
    *("bits_up", "bits_down", "cycles", "energy_j"),
)
STATUSES = ("late", "failed", "infeasible", *ENDINGS)


def check_device_rounds(tables: Tables) -> CheckResult:
    """Bits, times, cycles and joules of every device in every round are those of its spans."""
    rows, spans = tables["device_rounds"], spans_by_device(tables["spans"])
    derived = [_derived_row(row, spans.get(_owner(row), [])) for row in rows.to_dict("records")]
    for column in (name for name in FROM_SPANS if name in rows):
        at = first_difference(rows[column], [row[column] for row in derived])
        if at is not None:
            place = f"round {rows['round'][at]}, device {rows['device'][at]}"
            found = f"{rows[column][at]}, and its spans give {derived[at][column]}"
            return CheckResult(DEVICE_ROUNDS, FAILED, f"{place}: {column} is {found}")
    return CheckResult(
        DEVICE_ROUNDS,
        PASSED,
        f"{counted(len(rows), 'row')} from {counted(len(tables['spans']), 'span')}",
    )


def _owner(row: dict[str, Any]) -> tuple[int, int, int]:
    """Whose spans: of a device in a round, with tiers of its edge; or of a numbered job."""
    if "job" in row:
        return -1, row["job"], 0
    return row["round"], row["device"], row.get("edge_round", 0)


def spans_by_device(table: pd.DataFrame) -> dict[tuple[int, int, int], list[Span]]:
    """(round, device, round of its edge), or (-1, job, 0) -> its spans, in order."""
    found: dict[tuple[int, int, int], list[Span]] = {}
    for row in table.to_dict("records"):
        g, k = row["round"], row["device"]
        span = Span(g, k, row["phase"], cycles=row.get("cycles", 0.0))
        span.start_s, span.end_s = row["start_s"], row["end_s"]
        span.bits, span.energy_j = row.get("bits", 0.0), row["energy_j"]
        found.setdefault(_owner(row), []).append(span)
    return found


def _derived_row(row: dict[str, Any], spans: list[Span]) -> dict[str, Any]:
    """A row by its spans: it begins with the first at work, and finishes, if so, with the last."""
    grant = Grant(row["device"], row["share"], row["rho"], math.nan, math.nan)
    start_s, finish_s = row.get("dispatched_s", math.nan), row.get("finish_s", math.nan)
    if at_work := [span for span in spans if span.phase not in WAITING]:
        start_s = min(span.start_s for span in at_work)
        if math.isfinite(finish_s):
            finish_s = max(span.end_s for span in at_work) - start_s
    outcome = Outcome(grant, None, row["status"], False, False, finish_s)
    return device_row(row["round"], outcome, spans) | {"dispatched_s": start_s}


def check_rounds(tables: Tables) -> CheckResult:
    """Sums, counts, latencies and means of every round follow from the other tables."""
    rounds = tables["rounds"]
    for column, values in derived_rounds(tables):
        if column not in rounds:
            continue
        at = first_difference(rounds[column], values)
        if at is not None:
            found = f"{rounds[column][at]}, and the other tables give {values[at]}"
            return CheckResult(ROUNDS, FAILED, f"round {rounds['round'][at]}: {column} is {found}")
    return CheckResult(ROUNDS, PASSED, counted(len(rounds), "row"))


def derived_rounds(tables: Tables) -> Iterator[tuple[str, np.ndarray]]:
    """Columns of the table rounds as they follow from the others."""
    rounds, rows, spans = tables["rounds"], tables["device_rounds"], tables["spans"]
    count = len(rounds)
    yield "latency_s", np.diff(rounds["time_s"].to_numpy(), prepend=0.0)
    yield "selected", np.bincount(rows["round"], minlength=count)
    if "finish_s" in rows:
        received = rows["status"].isin(("arrived", "late")) & np.isfinite(rows["finish_s"])
        yield "arrived", np.bincount(rows["round"][received], minlength=count)
    for status in STATUSES:
        chosen = rows["round"][rows["status"] == status]
        yield status, np.bincount(chosen, minlength=count)
    for column in (name for name in COUNTED if name in rows):
        yield column, by_round(rows["round"], rows[column], count, math.fsum)
    yield "energy_j", by_round(spans["round"], spans["energy_j"], count, math.fsum)
    served = rows[rows["status"] != "infeasible"]
    rho = served["round"], served["rho"], count
    yield "rho_mean", by_round(*rho, np.mean, math.nan)
    yield "rho_max", by_round(*rho, np.max, math.nan)
    g, loss, accuracy = (tables["scores"][name] for name in ("round", "loss", "accuracy"))
    yield "loss", by_round(g, loss, count, np.mean, math.nan)
    yield "accuracy", by_round(g, accuracy, count, np.mean, math.nan)
    yield "accuracy_std", by_round(g, accuracy, count, np.std, math.nan)
    if "version_out" in rows:
        yield from _derived_of_jobs(rows, count)
    if "backhaul" in tables:
        yield from _derived_of_transfers(tables["backhaul"], count)


def _derived_of_jobs(rows: pd.DataFrame, count: int) -> Iterator[tuple[str, np.ndarray]]:
    """Those of numbered jobs."""
    if "edge" not in rows:  # the edges of a hierarchy number their own rounds
        version = np.minimum(rows["version_in"], count)  # a changed one may be any number
        yield "dispatched", np.bincount(version, minlength=count + 1)[:count]
    used = rows[rows["version_out"] >= 0]
    stale = used["round"], used["staleness"], count
    yield "staleness_mean", by_round(*stale, np.mean, math.nan)
    yield "staleness_max", by_round(*stale, np.max, math.nan)


def _derived_of_transfers(backhaul: pd.DataFrame, count: int) -> Iterator[tuple[str, np.ndarray]]:
    """Those of a hierarchy's backhaul."""
    for direction in ("up", "down"):
        own = backhaul[backhaul["direction"] == direction]
        bits = by_round(own["round"], own["bits"], count, math.fsum)
        yield f"backhaul_bits_{direction}", bits
    joules = backhaul["round"], backhaul["energy_j"], count
    yield "backhaul_energy_j", by_round(*joules, math.fsum)


def by_round(
    g: pd.Series, values: pd.Series, count: int, statistic: Any, empty: float = 0.0
) -> np.ndarray:
    """A statistic of the values of each round; ``empty`` for a round without any."""
    ends = np.searchsorted(g.to_numpy(), np.arange(count + 1))
    column = values.to_numpy(float)
    return np.array([statistic(column[i:j]) if j > i else empty for i, j in pairwise(ends)])


def check_summary(summary: dict[str, Any], tables: Tables) -> CheckResult:
    """The key figures of summary.json follow from the tables."""
    columns, spans = (
        {name: column.to_numpy() for name, column in tables[table].items()}
        for table in ("rounds", "spans")
    )
    targets = tuple(map(float, summary["targets"]))
    derived = summarise(columns, targets, summary["latency_threshold_s"], spans)
    if "upload_forecasts" in tables:
        derived |= promises(dict(tables["upload_forecasts"]))
    recorded = dict(_flat(summary))
    for key, value in _flat(derived):
        found = recorded.get(key)
        if first_difference([_number(found)], [_number(value)]) is not None:
            problem = f"{key} is {found}, and the tables give {value}"
            return CheckResult(SUMMARY, FAILED, problem)
    return CheckResult(SUMMARY, PASSED, counted(len(derived), "figure"))


def _flat(figures: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in figures.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
