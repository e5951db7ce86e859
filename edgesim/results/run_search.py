"""Search for the folders of runs and of sweeps below given places."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from edgesim.errors import ResultsError

HINT = "give a run's folder or one that contains some"


class RunFolders(NamedTuple):
    """Folders of finished runs, of unfinished runs, and of sweeps (with a sweep.json)."""

    finished: list[Path]
    unfinished: list[Path]
    sweeps: list[Path]


def find_runs(places: Sequence[Path]) -> RunFolders:
    """Run folders in or below the given places, each once, and the sweeps found on the way.

    Raises:
        ResultsError: a place that is no folder, cannot be read, or holds neither a run nor a sweep.
    """
    found: tuple[dict[Path, Path], ...] = ({}, {}, {})
    for place in map(Path, places):
        if not place.is_dir():
            raise ResultsError(f"{place} is not a folder; {HINT}.")
        here = _search(place)
        if not any(here):
            raise ResultsError(f"No runs found in {place}; {HINT}.")
        for known, folders in zip(found, here, strict=True):
            known.update({folder.resolve(): folder for folder in folders})
    return RunFolders(*(list(known.values()) for known in found))


def _search(place: Path) -> RunFolders:
    """Walk in name order; a run folder is not searched further."""
    here = RunFolders([], [], [])
    for name, below, files in os.walk(place, onerror=_unreadable):
        below.sort()
        folder = Path(name)
        if "summary.json" in files:
            here.finished.append(folder)
            below.clear()
        elif _is_unfinished(folder, files):
            here.unfinished.append(folder)
            below.clear()
        elif "sweep.json" in files:
            here.sweeps.append(folder)
    return here


def _is_unfinished(folder: Path, files: list[str]) -> bool:
    checkpoint = folder / "checkpoint"
    # a scenario.yaml alone is what somebody has written, and not a run
    started = "rounds.csv" in files or ("scenario.yaml" in files and checkpoint.is_dir())
    return started or (checkpoint / "log.arrows").is_file()


def _unreadable(error: OSError) -> None:
    raise ResultsError(f"{error.filename} cannot be read: {error.strerror}.")
