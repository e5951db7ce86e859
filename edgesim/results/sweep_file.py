"""sweep.json, which lists the points of a sweep: its reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgesim.errors import ResultsError, shorten
from edgesim.results.run_files import read_json

MAX_LETTERS = 1000  # of a name
DONE, FAILED, INFEASIBLE, MISSING = "done", "failed", "infeasible", "missing"
SWEEP_TABLE = "sweep.parquet"  # of the points, beside sweep.json


def sweep_points(sweep: Path) -> list[dict[str, Any]]:
    """The points that sweep.json lists.

    Raises:
        ResultsError: the file is broken, or a point lacks its folder.
    """
    path = sweep / "sweep.json"
    points = read_json(path).get("points")
    if not isinstance(points, list):
        raise ResultsError(f"{path} holds no list of points; run the sweep again.")
    for i, point in enumerate(points, 1):
        if not isinstance(point, dict):
            raise ResultsError(f"{path} is damaged: point {i} is no mapping; run the sweep again.")
        for key, (is_right, what) in POINT.items():
            if not is_right(point.get(key)):
                raise ResultsError(
                    f"{path} is damaged: {key} of point {i} is {shorten(point.get(key))}, not "
                    f"{what}; run the sweep again."
                )
    return points


def point_status(sweep: Path, listed: dict[str, Any]) -> str:
    """A point of sweep.json is done when its summary is there, whatever is listed."""
    if (point_folder(sweep, listed) / "summary.json").is_file():
        return DONE
    status = str(listed.get("status") or MISSING)
    return MISSING if status == DONE else status


def linked_keys(sweep: Path) -> list[tuple[str, ...]]:
    """The keys that the sweep changed together, as in ``a:b=1:2,3:4``.

    Raises:
        ResultsError: the file is broken.
    """
    path = sweep / "sweep.json"
    groups: Any = read_json(path).get("linked")
    is_right = isinstance(groups, list) and all(
        isinstance(group, list) and group and all(map(_is_text, group)) and None not in group
        for group in groups
    )
    if not is_right:
        raise ResultsError(
            f"{path} is damaged: linked is {shorten(groups)}, not lists of keys; run "
            "the sweep again."
        )
    return [tuple(group) for group in groups]


def _is_folder(value: Any) -> bool:
    """A path below the sweep's folder."""
    if not isinstance(value, str) or not value or "\0" in value or len(value) > MAX_LETTERS:
        return False
    path = Path(value)
    return not path.is_absolute() and ".." not in path.parts


def _is_text(value: Any) -> bool:
    return value is None or (isinstance(value, str) and len(value) <= MAX_LETTERS)


def _are_values(value: Any) -> bool:
    """Texts of any length, since a swept value may be a list for thousands of devices."""
    texts = value.values() if isinstance(value, dict) else [value]
    return all(text is None or isinstance(text, str) for text in texts)


def _is_seed(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value < 2**63)


POINT: dict[str, tuple[Callable[[Any], bool], str]] = {
    "folder": (_is_folder, "a folder below the sweep's"),
    "label": (_is_text, f"a text of at most {MAX_LETTERS} letters"),
    "values": (_are_values, "texts by key"),
    "seed": (_is_seed, "a whole number"),
    "status": (_is_text, f"a text of at most {MAX_LETTERS} letters"),
    "error": (lambda value: value is None or isinstance(value, str), "a sentence"),
}


def point_folder(sweep: Path, point: dict[str, Any]) -> Path:
    """The resolved folder of a point's run, which sweep.json gives relative to the sweep's."""
    return (sweep / str(point["folder"])).resolve()


def point_name(point: dict[str, Any]) -> str:
    """A point's label and swept values: "liu: budget.latency_threshold=15ms, rounds=8"."""
    label = str(point.get("label") or "")
    values = ", ".join(f"{key}={text}" for key, text in (point.get("values") or {}).items())
    return ": ".join(part for part in (label, values) if part) or str(point["folder"])
