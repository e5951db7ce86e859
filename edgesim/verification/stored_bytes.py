"""Digests of a run's files, of its checkpoint, and the checkpoint's log against the tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgesim.errors import counted
from edgesim.records.checkpoint.checkpoint_log import read_blocks
from edgesim.records.checkpoint.run_checkpoint import UNREADABLE, RunFolder, reason_of
from edgesim.records.checksums import SUMS, damaged_files, read_sums
from edgesim.records.run_tables.growing_tables import GrowingTables
from edgesim.records.run_tables.table_columns import FURTHER_COLUMNS, FurtherColumns
from edgesim.verification.check_result import FAILED, PASSED, SKIPPED, CheckResult
from fl.stored_files import DamagedFileError, read_sealed_json

if TYPE_CHECKING:
    import pandas as pd

FILES, CHECKPOINT, LOG = "files", "checkpoint", "log and tables"


def check_files(folder: Path) -> CheckResult:
    """Every file that SHA256SUMS lists, and timing.json, which has its own digest."""
    damage = [each.problem for each in damaged_files(folder)]
    if not (folder / SUMS).exists():
        return CheckResult(FILES, FAILED, f"no digests: there is no {SUMS}")
    if (folder / "timing.json").exists():
        try:
            read_sealed_json(folder / "timing.json")
        except (DamagedFileError, OSError, ValueError) as error:
            damage.append(f"timing.json: {error}")
    if damage:
        return CheckResult(FILES, FAILED, "; ".join(damage))
    return CheckResult(FILES, PASSED, counted(len(read_sums(folder) or ()), "digest"))


def check_checkpoint(folder: Path) -> tuple[CheckResult, dict[str, Any] | None]:
    """The states and the log; and the facts of the last state, where they are whole."""
    run, damage, seen = RunFolder(folder), [], []
    for file in run.states:
        version = _version(file)
        if version is None:
            continue
        try:
            facts = run.read_state(file)[1]
            run.log.check(facts)
            seen.append((int(facts["g"]) + 1, facts))
        except UNREADABLE as error:
            if _version(file) != version:  # a run in progress has replaced it, and its arrays
                continue
            damage.append(f"{file.name}: {reason_of(error)}")
    if damage:
        return CheckResult(CHECKPOINT, FAILED, "; ".join(damage)), None
    if not seen:
        return CheckResult(CHECKPOINT, SKIPPED, "there is none yet"), None
    rounds, facts = seen[0]
    return CheckResult(CHECKPOINT, PASSED, f"whole after {counted(rounds, 'round')}"), facts


def _version(file: Path) -> tuple[int, int] | None:
    """What changes where a file is replaced; None: there is none."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def check_log(folder: Path, facts: dict[str, Any], tables: dict[str, pd.DataFrame]) -> CheckResult:
    """The rows of the log are those of the tables.

    Args:
        folder: of a finished run.
        facts: of its last state.
        tables: as they were read.
    """
    log = GrowingTables(*(more for more in FURTHER_COLUMNS if _has_columns(tables, more)))
    try:
        log.restore(read_blocks(RunFolder(folder).log_file, facts["log_bytes"]))
    except UNREADABLE as error:
        return CheckResult(LOG, FAILED, reason_of(error))
    for name, table in tables.items():
        logged = log.table(name)
        if len(logged) != len(table):
            problem = f"{name}: {counted(len(table), 'row')}, and {len(logged)} in the log"
            return CheckResult(LOG, FAILED, problem)
        for column in table.columns:
            if not _equal(table[column].to_numpy(), logged[column].to_numpy()):
                return CheckResult(LOG, FAILED, f"{name}: column {column} differs from the log")
    return CheckResult(LOG, PASSED, counted(sum(map(len, tables.values())), "row"))


def _has_columns(tables: dict[str, pd.DataFrame], more: FurtherColumns) -> bool:
    return any(column in tables.get(name, ()) for name, kinds in more.items() for column in kinds)


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    numbers = a.dtype.kind in "iuf" and b.dtype.kind in "iuf"
    return np.array_equal(a, b, equal_nan=True) if numbers else a.tolist() == b.tolist()
