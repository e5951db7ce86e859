"""Search for the folders of runs and of sweeps below given places."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from edgesim.errors import ResultsError
from edgesim.results.sweep_file import INFEASIBLE, point_status, sweep_points

HINT = "give a run's folder or one that contains some"


class RunFolders(NamedTuple):
    """Folders of finished runs, of unfinished runs, and of sweeps (with a sweep.json)."""

    finished: list[Path]
    unfinished: list[Path]
    sweeps: list[Path]


def find_runs(places: Sequence[Path]) -> RunFolders:
    """Run folders in or below the given places, each once, and the sweeps found on the way.

    A link to the folder of a run counts where the run itself is not below the place.

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
    """Walk in name order; a run folder is not searched further.

    A link to a run is a run. Other links are not followed: they may lead round, or far away.
    """
    here, links = RunFolders([], [], []), []
    for name, below, files in os.walk(place, onerror=_unreadable):
        below.sort()
        folder = Path(name)
        if _add_run(here, folder, files):
            below.clear()
        elif "sweep.json" in files:
            here.sweeps.append(folder)
        links += [folder / each for each in below if (folder / each).is_symlink()]
    found = {run.resolve() for run in (*here.finished, *here.unfinished)}
    for link in links:
        inside = next(os.walk(link), None)  # None: it cannot be read
        if inside and link.resolve() not in found:
            _add_run(here, link, inside[2])
    here.finished.sort()
    here.unfinished.sort()
    return here


def _add_run(here: RunFolders, folder: Path, files: list[str]) -> bool:
    """Add a folder with these files, if it is one of a run."""
    finished = "summary.json" in files
    if finished or _is_unfinished(folder, files):
        (here.finished if finished else here.unfinished).append(folder)
        return True
    return False


def _is_unfinished(folder: Path, files: list[str]) -> bool:
    checkpoint = folder / "checkpoint"
    # a scenario.yaml alone is what somebody has written, and not a run
    started = "rounds.csv" in files or ("scenario.yaml" in files and checkpoint.is_dir())
    return started or (checkpoint / "log.arrows").is_file()


def _unreadable(error: OSError) -> None:
    raise ResultsError(f"{error.filename} cannot be read: {error.strerror}.")


def nothing_finished(where: object, statuses: Iterable[str]) -> str:
    """The sentence about a place where no run has finished, with what to do.

    Args:
        where: the place.
        statuses: of the runs and points there; none where they are not known.
    """
    counts = Counter(statuses)
    stock = ", ".join(f"{count} {status}" for status, count in counts.items())
    found = f"No finished run in {where}{f' ({stock})' * bool(stock)}"
    if set(counts) == {INFEASIBLE}:
        return f"{found}; the same sweep says for each point what its devices would need."
    return f"{found}; run it again to resume."


def statuses_in(found: RunFolders) -> list[str]:
    """Of the points of the sweeps that were found."""
    return [point_status(sweep, point) for sweep in found.sweeps for point in sweep_points(sweep)]
