"""Two runs, or two folders of runs, side by side: which keys differ, which tables, and where they part first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reports.run_data.load_runs import (
    TABLES,
    ReportError,
    find_runs,
    read_json,
    read_raw,
    read_scenario,
)
from reports.run_data.sweep_status import folder_of, name_of, points
from reports.run_data.swept_keys import UNSET, flatten

if TYPE_CHECKING:
    import pandas as pd

PLACE = ("round", "device", "phase", "name")  # columns that say which row it is
FILES = ("model.safetensors", "partition.json", "devices.csv")
MOST_SHOWN = 20  # keys of one pair


@dataclass(frozen=True)
class Parting:
    """The first row in which a table of two runs differs. a, b: both values; column "" where a row is missing."""

    round: int
    place: str  # "round 3, device 5, upload"
    column: str
    a: str
    b: str


@dataclass(frozen=True)
class TableDifference:
    """What differs in one table: the first row, how many rows, and columns that only one run has."""

    name: str
    first: Parting | None
    rows: int
    of: int
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Two runs. keys, versions: (name, value in a, value in b); versions alone do not make runs differ."""

    label: str
    keys: tuple[tuple[str, str, str], ...]
    tables: tuple[TableDifference, ...]
    files: tuple[str, ...]
    versions: tuple[tuple[str, str, str], ...]

    @property
    def same(self) -> bool:
        return not (self.keys or self.tables or self.files)

    @property
    def first_round(self) -> int | None:
        return min((table.first.round for table in self.tables if table.first), default=None)


def compare(a: Path, b: Path) -> tuple[list[str], bool]:
    """What differs between two runs or two folders of runs, in lines, and whether nothing does.

    Raises:
        ReportError: not two runs and not two folders of runs, or a file that cannot be read.
    """
    single = [(Path(place) / "summary.json").is_file() for place in (a, b)]
    if all(single):
        found = compare_runs(Path(a), Path(b), "")
        return list(described(found)), found.same
    if any(single):
        run, folder = (a, b) if single[0] else (b, a)
        count = len(named_runs(Path(folder)))
        raise ReportError(
            f"{run} is a run and {folder} a folder with {count}; give two runs or two folders of runs."
        )
    one, other = named_runs(Path(a)), named_runs(Path(b))
    if (
        not one.keys() & other.keys()
    ):  # folders of other seeds: the seed is one of the keys that differ
        one, other = _without_seed(one), _without_seed(other)
    return _compare_folders(one, other, Path(a), Path(b))


def _without_seed(named: dict[str, Path]) -> dict[str, Path]:
    short = [name.rpartition(", seed ")[0] or name for name in named]
    return dict(zip(short, named.values(), strict=True)) if len(set(short)) == len(short) else named


def _compare_folders(
    one: dict[str, Path], other: dict[str, Path], a: Path, b: Path
) -> tuple[list[str], bool]:
    both = [name for name in one if name in other]
    alone = [(a, name) for name in one if name not in other] + [
        (b, name) for name in other if name not in one
    ]
    if not both:
        raise ReportError(
            f"{a} and {b} have no run in common: their labels or swept values differ."
        )
    found = [compare_runs(one[name], other[name], name) for name in both]
    different = [each for each in found if not each.same]
    lines = [line for each in different for line in (*described(each), "")]
    lines += [f"only in {place}: {name}" for place, name in alone]
    lines.append(f"{len(found) - len(different)} of {len(found)} pairs of runs are equal.")
    return lines, not different and not alone


def named_runs(place: Path) -> dict[str, Path]:
    """Finished runs in a folder by what they are called: a point of a sweep, or scheme and seed, or else their path.

    Raises:
        ReportError: no finished run there.
    """
    found = find_runs([place])
    if not found.finished:
        raise ReportError(f"No finished run in {place}.")
    in_sweeps = {
        folder_of(sweep, point): f"{name_of(point)}, seed {point.get('seed')}"
        for sweep in found.sweeps
        for point in points(sweep)
    }
    names = [in_sweeps.get(folder.resolve()) or _called(folder) for folder in found.finished]
    paths = [str(folder.relative_to(place)) for folder in found.finished]
    unique = [
        name if names.count(name) == 1 else path for name, path in zip(names, paths, strict=True)
    ]
    return dict(zip(unique, found.finished, strict=True))


def _called(folder: Path) -> str:
    summary = read_json(folder / "summary.json")
    return f"{summary.get('scenario')}: {summary.get('scheme')}, seed {summary.get('seed')}"


def compare_runs(a: Path, b: Path, label: str) -> Comparison:
    """One run beside another. Numbers are the same only if all their digits are."""
    scenarios = [read_scenario(folder / "scenario.yaml")[1] for folder in (a, b)]
    tables = [read_raw(folder) for folder in (a, b)]
    differences = (compare_tables(name, tables[0][name], tables[1][name]) for name in TABLES)
    named = [
        {key: str(each[key]) for key in ("name", "scheme", "seed") if key in each}
        for each in scenarios
    ]
    flats = [{**names, **flatten(each)} for names, each in zip(named, scenarios, strict=True)]
    versions = [flatten(each.get("provenance") or {}, "provenance.") for each in scenarios]
    return Comparison(
        label=label,
        keys=tuple(_unequal(*flats)),
        tables=tuple(each for each in differences if each is not None),
        files=tuple(name for name in FILES if _content(a / name) != _content(b / name)),
        versions=tuple(
            (key.removeprefix("provenance."), x, y) for key, x, y in _unequal(*versions)
        ),
    )


def _unequal(a: dict[str, str], b: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    for key in dict.fromkeys((*a, *b)):
        if a.get(key) != b.get(key):
            yield key, a.get(key, UNSET), b.get(key, UNSET)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror}.") from None


def compare_tables(name: str, a: pd.DataFrame, b: pd.DataFrame) -> TableDifference | None:
    """Row by row as they were written; None where all rows and columns are equal."""
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
    first = _first(a, b, unequal, rowwise, rows) if count else None
    return TableDifference(name, first, count, max(len(a), len(b)), only_a, only_b)


def _differ(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where two columns differ [rows], bool; nan is equal to nan."""
    if x.dtype.kind in "iuf" and y.dtype.kind in "iuf":
        return (x != y) & ~((x != x) & (y != y))
    return np.array([str(one) != str(other) for one, other in zip(x, y, strict=True)], dtype=bool)


def _first(
    a: pd.DataFrame, b: pd.DataFrame, unequal: dict, rowwise: np.ndarray, rows: int
) -> Parting:
    i = int(np.argmax(rowwise)) if rowwise.any() else rows
    if i == rows:  # one table goes on where the other ends
        longer = a if len(a) > len(b) else b
        return Parting(int(longer["round"].iloc[i]), _place(longer, i), "", *_has_row(longer is a))
    moved = [column for column in PLACE if column in unequal and unequal[column][i]]
    if moved:  # other rows, not other values
        earlier = a if a["round"].iloc[i] <= b["round"].iloc[i] else b
        return Parting(
            int(earlier["round"].iloc[i]), _place(earlier, i), "", _place(a, i), _place(b, i)
        )
    column = next(column for column in unequal if unequal[column][i])
    return Parting(
        int(a["round"].iloc[i]),
        _place(a, i),
        column,
        str(a[column].iloc[i]),
        str(b[column].iloc[i]),
    )


def _has_row(in_a: bool) -> tuple[str, str]:
    return ("a row", "no row") if in_a else ("no row", "a row")


def _place(table: pd.DataFrame, i: int) -> str:
    """Which row it is: "round 3, device 5, upload"."""
    words = [(column, table[column].iloc[i]) for column in PLACE if column in table.columns]
    return ", ".join(
        f"{column} {value}" if column in ("round", "device") else str(value)
        for column, value in words
    )


def described(found: Comparison) -> Iterator[str]:
    """The comparison in lines; ``a | b`` are the values of the first and of the second run."""
    if found.label:
        yield f"{found.label}: {'equal' if found.same else 'different'}"
    for what, x, y in found.versions:
        yield f"  version of {what}: {x} | {y}"
    for key, x, y in found.keys[:MOST_SHOWN]:
        yield f"  key {key}: {_short(x)} | {_short(y)}"
    if len(found.keys) > MOST_SHOWN:
        yield f"  and {len(found.keys) - MOST_SHOWN} further keys"
    for table in found.tables:
        yield from _table_lines(table)
    for name in found.files:
        yield f"  {name} differs"
    if found.first_round is not None:
        yield f"  first diverging round: {found.first_round}"
    if found.same:
        yield f"  equal: all keys, the tables {', '.join(TABLES)}, and {', '.join(FILES)}"


def _table_lines(table: TableDifference) -> Iterator[str]:
    for columns, which in ((table.only_a, "first"), (table.only_b, "second")):
        if columns:
            yield f"  table {table.name}: only the {which} run has {', '.join(columns)}"
    if table.first:
        what = f"{table.first.column} " if table.first.column else ""
        where = f"{table.first.place}: {what}{table.first.a} | {table.first.b}"
        yield f"  table {table.name}: {table.rows} of {table.of} rows differ, first {where}"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
