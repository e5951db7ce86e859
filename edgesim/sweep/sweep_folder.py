"""The folder of a sweep: ``points/<name>-<id>``, a run folder each, and ``sweep.json``.

Beside it lies ``sweep.parquet``, a table of the points with their key figures.

The id of a point is a digest of everything that decides its results. So a finished point is never
run again, a changed one is a new one, and an interrupted sweep needs nothing else to be continued.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Any

from edgesim.records.atomic_files import json_text, write_atomic
from edgesim.records.checkpoint.run_checkpoint import UNREADABLE, RunFolder
from edgesim.records.checkpoint.usable_folder import (
    FolderError,
    not_written,
    refuse_unusable,
    unusable,
)
from edgesim.results.loaded_results import write_sweep_table
from edgesim.results.sweep_file import DONE, INFEASIBLE, MISSING, SWEEP_TABLE
from edgesim.runs.scheme_position import renew_scheme_position
from edgesim.sweep.shorter_runs import ShorterRun, shorter_runs
from edgesim.sweep.sweep_plan import SweepPlan
from edgesim.sweep.sweep_point import SweepPoint
from fl.regular_files import open_lock
from fl.stored_files import BLANK, read_sealed_arrays, sealed


def refuse_unusable_sweep(path: Path) -> None:
    """Refuse a folder that holds something else; see `refuse_unusable`."""
    refuse_unusable(path, "sweep", path / "sweep.json", path / "lock")


class SweepFolder:
    """Where a sweep is kept, and the status of its points; one command at a time writes there."""

    def __init__(self, path: Path, plan: SweepPlan):
        self.path, self.plan = Path(path), plan
        self._known = {_id_of(folder): folder for folder in self._point_folders()}
        self.shared = self.path / "shared"
        self.status: dict[str, tuple[str, str | None]] = {
            point.id: self._found(point) for point in plan.points
        }
        self.shorter: dict[str, ShorterRun] = {}
        self._lock: Any = None

    def of(self, point: SweepPoint) -> Path:
        """The folder of a point: one with its id, whatever an earlier sweep called it."""
        return self._known.get(point.id, self.path / "points" / point.folder_name)

    def _point_folders(self) -> list[Path]:
        with suppress(OSError):
            return sorted((self.path / "points").iterdir())
        return []

    def _found(self, point: SweepPoint) -> tuple[str, str | None]:
        if point.infeasible:
            return INFEASIBLE, point.infeasible
        finished = RunFolder(self.of(point)).is_finished()
        return DONE if finished else MISSING, None

    def to_run(self) -> list[SweepPoint]:
        return self.with_status(MISSING)

    def with_status(self, status: str) -> list[SweepPoint]:
        return [point for point in self.plan.points if self.status[point.id][0] == status]

    def look_for_shorter(self, data: str | None = None, allow_code: bool = False) -> None:
        """Find the points that go on from a run with fewer rounds; see `shorter_runs`."""
        new = [point for point in self.to_run() if not self.of(point).exists()]
        self.shorter = shorter_runs(new, self._known.values(), data, allow_code)

    def rounds_left(self, point: SweepPoint) -> int:
        """Rounds that a point, or the run that it goes on from, has not; `stop` may save others."""
        begun = self.shorter.get(point.id)
        if begun and begun.stopped:
            return 0
        done = begun.rounds if begun else _rounds_kept(RunFolder(self.of(point)))
        return point.scenario.rounds - done

    def open(self) -> None:
        """Make the folder and write into it what is planned.

        Raises:
            FolderError: it is no sweep, another one is running in it, or it cannot be written.
        """
        path = self.path
        refuse_unusable_sweep(path)
        try:
            (path / "points").mkdir(parents=True, exist_ok=True)
            self._hold()
            # one of an earlier sweep would differ from the points of this one until it is closed
            (path / SWEEP_TABLE).unlink(missing_ok=True)
            self.write()
            for point in self.with_status(DONE):
                renew_scheme_position(self.of(point), point.scenario)
        except OSError as error:
            raise unusable(path, error) from error

    def _hold(self) -> None:
        lock = open_lock(self.path / "lock")
        with suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                problem = f"another sweep is running in {self.path}; wait, or give another --out"
                raise FolderError(problem) from None
            # the command before may have removed it after we had opened it
            if os.fstat(lock.fileno()).st_nlink == 0:
                lock.close()
                return self._hold()
        self._lock = lock
        return None

    def __enter__(self) -> SweepFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Close the folder; what ended the sweep is told before what closing it meets."""
        try:
            self.close()
        except FolderError:
            if kind is None:
                raise

    def close(self) -> None:
        """Write sweep.parquet and let others use the folder.

        What points shared is removed when no point is left to run.

        Raises:
            FolderError: the disk is full, or cannot be written any more.
        """
        if self._lock is None:
            return
        try:
            write_sweep_table(self.path)
            if not self.to_run():
                rmtree(self.shared, ignore_errors=True)
        except OSError as problem:
            raise not_written(self.path / SWEEP_TABLE, problem) from problem
        finally:
            self.remove_lock()
            self._lock.close()

    def remove_lock(self) -> None:
        """Remove its file while it is held: who has opened it meanwhile sees that it is gone."""
        with suppress(OSError):
            (self.path / "lock").unlink()

    def remove_shared(self, group: str | None) -> None:
        """Remove what the points of a group shared."""
        rmtree(self.shared / str(group)[:16], ignore_errors=True)

    def set_status(self, point: SweepPoint, status: str, error: str | None = None) -> None:
        """Write down how a point ended.

        Raises:
            FolderError: the disk is full, or cannot be written any more.
        """
        self.status[point.id] = status, error
        try:
            self.write()
        except OSError as problem:
            raise not_written(self.path / "sweep.json", problem) from problem

    def write(self) -> None:
        plan = self.plan
        content: dict[str, Any] = {"name": plan.name, "scenario": str(plan.source)}
        content |= {"axes": plan.axes, "linked": plan.linked}
        content["points"] = [self._row(point) for point in plan.points]
        content["digest"] = BLANK
        write_atomic(self.path / "sweep.json", sealed(json_text(content).encode()))

    def _row(self, point: SweepPoint) -> dict[str, Any]:
        status, error = self.status[point.id]
        return {
            "folder": f"points/{self.of(point).name}",
            "label": point.label,
            "values": point.values,
            "seed": point.seed,
            "status": status,
            "error": error,
        }

    def leftovers(self) -> int:
        """Runs of earlier sweeps that lie beside the points of this one."""
        planned = {point.id for point in self.plan.points}
        return sum(_id_of(path) not in planned for path in self._point_folders())


def _rounds_kept(run: RunFolder) -> int:
    """How many rounds a run had ended when it was interrupted."""
    for file in run.states:
        with suppress(*UNREADABLE):
            return int(read_sealed_arrays(file)[1]["g"]) + 1
    return 0


def _id_of(folder: Path) -> str:
    """The id at the end of the name of a point's folder."""
    return folder.name.rpartition("-")[2]
