"""Results of one run, several runs or a sweep as tidy tables in SI units."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgesim.errors import ResultsError, counted
from edgesim.records.atomic_files import write_atomic
from edgesim.results.equal_runs import flat_without_targets, one_per_seed
from edgesim.results.flat_scenario import differing_keys, scheme_places, si_column
from edgesim.results.run_files import read_devices, read_scenario
from edgesim.results.run_search import find_runs, nothing_finished, statuses_in
from edgesim.results.summary_file import COUNT_COLUMNS, read_summary, summary_row
from edgesim.results.sweep_file import DONE, SWEEP_TABLE, point_folder, point_status, sweep_points
from edgesim.tables.event_tables import EventTables
from edgesim.tables.table_reading import read_event_log

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class LoadedPoint:
    """One run among the results.

    Args:
        folder: of the run.
        scheme: label of its scheme, or its method.
        seed: of its random streams.
        values: key -> text, of the keys in which the results differ; None: not set.
        status: done, failed, infeasible or missing.
        summary: content of summary.json; empty where the run has not ended.
    """

    folder: Path
    scheme: str
    seed: int
    values: dict[str, str | None]
    status: str
    summary: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LoadedResults(EventTables):
    """Tables of runs; each is read from the folders when it is first asked for.

    Every table begins with the columns scheme and seed, then one for each key in which the runs
    differ, by its dotted name and in SI (``units`` has the units). All columns: docs/tables.md.

    Args:
        folder: that was loaded.
        runs: in the order of the table points.
    """

    folder: Path
    runs: tuple[LoadedPoint, ...]

    @cached_property
    def keys(self) -> list[str]:
        """The scenario keys in which the runs differ beside scheme and seed."""
        return list(dict.fromkeys(key for run in self.runs for key in run.values))

    @property
    def units(self) -> dict[str, str]:
        """Key -> SI unit of its column; "" for counts, ratios and texts."""
        return {key: unit for key, (_, unit) in self._columns.items()}

    @cached_property
    def points(self) -> pd.DataFrame:
        """One row a run, with the key figures of summary.json; those of unfinished runs are nan."""
        import pandas as pd

        rows = [summary_row(run.summary) for run in self.runs]
        columns = dict.fromkeys(name for row in rows for name in row)
        numbers = {
            name: pd.Series(
                [row.get(name) for row in rows], dtype="Int64" if name in COUNT_COLUMNS else float
            )
            for name in columns
        }
        words = {
            "status": [run.status for run in self.runs],
            "folder": [self._relative(run.folder) for run in self.runs],
        }
        identity = self._identity()
        # swept keys win over key figures of their name, such as rounds, which unfinished runs lack
        table = pd.DataFrame({**identity, **words, **numbers, **identity})
        counts = [name for name in COUNT_COLUMNS if name in table and table[name].dtype.kind == "i"]
        table = table.astype(dict.fromkeys(counts, "Int64"))
        table.attrs["units"] = self.units
        return table

    def _event_table(self, name: str) -> pd.DataFrame:
        return self._stacked(lambda folder: read_event_log(folder, [name])[name])

    @cached_property
    def devices(self) -> pd.DataFrame:
        """One row a device, as it is in round 0."""
        return self._stacked(lambda folder: read_devices(folder / "devices.csv"))

    @property
    def folders(self) -> list[Path]:
        """Of the finished runs."""
        return [run.folder for run in self.runs if run.status == DONE]

    def plot(self, figure: str = "accuracy", ax: Any = None, x: str | None = None) -> Any:
        """Draw a figure, such as accuracy, loss or latency: see `edgesim.results.plotting.plot`."""
        from edgesim.results.plotting import plot

        return plot(self, figure, ax, x)

    def _repr_html_(self) -> str:
        from edgesim.results.notebook_html import results_html

        return results_html(repr(self).strip("<>"), self.points, self.keys)

    def __repr__(self) -> str:
        done = len(self.folders)
        whole = counted(len(self.runs), "run")
        count = f"{done} of {whole}" if done < len(self.runs) else whole
        keys = f", by {', '.join(self.keys)}" if self.keys else ""
        return f"<{count} of {self.folder}{keys}>"

    def _identity(self) -> dict[str, list[Any]]:
        """Column -> value of each run: who it is among the others."""
        return {
            "scheme": [run.scheme for run in self.runs],
            "seed": [run.seed for run in self.runs],
            **{key: values for key, (values, _) in self._columns.items()},
        }

    @cached_property
    def _columns(self) -> dict[str, tuple[list[Any], str]]:
        """Key -> its value in each run, and their unit."""
        texts = {key: [run.values.get(key) for run in self.runs] for key in self.keys}
        return {key: si_column(key, of_runs) for key, of_runs in texts.items()}

    def _stacked(self, read: Callable[[Path], pd.DataFrame | None]) -> pd.DataFrame:
        """The same table of every finished run, one below the other."""
        import pandas as pd

        identity, tables = pd.DataFrame(self._identity()), []
        for i, run in enumerate(self.runs):
            table = read(run.folder) if run.status == DONE else None
            if table is not None:
                own = identity.iloc[[i] * len(table)].reset_index(drop=True)
                tables.append(pd.concat([own, table], axis=1))
        if not tables:
            raise ResultsError(nothing_finished(self.folder, (run.status for run in self.runs)))
        # the types of an empty table would decide those of the others
        return pd.concat([each for each in tables if len(each)] or tables[:1], ignore_index=True)

    def _relative(self, folder: Path) -> str:
        return Path(os.path.relpath(folder, self.folder)).as_posix()


def load_run(folder: str | Path) -> LoadedResults:
    """Results of a run's folder, or of all finished runs in a folder, stacked.

    Args:
        folder: such as ``runs/demo/joint-s0``, or ``runs/demo`` for its schemes and seeds together.

    Returns:
        The tables, with schemes in the order of their file. Where runs of one scheme differ in
        more than the seed, they have a column for each key in which these differ; where they differ
        in ``evaluate.targets`` only, they are one run with the targets of all.

    Raises:
        ResultsError: no finished run there, a broken file, or two runs that differ in nothing.
    """
    folder = _resolved(folder)
    there = find_runs([folder])
    if not (found := there.finished):
        raise ResultsError(nothing_finished(folder, statuses_in(there)))
    scenarios = {each: read_scenario(each / "scenario.yaml")[1] for each in found}
    summary_of = {each: read_summary(each / "summary.json") for each in found}
    kinds = {each: (content["scenario"], content["scheme"]) for each, content in summary_of.items()}
    places = scheme_places((*kinds[each], scenarios[each]) for each in found)
    found = sorted(found, key=lambda each: places[kinds[each]])
    summaries = [summary_of[each] for each in found]
    flats = [flat_without_targets(scenarios[each]) for each in found]
    names = [(summary["scheme"], summary["seed"]) for summary in summaries]
    schemes = [scheme for scheme, _ in names]
    keys = dict.fromkeys(
        key
        for scheme in dict.fromkeys(schemes)
        for key in differing_keys(
            [flat for flat, own in zip(flats, schemes, strict=True) if own == scheme]
        )
    )
    runs = [
        LoadedPoint(each, *name, {key: flat.get(key) for key in keys}, DONE, summary)
        for each, name, flat, summary in zip(found, names, flats, summaries, strict=True)
    ]
    return LoadedResults(folder, _different(runs))


def load_sweep(folder: str | Path) -> LoadedResults:
    """Results of a sweep's folder: every point that its sweep.json lists.

    Args:
        folder: such as ``runs/demo-sweep``.

    Returns:
        The tables, with a column for each swept key. ``points`` also has the points that have not
        ended; the other tables have those that are done.

    Raises:
        ResultsError: no sweep there, or a broken file.
    """
    folder = _resolved(folder)
    if not (folder / "sweep.json").is_file():
        raise ResultsError(f"{folder} holds no sweep.json; give a sweep's folder, or use load_run.")
    return LoadedResults(folder, tuple(_swept(folder, each) for each in sweep_points(folder)))


def write_sweep_table(folder: Path) -> None:
    """Write what `load_sweep` gives as ``points``; the same results always give the same bytes.

    Args:
        folder: of a sweep, with its sweep.json.
    """
    content = io.BytesIO()
    load_sweep(folder).points.to_parquet(content, index=False, compression="zstd")
    write_atomic(folder / SWEEP_TABLE, content.getvalue())


def _resolved(folder: str | Path) -> Path:
    if not isinstance(folder, str | os.PathLike):
        raise ResultsError(
            f"{type(folder).__name__} is no folder; give a folder of results. What simulate "
            "returns has the tables of its run itself, all but points and devices."
        )
    return Path(folder).resolve()


def _swept(sweep: Path, listed: dict[str, Any]) -> LoadedPoint:
    """A point of sweep.json."""
    folder, status = point_folder(sweep, listed), point_status(sweep, listed)
    summary = read_summary(folder / "summary.json") if status == DONE else {}
    label, seed = str(listed.get("label") or ""), int(listed.get("seed") or 0)
    return LoadedPoint(folder, label, seed, dict(listed.get("values") or {}), status, summary)


def _different(runs: Sequence[LoadedPoint]) -> tuple[LoadedPoint, ...]:
    """The runs in their order, one where several differ in their targets only."""
    groups: dict[tuple, list[LoadedPoint]] = {}
    for run in runs:
        groups.setdefault((run.scheme, *run.values.items()), []).append(run)
    kept = [run for group in groups.values() for run in one_per_seed(group[0].scheme, group)]
    places = {run.folder: i for i, run in enumerate(runs)}
    return tuple(sorted(kept, key=lambda run: places[run.folder]))
