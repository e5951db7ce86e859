"""`edgesim verify`: every check of every run and sweep in some folders."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from edgesim.errors import ResultsError, counted, one_line
from edgesim.records.run_tables.table_files import FILES, ONLY_WITH_ROWS
from edgesim.results.finished_run import FinishedRun, read_run
from edgesim.results.flat_scenario import si_column
from edgesim.results.loaded_results import load_sweep
from edgesim.results.run_files import read_json
from edgesim.results.run_search import find_runs
from edgesim.results.sweep_file import SWEEP_TABLE, point_folder, sweep_points
from edgesim.tables.table_reading import read_event_log
from edgesim.verification.check_result import FAILED, PASSED, SKIPPED, CheckResult
from edgesim.verification.derived_figures import (
    SUMMARY,
    check_device_rounds,
    check_rounds,
    check_summary,
)
from edgesim.verification.device_states import STATES, check_states
from edgesim.verification.planned_rounds import check_planned_rounds
from edgesim.verification.presence_check import PRESENCE, check_presence
from edgesim.verification.stored_bytes import check_checkpoint, check_files, check_log

TABLES, SWEEP, POINTS = "tables", "sweep.json", SWEEP_TABLE
FURTHER = sorted({*ONLY_WITH_ROWS} - {PRESENCE})  # tables of the log; presence is drawn again
UNFINISHED = CheckResult(SUMMARY, SKIPPED, "there is none: the run has not finished")


def verify(
    places: Sequence[Path], data: str | None = None, allow_code: bool = False
) -> Iterator[tuple[Path, list[CheckResult]]]:
    """Each run and sweep in or below some folders, with its checks.

    Args:
        places: folders of runs, of sweeps, or folders that contain some.
        data: folder of the data files, by which plans are made again; None: EDGESIM_DATA.
        allow_code: methods and solvers of the user's own may run.

    Raises:
        ResultsError: a place that is no folder, cannot be read, or holds neither run nor sweep.
    """
    found = find_runs(places)
    for sweep in found.sweeps:
        yield sweep, check_sweep(sweep)
    for folder in found.unfinished:
        yield folder, [check_checkpoint(folder)[0], UNFINISHED]
    for folder in found.finished:
        yield folder, check_run(folder, data, allow_code)


def check_run(folder: Path, data: str | None, allow_code: bool) -> list[CheckResult]:
    """All checks of a finished run; where its tables are damaged, those of its bytes."""
    checkpoint, facts = check_checkpoint(folder)
    checks = [check_files(folder), checkpoint]
    try:
        run = read_run(folder)
        tables = tables_of(run)
        further = [name for name in FURTHER if (folder / FILES[name]).exists()]
        tables |= read_event_log(folder, further)
    except ResultsError as error:
        return [*checks, CheckResult(TABLES, FAILED, str(error))]
    checks.append(CheckResult(TABLES, PASSED, counted(sum(map(len, tables.values())), "row")))
    if facts is not None:
        checks.append(check_log(folder, facts, tables))
    checks += [check_device_rounds(tables), check_rounds(tables)]
    checks.append(check_summary(run.summary, tables))
    if STATES in tables:
        checks.append(check_states(tables))
    checks += check_presence(folder, tables)
    if all(check.outcome != FAILED for check in checks):
        checks += check_planned_rounds(folder, tables, data, allow_code, facts)
    return checks


def tables_of(run: FinishedRun) -> dict:
    """The tables of a run by name."""
    names = ("rounds", "device_rounds", "spans", "scores", "measures")
    return {name: getattr(run, name) for name in names}


def check_sweep(sweep: Path) -> list[CheckResult]:
    """sweep.json against its digest and its points, and the table of the points against both."""
    try:
        points = sweep_points(sweep)
        sealed = "digest" in read_json(sweep / "sweep.json")
    except ResultsError as error:
        return [CheckResult(SWEEP, FAILED, str(error))]
    if not sealed:
        return [CheckResult(SWEEP, FAILED, "no digest")]
    done = [point for point in points if point.get("status") == "done"]
    for point in done:
        if not (point_folder(sweep, point) / "summary.json").is_file():
            problem = f"{point['folder']} is done, and has no summary.json"
            return [CheckResult(SWEEP, FAILED, problem)]
    listed = CheckResult(SWEEP, PASSED, f"{len(done)} of {counted(len(points), 'point')} done")
    return [listed, check_sweep_table(sweep)]


def check_sweep_table(sweep: Path) -> CheckResult:
    """sweep.parquet holds what the points' summaries hold."""
    import pandas as pd

    if not (sweep / SWEEP_TABLE).exists():
        return CheckResult(POINTS, SKIPPED, "there is none")
    try:
        content = io.BytesIO()
        load_sweep(sweep).points.to_parquet(content, index=False)
        recorded, derived = pd.read_parquet(sweep / SWEEP_TABLE), pd.read_parquet(content)
        # older tables have powers in W and densities in W/Hz in one column of numbers
        for key in recorded.select_dtypes(float).columns.intersection(derived.columns):
            if derived[key].dtype.kind == "O":
                derived[key] = [si_column(key, [text])[0][0] for text in derived[key]]
        # and texts of keys of schemes, or of times of evaluate.every
        for key in derived.select_dtypes(float).columns.intersection(recorded.columns):
            if recorded[key].dtype.kind == "O":
                recorded[key] = pd.Series(si_column(key, recorded[key])[0], dtype=float)
        same = recorded.equals(derived)
    except Exception as error:  # pyarrow and pandas raise anything over a damaged file
        return CheckResult(POINTS, FAILED, one_line(f"{SWEEP_TABLE}: {error}"))
    if not same:
        return CheckResult(POINTS, FAILED, "it differs from the summaries of the points")
    return CheckResult(POINTS, PASSED, counted(len(recorded), "point"))
