"""The folder of a run: written atomically, extended round by round, resumable after kill -9.

``checkpoint/log.arrows`` grows by one block of Arrow streams a round and is never rewritten;
``checkpoint/state.safetensors`` is replaced after each round and holds how many bytes of the log
belong to it. A kill between the two leaves a tail that the next start cuts off: at most the round
in progress is lost. Nothing that is read back is a pickle.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from edgesim.errors import RunError
from edgesim.records.arrow_columns import arrow_table

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
    "checkpoint",
]

ONLY_WITH_DATA = {"partition.json"}  # absent where nothing is learned
MAX_LIST_ROWS = 10_000  # longer tables of the log are read back as arrays
Tables = dict[str, dict[str, list | np.ndarray]]  # table -> column -> values


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
    """

    g: int
    time_s: float
    arrays: dict[str, np.ndarray]
    facts: dict
    tables: list[Tables]


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
        self.log_file = self.path / "checkpoint" / "log.arrows"
        self.lock_file = self.path / "checkpoint" / "lock"
        self._lock: IO[str] | None = None

    def open(self, fresh: bool = False) -> Checkpoint | None:
        """Make the folder, or read what an interrupted run left in it; locked until `close`.

        Args:
            fresh: remove what an earlier run left.

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
                raise FolderError(
                    f"{self.path} holds another run; use --fresh to replace it, or another --out"
                )
            if saved is None:
                self.log_file.write_bytes(b"")
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

    def is_finished(self) -> bool:
        """True if every file of a finished run is there; summary.json is written last."""
        needed = set(RUN_FILES) - ONLY_WITH_DATA
        return self.state_file.exists() and all((self.path / name).exists() for name in needed)

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
        from safetensors.numpy import save

        # In this order: a kill between the two leaves the state before, and a tail that is cut off.
        with open(self.log_file, "ab") as log:
            write_block(log, tables)
            end = log.tell()
        own = {"fingerprint": self.fingerprint, "g": g, "time_s": time_s, "log_bytes": end}
        arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
        metadata = {"facts": json.dumps({**facts, **own}, sort_keys=True)}
        write_atomic(self.state_file, save(arrays, metadata=metadata))

    def _read_state(self) -> Checkpoint | None:
        from safetensors import SafetensorError, safe_open

        if not self.state_file.exists():
            return None
        try:
            with safe_open(self.state_file, framework="numpy") as file:
                facts = json.loads(file.metadata()["facts"])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            self._cut_log(facts["log_bytes"])
            tables = read_blocks(self.log_file)
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise FolderError(
                f"{self.path}/checkpoint is damaged ({error}); use --fresh to start again"
            ) from error
        return Checkpoint(facts["g"], facts["time_s"], arrays, facts, tables)

    def _cut_log(self, size: int) -> None:
        """Drop what was appended after the last checkpoint."""
        found = self.log_file.stat().st_size
        if found < size:
            raise ValueError(f"its log has {found} bytes of {size}")
        if found > size:
            os.truncate(self.log_file, size)

    def _remove(self) -> None:
        """Remove the files of a run and no others; summary.json, which marks it finished, first."""
        names = sorted(set(RUN_FILES) - {"checkpoint"}, key=lambda name: name != "summary.json")
        for path in (*(self.path / name for name in names), self.state_file):
            path.unlink(missing_ok=True)


def write_atomic(path: Path, content: bytes | str) -> None:
    """Write a file so that a crash or a full disk leaves the old one or the new one."""
    data = content.encode() if isinstance(content, str) else content
    new = path.with_name(path.name + ".new")
    try:
        new.write_bytes(data)
        os.replace(new, path)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise


def write_json(path: Path, value: object) -> None:
    """Write a value as indented JSON with sorted keys; nan is refused."""
    write_atomic(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def write_block(file: IO[bytes], tables: Tables) -> None:
    """Append one round: per table with rows an Arrow stream, its schema with the table's name."""
    import pyarrow as pa

    filled = {name: columns for name, columns in tables.items() if any(map(len, columns.values()))}
    for name, columns in filled.items():
        batch = arrow_table(columns).replace_schema_metadata({"table": name})
        with pa.ipc.new_stream(file, batch.schema) as writer:
            writer.write_table(batch)


def read_blocks(path: Path) -> list[Tables]:
    """What `write_block` wrote, in order, one table each; long columns as arrays."""
    import pyarrow as pa

    blocks = []
    size = path.stat().st_size
    with pa.OSFile(str(path)) as file:
        while file.tell() < size:
            table = pa.ipc.open_stream(file).read_all()
            long = table.num_rows > MAX_LIST_ROWS
            columns = {
                c: table[c].to_numpy() if long else table[c].to_pylist() for c in table.column_names
            }
            blocks.append({table.schema.metadata[b"table"].decode(): columns})
    return blocks
