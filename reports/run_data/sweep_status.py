"""What a sweep planned and what is not there: read from its sweep.json and from unfinished run folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.run_data.load_runs import Found, ReportError, read_json

DONE, UNFINISHED = "done", "unfinished"


@dataclass(frozen=True)
class Missing:
    """A point of a sweep, or a run, that the report lacks."""

    what: str
    seed: str
    status: str  # failed, infeasible, missing, unfinished, superseded
    error: str


def missing(found: Found) -> list[Missing]:
    """Points of the sweeps without a finished run, then unfinished runs that belong to no sweep.

    A sweep.json may be older than the folders beside it: a point whose run is finished is not missing.
    """
    finished = {folder.resolve() for folder in found.finished}
    unfinished = {folder.resolve(): folder for folder in found.unfinished}
    lacking = []
    for sweep in found.sweeps:
        for point in points(sweep):
            folder = folder_of(sweep, point)
            half_done = unfinished.pop(folder, None) is not None
            if folder not in finished:
                lacking.append(_point(point, half_done))
    rest = [Missing(folder.name, "", UNFINISHED, "") for _, folder in sorted(unfinished.items())]
    return lacking + rest


def listed(found: Found) -> frozenset[Path]:
    """Folders of all points that the sweeps list, resolved; others beside them are of earlier sweeps."""
    return frozenset(folder_of(sweep, point) for sweep in found.sweeps for point in points(sweep))


def superseded(found: Found, reported: Sequence[Path]) -> list[Missing]:
    """Finished runs that gave way to the point of the same scheme and seed that the sweep lists now."""
    reason = "sweep.json lists another point of the same scheme and seed"
    return [
        Missing(folder.name, "", "superseded", reason)
        for folder in found.finished
        if folder not in set(reported)
    ]


def points(sweep: Path) -> list[dict[str, Any]]:
    """The points that sweep.json lists.

    Raises:
        ReportError: the file is broken, or a point lacks its folder.
    """
    path = sweep / "sweep.json"
    listed = read_json(path).get("points")
    if not isinstance(listed, list) or not all(
        isinstance(point, dict) and point.get("folder") for point in listed
    ):
        raise ReportError(
            f"{path} holds no list of points with their folders; run the sweep again."
        )
    return listed


def folder_of(sweep: Path, point: dict[str, Any]) -> Path:
    """Where a point's run lies: its folder is relative to the sweep's."""
    return (sweep / str(point["folder"])).resolve()


def name_of(point: dict[str, Any]) -> str:
    """A point by its label and the values that were swept: "liu: budget.latency_threshold=15ms, rounds=8"."""
    values = point.get("values") or {}
    parts = [
        str(point.get("label") or ""),
        ", ".join(f"{key}={text}" for key, text in values.items()),
    ]
    return ": ".join(part for part in parts if part) or str(point["folder"])


def _point(point: dict[str, Any], half_done: bool) -> Missing:
    status = str(point.get("status") or "missing")
    status = UNFINISHED if half_done and status in (DONE, "missing", "running") else status
    status = "missing" if status == DONE else status  # it was done, and its folder is gone
    return Missing(
        name_of(point), str(point.get("seed", "")), status, str(point.get("error") or "")
    )


def nothing_finished(places: Sequence[Path], lacking: Sequence[Missing]) -> str:
    """The sentence about places where nothing is finished yet."""
    counts: dict[str, int] = {}
    for one in lacking:
        counts[one.status] = counts.get(one.status, 0) + 1
    stock = ", ".join(f"{count} {status}" for status, count in counts.items())
    return f"No finished run in {', '.join(map(str, places))} ({stock}); run it again to resume, then report."
