"""Comparison of two runs, or of two folders of runs: which keys and tables differ, where first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgesim.errors import ResultsError, counted
from edgesim.results.flat_scenario import flatten, versions
from edgesim.results.run_files import TABLES, content_of, read_scenario
from edgesim.results.run_search import find_runs
from edgesim.results.summary_file import read_summary
from edgesim.results.sweep_file import point_folder, point_name, sweep_points
from edgesim.tables.table_reading import read_event_log
from reports.run_data.swept_keys import UNSET, value_text
from reports.table_diff import TableDifference, compare_tables
from reports.text.difference_table import shortened

FILES = ("model.safetensors", "partition.json", "devices.csv")
MOST_KEYS = 20  # of one pair

Difference = tuple[str, str, str]  # name, value in a, value in b


@dataclass(frozen=True)
class RunComparison:
    """What differs between two runs; versions alone do not make runs differ."""

    label: str
    keys: tuple[Difference, ...]
    tables: tuple[TableDifference, ...]
    files: tuple[str, ...]
    versions: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        return not (self.keys or self.tables or self.files)

    @property
    def first_round(self) -> int | None:
        return min((table.first.round for table in self.tables if table.first), default=None)


def compare(a: Path, b: Path) -> tuple[list[str], bool]:
    """What differs between two runs or two folders of runs, in lines, and whether nothing does.

    Raises:
        ResultsError: not two runs and not two folders of runs, or a file that cannot be read.
    """
    a, b = Path(a), Path(b)
    single = [(place / "summary.json").is_file() for place in (a, b)]
    if all(single):
        found = compare_runs(a, b, "")
        return list(described(found)), found.same
    if any(single):
        run, folder = (a, b) if single[0] else (b, a)
        raise ResultsError(
            f"{run} is a run and {folder} a folder with {len(named_runs(folder))}; "
            "give two runs or two folders of runs."
        )
    return _compare_folders(*_matching(a, b), a, b)


def _matching(a: Path, b: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """The runs of both by the first names that any of them have in common."""
    for by_point in (True, False):  # a run beside a sweep has no point
        named = named_runs(a, by_point), named_runs(b, by_point)
        # folders of other seeds: the seed then is one of the keys that differ
        for one, other in (named, tuple(map(_without_seed, named))):
            if one.keys() & other.keys():
                return one, other
    return one, other


def _without_seed(named: dict[str, Path]) -> dict[str, Path]:
    short = [name.rpartition(", seed ")[0] or name for name in named]
    return dict(zip(short, named.values(), strict=True)) if len(set(short)) == len(short) else named


def _compare_folders(
    one: dict[str, Path], other: dict[str, Path], a: Path, b: Path
) -> tuple[list[str], bool]:
    found = [compare_runs(one[name], other[name], name) for name in one if name in other]
    if not found:
        raise ResultsError(
            f"{a} and {b} have no run in common: their labels or swept values differ."
        )
    different = [each for each in found if not each.same]
    alone = [f"only in {a}: {name}" for name in one if name not in other]
    alone += [f"only in {b}: {name}" for name in other if name not in one]
    lines = [line for each in different for line in (*described(each), "")]
    made_by = Counter(version for each in found if each.same for version in each.versions)
    versions_of_equal = [
        f"version of {what}: {x} | {y} in {counted(pairs, 'equal pair')}"
        for (what, x, y), pairs in made_by.items()
    ]
    lines += [
        *alone,
        *versions_of_equal,
        f"{len(found) - len(different)} of {len(found)} pairs of runs are equal.",
    ]
    return lines, not different and not alone


def named_runs(place: Path, by_point: bool = True) -> dict[str, Path]:
    """Finished runs in a folder by name: a point of a sweep, or scheme and seed, or else the path.

    Args:
        place: the folder.
        by_point: False: also those of a sweep by scheme and seed.

    Raises:
        ResultsError: no finished run there.
    """
    found = find_runs([place])
    if not found.finished:
        raise ResultsError(f"No finished run in {place}.")
    in_sweeps = {
        point_folder(sweep, point): f"{point_name(point)}, seed {point.get('seed')}"
        for sweep in (found.sweeps if by_point else ())
        for point in sweep_points(sweep)
    }
    names = [in_sweeps.get(folder.resolve()) or _scheme_name(folder) for folder in found.finished]
    return {
        name if names.count(name) == 1 else str(folder.relative_to(place)): folder
        for name, folder in zip(names, found.finished, strict=True)
    }


def _scheme_name(folder: Path) -> str:
    summary = read_summary(folder / "summary.json")
    return f"{summary['scenario']}: {summary['scheme']}, seed {summary['seed']}"


def compare_runs(a: Path, b: Path, label: str) -> RunComparison:
    """One run beside another. Numbers are the same only if all their digits are."""
    scenarios = [read_scenario(folder / "scenario.yaml")[1] for folder in (a, b)]
    tables = [read_event_log(folder) for folder in (a, b)]
    differences = (compare_tables(name, tables[0][name], tables[1][name]) for name in TABLES)
    names = ("name", "scheme", "seed")
    flats = [{k: str(s[k]) for k in names if k in s} | flatten(s) for s in scenarios]
    made_by = [versions(s) for s in scenarios]
    return RunComparison(
        label=label,
        keys=tuple(_unequal(*flats)),
        tables=tuple(each for each in differences if each is not None),
        files=tuple(name for name in FILES if content_of(a / name) != content_of(b / name)),
        versions=tuple(_unequal(*made_by)),
    )


def _unequal(a: dict[str, str], b: dict[str, str]) -> Iterator[Difference]:
    for key in dict.fromkeys((*a, *b)):
        if a.get(key) != b.get(key):
            yield key, a.get(key, UNSET), b.get(key, UNSET)


def described(found: RunComparison) -> Iterator[str]:
    """The comparison in lines; ``a | b`` are the values of the first and of the second run."""
    if found.label:
        yield f"{found.label}: {'equal' if found.same else 'different'}"
    for what, x, y in found.versions:
        yield f"  version of {what}: {x} | {y}"
    for key, x, y in found.keys[:MOST_KEYS]:
        yield f"  key {key}: {shortened(value_text(x))} | {shortened(value_text(y))}"
    if len(found.keys) > MOST_KEYS:
        yield f"  and {len(found.keys) - MOST_KEYS} further keys"
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
