"""Comparison of one table of two runs: which rows and columns differ, where first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

PLACE_COLUMNS = ("round", "device", "phase", "name")  # they say which row it is


@dataclass(frozen=True)
class FirstDifference:
    """The first row in which a table of two runs differs.

    place: "round 3, device 5, upload".     column: "" where a row is missing.
    a, b: both values.
    """

    round: int
    place: str
    column: str
    a: str
    b: str


@dataclass(frozen=True)
class TableDifference:
    """What differs in one table.

    rows: how many of them differ, of so many.     only_a, only_b: columns that one run has.
    """

    name: str
    first: FirstDifference | None
    rows: int
    of: int
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()


def compare_tables(name: str, a: pd.DataFrame, b: pd.DataFrame) -> TableDifference | None:
    """Row by row in the order of the files; None where all rows and columns are equal."""
    shared = [column for column in a.columns if column in b.columns]
    only_a, only_b = (tuple(c for c in table.columns if c not in shared) for table in (a, b))
    rows = min(len(a), len(b))
    unequal = {
        column: _differ(a[column].to_numpy()[:rows], b[column].to_numpy()[:rows])
        for column in shared
    }
    rowwise = np.any([*unequal.values(), np.zeros(rows, bool)], axis=0)
    count = int(rowwise.sum()) + abs(len(a) - len(b))
    if not (count or only_a or only_b):
        return None
    at = int(np.argmax(rowwise)) if rowwise.any() else rows
    first = _first_difference(a, b, unequal, at) if count else None
    return TableDifference(name, first, count, max(len(a), len(b)), only_a, only_b)


def _differ(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where two columns differ [rows], bool; nan is equal to nan."""
    if x.dtype.kind in "iuf" and y.dtype.kind in "iuf":
        return (x != y) & ~((x != x) & (y != y))
    return np.array([str(one) != str(other) for one, other in zip(x, y, strict=True)], dtype=bool)


def _first_difference(
    a: pd.DataFrame, b: pd.DataFrame, unequal: dict[str, np.ndarray], i: int
) -> FirstDifference:
    """Row i of two tables, of which one may end before it."""
    if i == min(len(a), len(b)):
        longer = a if len(a) > len(b) else b
        values = ("a row", "no row") if longer is a else ("no row", "a row")
        return FirstDifference(int(longer["round"].iloc[i]), _place(longer, i), "", *values)
    if any(unequal[column][i] for column in PLACE_COLUMNS if column in unequal):
        # other rows, not other values
        earlier = a if a["round"].iloc[i] <= b["round"].iloc[i] else b
        places = _place(a, i), _place(b, i)
        return FirstDifference(int(earlier["round"].iloc[i]), _place(earlier, i), "", *places)
    column = next(column for column in unequal if unequal[column][i])
    values = str(a[column].iloc[i]), str(b[column].iloc[i])
    return FirstDifference(int(a["round"].iloc[i]), _place(a, i), column, *values)


def _place(table: pd.DataFrame, i: int) -> str:
    """Which row it is: "round 3, device 5, upload"."""
    words = []
    for column in PLACE_COLUMNS:
        if column in table.columns:
            value = str(table[column].iloc[i])
            words.append(f"{column} {value}" if column in ("round", "device") else value)
    return ", ".join(words)
