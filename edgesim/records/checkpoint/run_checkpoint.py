"""The folder of a run: written atomically, extended round by round, resumable after kill -9.

``checkpoint/log.arrows`` grows by one block of Arrow streams a round and is never rewritten;
``checkpoint/state.safetensors`` is replaced after each round and holds how many bytes of the log
belong to it, and their digest beside its own. A kill between the two leaves a tail that the next
start cuts off: at most the round in progress is lost. The state before the last one is kept, for
the case that the last one is damaged. Arrays of a megabyte and more lie beside it, see
`edgesim.records.checkpoint.large_arrays`. Nothing that is read back is a pickle.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import IO

import numpy as np

from edgesim.errors import one_line
from edgesim.records.atomic_files import write_atomic
from edgesim.records.checkpoint.checkpoint_log import CheckpointLog, Tables
from edgesim.records.checkpoint.large_arrays import LargeArrays
from edgesim.records.checkpoint.usable_folder import (
    REPLACE,
    USE_FRESH,
    FolderError,
    FolderInUseError,
    refuse_unusable,
    unusable,
)
from edgesim.records.checksums import SUMS, FileDamage, damaged_files
from edgesim.records.run_tables.table_files import FILES, ONLY_WITH_ROWS
from fl.regular_files import open_lock
from fl.stored_files import DamagedFileError, read_sealed_arrays, sealed_arrays

RUN_FILES = [
    "scenario.yaml",
    *FILES.values(),
    "summary.json",
    "timing.json",
    "partition.json",
    "devices.csv",
    "model.safetensors",
    "trace.json",
    SUMS,
    "checkpoint",
]
# absent where nothing is learned, and where a table has nothing to say
OPTIONAL = {"partition.json", *(FILES[name] for name in ONLY_WITH_ROWS)}
# Raised over the content of a state that no run wrote, and over one that is damaged, too.
FOREIGN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
UNREADABLE = (DamagedFileError, OSError, *FOREIGN)


def reason_of(error: Exception) -> str:
    """What one of `UNREADABLE` says, as a part of a sentence."""
    said = getattr(error, "strerror", None) or one_line(error)
    return f"no {said}" if isinstance(error, KeyError) else said


@dataclass(frozen=True)
class Checkpoint:
    """The state after round g.

    Args:
        g: number of the round.
        time_s: simulated time at its end, s.
        arrays: of the method's state, by name.
        facts: values for JSON that belong to the state.
        tables: the log's rows so far, in blocks.
        warnings: for summary.json, on what was found when the run was resumed, such as damage.
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
        fingerprint: hash of all that decides the run's results, by which the folder is recognised;
            it is not needed where nothing is resumed.
    """

    def __init__(self, path: Path, fingerprint: str = "") -> None:
        self.path = Path(path)
        self.fingerprint = fingerprint
        self.state_file = self.path / "checkpoint" / "state.safetensors"
        self.previous_file = self.path / "checkpoint" / "previous-state.safetensors"
        # the second alone where a kill came before the new state
        self.states = self.state_file, self.previous_file
        self.log_file = self.path / "checkpoint" / "log.arrows"
        self.log = CheckpointLog(self.log_file)
        self.lock_file = self.path / "checkpoint" / "lock"
        self.large = LargeArrays(self.state_file.parent)
        self._turn = 1  # where the large arrays of the last whole state are
        self._lock: IO[bytes] | None = None
        self._found: list[str] | None = None  # what lay here before; None: there was no folder
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
        self.refuse_unusable()
        try:
            self._found = os.listdir(self.path) if self.path.exists() else None
            self.state_file.parent.mkdir(parents=True, exist_ok=True)
            self._acquire_lock()
            if fresh:
                self._remove()
            saved = self._read_state()
            if saved is not None and saved.facts.get("fingerprint") != self.fingerprint:
                if check_other is None:
                    raise FolderError(f"{self.path} holds another run; {REPLACE}")
                check_other(saved)
                for name in ("summary.json", SUMS):  # the run has not ended any more
                    (self.path / name).unlink(missing_ok=True)
            if saved is None:
                self.log.clear()
                self.large.remove()
        except OSError as error:
            raise unusable(self.path, error) from error
        return saved

    def refuse_unusable(self) -> None:
        """Refuse a folder that holds something else; see `refuse_unusable`."""
        refuse_unusable(self.path, "run", self.log_file, self.lock_file)

    def close(self) -> None:
        """Release the lock of the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def discard_unstarted(self) -> None:
        """Remove what was written here if no round has ended, and nothing lay here at the start."""
        begun = any(file.exists() for file in self.states)
        if self._lock is None or self._found or begun:
            return
        with suppress(OSError):  # it is the error that ended the run that is reported
            others = {file.name for file in self.path.iterdir()} - {"scenario.yaml", "checkpoint"}
            if others:
                return  # without the log they would be taken for files that no run wrote
            (self.path / "scenario.yaml").unlink(missing_ok=True)
            rmtree(self.state_file.parent)
            if self._found is None:
                self.path.rmdir()

    def damage(self) -> list[FileDamage] | None:
        """Damaged files of a run that has ended here; None: none has ended, or files are gone."""
        needed = set(RUN_FILES) - OPTIONAL
        there = self.state_file.exists() and all((self.path / name).exists() for name in needed)
        return damaged_files(self.path) if there else None

    def is_finished(self) -> bool:
        """True if every file of a finished run is there, as it was written."""
        return self.damage() == []

    def _acquire_lock(self) -> None:
        """Keep other processes out of the folder, where the system has flock."""
        if self._lock is not None:
            return
        lock = open_lock(self.lock_file)
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
        turn = 1 - self._turn
        small, large = self.large.write(arrays, turn)
        content = sealed_arrays(small, {**facts, **own, "large": large, "turn": turn})
        if not self._is_older:  # a damaged state does not take the place of a whole one
            with suppress(FileNotFoundError):
                os.replace(self.state_file, self.previous_file)
        write_atomic(self.state_file, content)
        self._is_older, self._turn = False, turn
        self.large.keep(large, turn)

    def read_state(self, file: Path) -> tuple[dict[str, np.ndarray], dict]:
        """Arrays and facts of one of the two states.

        Raises:
            DamagedFileError: they are not those that were written.
            OSError: the file cannot be read.
        """
        arrays, facts = read_sealed_arrays(file)
        arrays |= self.large.read(facts.get("large", {}), facts.get("turn", 0))
        return {name: arrays[name] for name in sorted(arrays)}, facts

    def _read_state(self) -> Checkpoint | None:
        """The last checkpoint, or the one before it where the last one is damaged."""
        damage: list[str] = []
        for file in self.states:
            if not file.exists():
                continue
            try:
                arrays, facts = self.read_state(file)
                tables = self.log.restore(facts)
                g, time_s = int(facts["g"]), float(facts["time_s"])
                warnings = list(facts.get("warnings", ()))
            except UNREADABLE as error:
                damage.append(f"{file.name}: {reason_of(error)}")
                continue
            self._is_older, self._turn = bool(damage), facts.get("turn", 1)
            if damage:
                warnings.append(
                    f"the checkpoint was damaged ({damage[0]}); the run went on from the one "
                    f"before it, after round {g}"
                )
            return Checkpoint(g, time_s, arrays, facts, tables, warnings, self._is_older)
        if damage:
            raise FolderError(
                f"{self.path}/checkpoint is damaged ({'; '.join(damage)}), or was written before "
                f"checkpoints had digests; {USE_FRESH} to start again"
            )
        return None

    def _remove(self) -> None:
        """Remove the files of a run and no others; summary.json, which marks it finished, first."""
        names = sorted(set(RUN_FILES) - {"checkpoint"}, key=lambda name: name != "summary.json")
        for path in (*(self.path / name for name in names), *self.states):
            path.unlink(missing_ok=True)
