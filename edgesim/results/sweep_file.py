"""sweep.json, which lists the points of a sweep: its reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgesim.results.run_files import ResultsError, read_json


def sweep_points(sweep: Path) -> list[dict[str, Any]]:
    """The points that sweep.json lists.

    Raises:
        ResultsError: the file is broken, or a point lacks its folder.
    """
    path = sweep / "sweep.json"
    points = read_json(path).get("points")
    if isinstance(points, list) and all(isinstance(p, dict) and p.get("folder") for p in points):
        return points
    raise ResultsError(f"{path} holds no list of points with their folders; run the sweep again.")


def point_folder(sweep: Path, point: dict[str, Any]) -> Path:
    """The resolved folder of a point's run, which sweep.json gives relative to the sweep's."""
    return (sweep / str(point["folder"])).resolve()


def point_name(point: dict[str, Any]) -> str:
    """A point's label and swept values: "liu: budget.latency_threshold=15ms, rounds=8"."""
    label = str(point.get("label") or "")
    values = ", ".join(f"{key}={text}" for key, text in (point.get("values") or {}).items())
    return ": ".join(part for part in (label, values) if part) or str(point["folder"])
