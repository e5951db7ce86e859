"""A sweep's folder: ``points/<hash>``, one ordinary run folder each, and ``sweep.json``, which says how they went.

A point's hash holds everything that decides its results, so a finished point is never run again, a changed one is a new
one, and the folder of an interrupted sweep needs nothing else to be continued.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Any

from edgesim.records.run_folder import FolderError, RunFolder, write_json
from edgesim.sweep.points import Plan, Point

DONE, FAILED, INFEASIBLE, MISSING = "done", "failed", "infeasible", "missing"


class SweepFolder:
    """Where a sweep is kept, and the status of its points. Only one command at a time writes there."""

    def __init__(self, path: Path, plan: Plan):
        self.path, self.plan = Path(path), plan
        self.shared = self.path / "shared"
        self.status: dict[str, tuple[str, str | None]] = {
            point.id: self._found(point) for point in plan.points
        }
        self._lock: Any = None

    def of(self, point: Point) -> Path:
        return self.path / "points" / point.id

    def _found(self, point: Point) -> tuple[str, str | None]:
        if point.infeasible:
            return INFEASIBLE, point.infeasible
        return (
            DONE if RunFolder(self.of(point), point.fingerprint).is_finished() else MISSING
        ), None

    def to_run(self) -> list[Point]:
        return [point for point in self.plan.points if self.status[point.id][0] == MISSING]

    def with_status(self, status: str) -> list[Point]:
        return [point for point in self.plan.points if self.status[point.id][0] == status]

    def open(self) -> None:
        """Make the folder and say in it what is planned.

        Raises:
            FolderError: it is something else, another sweep is running in it, or it cannot be written.
        """
        if self.path.exists() and not self.path.is_dir():
            raise FolderError(f"{self.path} is a file; give --out a folder")
        try:
            if (
                self.path.exists()
                and any(self.path.iterdir())
                and not (self.path / "sweep.json").exists()
            ):
                raise FolderError(
                    f"{self.path} is not empty and holds no sweep; give --out a new folder"
                )
            (self.path / "points").mkdir(parents=True, exist_ok=True)
            self._hold()
            self.write()
        except OSError as error:
            raise FolderError(
                f"{self.path} cannot be used ({error.strerror or error}); give --out a folder"
            ) from error

    def _hold(self) -> None:
        lock = open(self.path / "lock", "a")  # noqa: SIM115 (held until close)
        with suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                raise FolderError(
                    f"another sweep is running in {self.path}; wait, or give another --out"
                ) from None
            if (
                os.fstat(lock.fileno()).st_nlink == 0
            ):  # the command before removed it after we had opened it
                lock.close()
                return self._hold()
        self._lock = lock
        return None

    def close(self) -> None:
        """Let others use the folder; what was shared between points goes when no point is left to run."""
        if self._lock is None:
            return
        if not self.to_run():
            rmtree(self.shared, ignore_errors=True)
        with suppress(
            OSError
        ):  # while it is held: who has opened it meanwhile sees that it is gone
            (self.path / "lock").unlink()
        self._lock.close()

    def forget(self, group: str) -> None:
        """Remove what the points of a group shared."""
        rmtree(self.shared / group[:16], ignore_errors=True)

    def set(self, point: Point, status: str, error: str | None = None) -> None:
        """Write down how a point went.

        Raises:
            FolderError: the disk is full, or cannot be written any more.
        """
        self.status[point.id] = status, error
        try:
            self.write()
        except OSError as problem:
            reason = problem.strerror or problem
            raise FolderError(
                f"{self.path}/sweep.json: {reason}; make room, and the same command goes on"
            ) from problem

    def write(self) -> None:
        plan = self.plan
        content = {"name": plan.name, "scenario": str(plan.source), "axes": plan.axes}
        write_json(
            self.path / "sweep.json",
            {**content, "points": [self._row(point) for point in plan.points]},
        )

    def _row(self, point: Point) -> dict[str, Any]:
        status, error = self.status[point.id]
        return {
            "folder": f"points/{point.id}",
            "label": point.label,
            "values": point.values,
            "seed": point.seed,
            "status": status,
            "error": error,
        }

    def leftovers(self) -> int:
        """Runs of earlier sweeps that lie beside the points of this one."""
        planned = {point.id for point in self.plan.points}
        with suppress(OSError):
            return sum(path.name not in planned for path in (self.path / "points").iterdir())
        return 0
