"""Runs of an earlier sweep that had fewer rounds: points with more of them go on from there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

from edgesim.records.checkpoint.run_checkpoint import UNREADABLE, RunFolder
from edgesim.records.checkpoint.usable_folder import not_written
from edgesim.runs.continuation import kept_lengths
from edgesim.runs.setup.make_setup import set_up
from edgesim.runs.tensorboard_log import FOLDER
from edgesim.scenario.documents.yaml_text import MAX_RESOLVED_BYTES
from edgesim.sweep.sweep_point import SweepPoint, identity_of_point
from fl.regular_files import read_regular

_ROUNDS = re.compile(rb"^rounds: (\d{1,18})$", re.MULTILINE)  # 200 times faster than by parsing


@dataclass(frozen=True)
class ShorterRun:
    """A finished run that is the beginning of a point.

    Args:
        folder: of the run.
        rounds: how many it has.
        stopped: by `stop`, so that no more rounds follow.
    """

    folder: Path
    rounds: int
    stopped: bool = False

    def copy_state(self, place: Path, workplace: Path, tensorboard: bool = False) -> None:
        """Make the folder of a point in which its run goes on; one that is there stays as it is.

        Args:
            place: of the point's folder.
            workplace: a folder of the same file system, in which what a kill leaves disturbs
                nobody.
            tensorboard: copy the scalars of its rounds as well, if there are any.

        Raises:
            FolderError: the disk is full, or cannot be written any more.
        """
        if place.exists():
            return
        try:
            workplace.mkdir(parents=True, exist_ok=True)
            # a worker that was lost may still copy the same: each has a folder of its own
            with TemporaryDirectory(dir=workplace, ignore_cleanup_errors=True) as own:
                half = Path(own) / place.name
                self._copy(half, tensorboard)
                os.replace(half, place)
        except OSError as problem:
            if not place.exists():  # else another worker was sooner
                raise not_written(place, problem) from problem

    def _copy(self, half: Path, tensorboard: bool) -> None:
        for name in (FOLDER, "checkpoint") if tensorboard else ("checkpoint",):
            before, new = self.folder / name, half / f"{name}.new"  # not yet a run to any search
            for file in before.rglob("*"):
                if file.is_file() and file.name != "lock":
                    copied = new / file.relative_to(before)
                    copied.parent.mkdir(parents=True, exist_ok=True)
                    copyfile(file, copied)
            if new.exists():
                new.rename(half / name)


def shorter_runs(
    points: Sequence[SweepPoint], folders: Iterable[Path], data: str | None, allow_code: bool
) -> dict[str, ShorterRun]:
    """Id of a point -> the finished run that is its longest beginning; others have none.

    Jobs that overlap the end of a run are interrupted there, so that such a run begins no other;
    nor does one with parameters that follow from its number of rounds (`Method.by_length`).

    Args:
        points: that have not run.
        folders: of runs, by the names that a sweep gives them.
        data: folder of the data files; None: EDGESIM_DATA.
        allow_code: code of the user's own may run.
    """
    known = {folder.name.rpartition("-")[2]: folder for folder in folders}
    if not (known and points):
        return {}
    lengths = {rounds for folder in known.values() if (rounds := _planned_rounds(folder))}
    found: dict[str, ShorterRun] = {}
    for point in points:
        fewer = sorted((each for each in lengths if each < point.scenario.rounds), reverse=True)
        if point.infeasible or not fewer:
            continue
        setup = set_up(point.scenario, data=data, allow_code=allow_code)
        if setup.clock.overlapping:
            continue
        for rounds in fewer:
            folder = known.get(identity_of_point(setup.with_rounds(rounds)))
            if not folder or kept_lengths(setup, rounds):
                continue
            if facts := _last_facts(RunFolder(folder)):
                found[point.id] = ShorterRun(folder, facts["g"] + 1, bool(facts.get("ended")))
                break
    return found


def _planned_rounds(folder: Path) -> int | None:
    """The `rounds` of a run's scenario, though `stop` may have ended it sooner."""
    with suppress(OSError):
        found = _ROUNDS.search(read_regular(folder / "scenario.yaml", MAX_RESOLVED_BYTES))
        return int(found[1]) if found else None
    return None


def _last_facts(run: RunFolder) -> dict[str, Any] | None:
    """Those of its last state; None where another run cannot go on from there.

    It can from a finished run with a whole state, without warnings that a new run would not have.
    """
    try:
        facts = run.read_state(run.state_file)[1]
        run.log.check(facts)
    except UNREADABLE:
        return None
    return facts if not facts.get("warnings") and run.is_finished() else None
