"""The folder of a run: written atomically, extended round by round, resumable after kill -9.

``checkpoint/log.arrows`` grows by one block of Arrow streams a round and is never rewritten;
``checkpoint/state.safetensors`` is replaced after each round and holds how many bytes of the log
belong to it, and their digest beside its own. A kill between the two leaves a tail that the next
start cuts off: at most the round in progress is lost. The state before the last one is kept, for
the case that the last one is damaged. Nothing that is read back is a pickle.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from edgesim.errors import RunError
from edgesim.records.atomic_files import write_atomic
from edgesim.records.checkpoint_log import CheckpointLog, Tables
from edgesim.records.checksums import SUMS, FileDamage, damaged_files
from fl.stored_files import DamagedFileError, read_sealed_arrays, sealed_arrays

RUN_FILES = [
    "scenario.yaml",
    "rounds.csv",
    "device_rounds.parquet",
    "spans.parquet",
    "scores.parquet",
    "measures.csv",
    "summary.json",
    "timing.json",
    "partition.json",
    "devices.csv",
    "model.safetensors",
    "trace.json",
    SUMS,
    "checkpoint",
]

ONLY_WITH_DATA = {"partition.json"}  # absent where nothing is learned


class FolderError(RunError):
    """The folder cannot be used for this run."""


class FolderInUseError(FolderError):
    """Another process is running in the folder."""


@dataclass(frozen=True)
class Checkpoint:
    """The state after round g.

    Args:
        g: number of the round.
        time_s: simulated time at its end, s.
        arrays: of the method's state, by name.
        facts: values for JSON that belong to the state.
        tables: the log's rows so far, in blocks.
        warnings: for summary.json, on damage that was found when the run was resumed.
        is_older: the last checkpoint was damaged, and this is the one before it.
    """

    g: int
    time_s: float
    arrays: dict[str, np.ndarray]
    facts: dict
    tables: list[Tables]
    warnings: list[str] = field(default_factory=list)
    is_older: bool = False


class RunFolder:
    """The folder of one run.

    Args:
        path: of the folder.
        fingerprint: hash of all that decides the run's results, by which the folder is recognised.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = Path(path)
        self.fingerprint = fingerprint
        self.state_file = self.path / "checkpoint" / "state.safetensors"
        self.previous_file = self.path / "checkpoint" / "previous-state.safetensors"
        self.log_file = self.path / "checkpoint" / "log.arrows"
        self.log = CheckpointLog(self.log_file)
        self.lock_file = self.path / "checkpoint" / "lock"
        self._lock: IO[str] | None = None
        self._is_older = False  # the last state is damaged, and the run goes on from the other one

    def open(
        self, fresh: bool = False, check_other: Callable[[Checkpoint], None] | None = None
    ) -> Checkpoint | None:
        """Make the folder, or read what an interrupted run left in it; locked until `close`.

        Args:
            fresh: remove what an earlier run left.
            check_other: called with a checkpoint of another fingerprint; raises FolderError unless
                the run may go on from there. None: it never may.

        Raises:
            FolderError: it holds another run, or files that are not a run's; it is in use, or
                cannot be written.
        """
        try:
            self._refuse_other_files()
            self.state_file.parent.mkdir(parents=True, exist_ok=True)
            self._acquire_lock()
            if fresh:
                self._remove()
            saved = self._read_state()
            if saved is not None and saved.facts.get("fingerprint") != self.fingerprint:
                if check_other is None:
                    raise FolderError(
                        f"{self.path} holds another run; use --fresh to replace it, or another "
                        "--out"
                    )
                check_other(saved)
                for name in ("summary.json", SUMS):  # the run has not ended any more
                    (self.path / name).unlink(missing_ok=True)
            if saved is None:
                self.log.clear()
        except OSError as error:
            raise FolderError(
                f"{self.path} cannot be used ({error.strerror or error}); give --out a folder"
            ) from error
        return saved

    def close(self) -> None:
        """Release the lock of the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def damage(self) -> list[FileDamage] | None:
        """Damaged files of a run that has ended here; None: none has ended, or files are gone."""
        needed = set(RUN_FILES) - ONLY_WITH_DATA
        there = self.state_file.exists() and all((self.path / name).exists() for name in needed)
        return damaged_files(self.path) if there else None

    def is_finished(self) -> bool:
        """True if every file of a finished run is there, as it was written."""
        return self.damage() == []

    def _refuse_other_files(self) -> None:
        """Raise FolderError unless the folder is empty or holds a run, which has a log."""
        if self.path.exists() and not self.path.is_dir():
            raise FolderError(f"{self.path} is a file; give --out a folder")
        files = {path for path in self.path.rglob("*") if not path.is_dir()}
        if files - {self.lock_file} and not self.log_file.exists():
            raise FolderError(f"{self.path} is not empty and holds no run; give --out a new folder")

    def _acquire_lock(self) -> None:
        """Keep other processes out of the folder, where the system has flock."""
        if self._lock is not None:
            return
        lock = open(self.lock_file, "a")  # noqa: SIM115 (held until close)
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except BlockingIOError:
            lock.close()
            raise FolderInUseError(
                f"another process is running in {self.path}; wait, or give another --out"
            ) from None
        self._lock = lock

    def save(
        self, g: int, time_s: float, arrays: dict[str, np.ndarray], facts: dict, tables: Tables
    ) -> None:
        """Append the rows of round g to the log and replace the state; see `Checkpoint`."""
        # In this order: a kill between two steps leaves the state before, or that state under its
        # second name, and a tail of the log that is cut off.
        own = {"fingerprint": self.fingerprint, "g": g, "time_s": time_s, **self.log.append(tables)}
        content = sealed_arrays(arrays, {**facts, **own})
        if not self._is_older:  # a damaged state does not take the place of a whole one
            with suppress(FileNotFoundError):
                os.replace(self.state_file, self.previous_file)
        self._is_older = False
        write_atomic(self.state_file, content)

    def _read_state(self) -> Checkpoint | None:
        """The last checkpoint, or the one before it where the last one is damaged."""
        damage: list[str] = []
        for file in (self.state_file, self.previous_file):
            if not file.exists():
                continue
            try:
                arrays, facts = read_sealed_arrays(file)
                tables = self.log.restore(facts)
                g, time_s = int(facts["g"]), float(facts["time_s"])
            except (DamagedFileError, OSError, KeyError, TypeError, ValueError) as error:
                damage.append(f"{file.name}: {getattr(error, 'strerror', None) or error}")
                continue
            self._is_older = bool(damage)
            warnings = list(facts.get("warnings", ()))
            if damage:
                warnings.append(
                    f"the checkpoint was damaged ({damage[0]}); the run went on from the one "
                    f"before it, after round {g}"
                )
            return Checkpoint(g, time_s, arrays, facts, tables, warnings, self._is_older)
        if damage:
            raise FolderError(
                f"{self.path}/checkpoint is damaged ({'; '.join(damage)}), or was written before "
                "checkpoints had digests; use --fresh to start again"
            )
        return None

    def _remove(self) -> None:
        """Remove the files of a run and no others; summary.json, which marks it finished, first."""
        names = sorted(set(RUN_FILES) - {"checkpoint"}, key=lambda name: name != "summary.json")
        for path in (*(self.path / name for name in names), self.state_file, self.previous_file):
            path.unlink(missing_ok=True)
