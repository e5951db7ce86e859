"""Runs that a report lacks: points of sweep.json without a finished run, and unfinished folders."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from edgesim.results.run_search import RunFolders, nothing_finished
from edgesim.results.sweep_file import (
    DONE,
    MISSING,
    linked_keys,
    point_folder,
    point_name,
    sweep_points,
)

UNFINISHED = "unfinished"


class ListedBy(NamedTuple):
    """The sweep that lists a run, and the keys that it varied."""

    sweep: Path
    keys: frozenset[str]


@dataclass(frozen=True)
class MissingRun:
    """A point of a sweep, or a run, that the report lacks.

    status: failed, infeasible, missing, unfinished or superseded.
    """

    what: str
    seed: str
    status: str
    error: str


def missing_runs(found: RunFolders) -> list[MissingRun]:
    """Points of the sweeps without a finished run, then unfinished runs that belong to no sweep.

    A sweep.json may be older than the folders beside it: a point whose run is finished is not
    missing.
    """
    finished = {folder.resolve() for folder in found.finished}
    unfinished = {folder.resolve(): folder for folder in found.unfinished}
    lacking = []
    for sweep in found.sweeps:
        for point in sweep_points(sweep):
            folder = point_folder(sweep, point)
            half_done = unfinished.pop(folder, None) is not None
            if folder not in finished:
                lacking.append(_missing_point(point, half_done))
    rest = [MissingRun(folder.name, "", UNFINISHED, "") for _, folder in sorted(unfinished.items())]
    return lacking + rest


def _missing_point(point: dict[str, Any], half_done: bool) -> MissingRun:
    status = str(point.get("status") or MISSING)
    status = UNFINISHED if half_done and status in (DONE, MISSING, "running") else status
    status = MISSING if status == DONE else status  # it was done, and its folder is gone
    seed, error = str(point.get("seed", "")), str(point.get("error") or "")
    return MissingRun(point_name(point), seed, status, error)


def superseded_runs(found: RunFolders, reported: Collection[Path]) -> list[MissingRun]:
    """Finished runs that gave way to another one of the same scheme and seed."""
    reason = "another run of the same scheme and seed, or one with more rounds, is reported"
    rest = [folder for folder in found.finished if folder not in reported]
    return [MissingRun(folder.name, "", "superseded", reason) for folder in rest]


def listed_folders(found: RunFolders) -> list[Path]:
    """Resolved folders of all points that sweep.json lists, in its order; others are of earlier
    sweeps.
    """
    return [point_folder(sweep, point) for sweep in found.sweeps for point in sweep_points(sweep)]


def keys_linked_by(found: RunFolders) -> list[tuple[str, ...]]:
    """Keys that the sweeps changed together."""
    groups = [group for sweep in found.sweeps for group in linked_keys(sweep)]
    return list(dict.fromkeys(groups))


def keys_swept_by(found: RunFolders) -> dict[Path, ListedBy]:
    """Resolved folder of a point -> the last sweep that lists it."""
    sweeps: dict[Path, ListedBy] = {}
    for sweep in found.sweeps:
        points = sweep_points(sweep)
        keys = frozenset(key for point in points for key in point.get("values") or {})
        sweeps |= {point_folder(sweep, point): ListedBy(sweep, keys) for point in points}
    return sweeps


def nothing_to_report(places: Sequence[Path], lacking: Sequence[MissingRun]) -> str:
    """The sentence about places where nothing is finished yet."""
    return nothing_finished(", ".join(map(str, places)), (run.status for run in lacking))
