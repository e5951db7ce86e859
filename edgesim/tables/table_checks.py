"""What a table of a run may hold: kinds, ranges and keys of its columns, for every reader.

The first thing that is wrong is named with its column and row. Columns that a table lacks are none
of these: which ones a run has depends on its clock and on its network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from edgesim.errors import shorten
from edgesim.records.run_tables.table_columns import SCHEMAS

MAX_NUMBER = 1e100  # of seconds, bits, joules: sums and squares stay finite
MAX_COUNT = 2**53
MAX_TEXT = 200  # letters of a name
STATUSES = frozenset(
    {"arrived", "late", "failed", "infeasible", "left", "cancelled", "discarded", "unfinished"}
)


class Range(NamedTuple):
    """What numbers a column may hold.

    low, high: inclusive.     or_nan: nan is allowed, where a value does not exist.
    """

    low: float
    high: float
    or_nan: bool = False

    def sentence(self) -> str:
        empty = ", or nan" if self.or_nan else ""
        return f"from {self.low:g} to {self.high:g}{empty}"


AMOUNT, AMOUNT_OR_NAN = Range(0.0, MAX_NUMBER), Range(0.0, MAX_NUMBER, True)
SHARE, SHARE_OR_NAN = Range(0.0, 1.0 + 1e-9), Range(0.0, 1.0 + 1e-9, True)
ANY = Range(-math.inf, math.inf, True)
INTEGER = Range(0, MAX_COUNT)
RANGES: dict[str, Range] = {
    **dict.fromkeys(
        ("start_s", "end_s", "bits", "cycles", "energy_j", "time_s", "latency_s"), AMOUNT
    ),
    **dict.fromkeys(("bits_up", "bits_down", "flops"), AMOUNT),
    **dict.fromkeys(("rate_bps", "download_s", "compute_s", "upload_s"), AMOUNT_OR_NAN),
    **dict.fromkeys(("accuracy", "accuracy_std"), AMOUNT_OR_NAN),
    **dict.fromkeys(("rho_mean", "rho_max"), SHARE_OR_NAN),
    **dict.fromkeys(("share", "rho"), SHARE),
    "finish_s": Range(0.0, math.inf, True),
    "solver_residual": Range(0.0, math.inf, True),
    **dict.fromkeys(("job", "version_out"), Range(-1, MAX_COUNT)),
    **dict.fromkeys(("staleness_mean", "staleness_max"), AMOUNT_OR_NAN),
    "weight": SHARE,
    "dispatched_s": AMOUNT,
    **dict.fromkeys(("used_j", "charged_j", "throttled_s", "off_s"), AMOUNT),
    "battery_j": AMOUNT_OR_NAN,
    **dict.fromkeys(("throttled", "alive"), Range(0, 1)),
    **dict.fromkeys(("edge_round", "sector"), Range(-1, MAX_COUNT)),
    **dict.fromkeys(("backhaul_bits_up", "backhaul_bits_down", "backhaul_energy_j"), AMOUNT),
}  # of all tables alike; other columns of floats hold any number, of integers counts
KEYS = {  # columns by which the rows of a table are sorted
    "rounds": ("round",),
    "device_rounds": ("round", "device"),
    "spans": ("round", "device", "start_s"),
    "scores": ("round", "device"),
    "measures": ("round",),
    "upload_forecasts": ("round", "device"),
    "device_states": ("round", "device"),
    "backhaul": ("round", "edge", "start_s"),
    "presence": ("device", "start_s"),
}
REPEATED = frozenset({"spans", "measures", "backhaul"})  # tables in which a key may stand twice


class TableError(ValueError):
    """A table holds what no run writes; the sentence begins with the column."""


def check_table(name: str, table: Mapping[str, np.ndarray]) -> None:
    """Check the columns of a table that has a schema.

    Args:
        name: of the table in `table_columns.SCHEMAS`.
        table: column -> values [rows], of kinds i, f or O (text).

    Raises:
        TableError: what is wrong first.
    """
    for column, kind in SCHEMAS[name].items():
        if column not in table:
            continue
        values = np.asarray(table[column])
        if kind is str:
            _check_texts(column, values)
        elif values.dtype.kind not in ("iu" if kind is int else "iuf"):
            raise TableError(f"column {column} holds {_kind(values)}, not {KINDS[kind]}")
        else:
            allowed = RANGES.get(column, INTEGER if kind is int else ANY)
            _check_range(column, values, allowed)
    _check_order(name, table)


KINDS = {int: "whole numbers", float: "numbers"}


def _kind(values: np.ndarray) -> str:
    if values.dtype.kind == "f":
        return "fractions or gaps"
    return "text" if values.dtype.kind in "OUS" else str(values.dtype)


def _check_texts(column: str, values: np.ndarray) -> None:
    for text in set(values.tolist()):
        if not isinstance(text, str):
            problem = f"{shorten(text)}, which is no text"
        elif column == "status" and text not in STATUSES:
            problem = f"{shorten(text)}; allowed are {', '.join(sorted(STATUSES))}"
        elif not text or len(text) > MAX_TEXT:
            problem = f"{shorten(text)} with {len(text)} letters; allowed are 1 to {MAX_TEXT}"
        else:
            continue
        row = next(i for i, value in enumerate(values.tolist()) if value is text or value == text)
        raise TableError(f"column {column}, row {row + 1}: is {problem}")


def _check_range(column: str, values: np.ndarray, allowed: Range) -> None:
    with np.errstate(invalid="ignore"):
        good = (values >= allowed.low) & (values <= allowed.high)
    if allowed.or_nan:
        good |= values != values
    if not good.all():
        row = int(np.argmin(good))
        raise TableError(
            f"column {column}, row {row + 1}: is {values[row]}; allowed are numbers "
            f"{allowed.sentence()}"
        )


def _check_order(name: str, table: Mapping[str, np.ndarray]) -> None:
    """Rows are sorted by their key, and but for some tables no key stands twice."""
    if not KEYS.get(name) or not all(column in table for column in KEYS[name]):
        return
    keys = KEYS[name]
    if name == "device_rounds" and "job" in table:  # a device can end several jobs in one round
        keys = (*keys, "job")
    if name in ("device_rounds", "upload_forecasts") and "edge_round" in table:
        keys = (*keys, "edge_round")
    columns = [np.asarray(table[column]) for column in keys]
    later = np.zeros(max(len(columns[0]) - 1, 0), dtype=bool)
    equal = ~later
    for values in columns:
        later |= equal & (values[1:] > values[:-1])
        equal &= values[1:] == values[:-1]
    good = later | equal if name in REPEATED else later
    if not good.all():
        row = int(np.argmin(good)) + 1
        found = ", ".join(
            f"{column} {values[row]}" for column, values in zip(keys, columns, strict=True)
        )
        what = "stands twice" if equal[row - 1] else "stands behind a later one"
        raise TableError(f"row {row + 1}: {found} {what}; rows are sorted by {', '.join(keys)}")
