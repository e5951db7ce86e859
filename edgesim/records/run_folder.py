"""A run's folder: written atomically, appended round by round, resumable after kill -9.

``checkpoint/log.arrows`` grows by one block of Arrow streams a round and is never rewritten;
``checkpoint/state.safetensors`` is replaced after each round and says how many bytes of the log belong to it. A kill
between the two leaves a tail that the next start cuts off: at most the round in progress is lost. Nothing read back is
ever a pickle.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

OURS = [
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

MAY_LACK = {"partition.json"}  # where nothing is learned
LONG = 10_000  # rows above which a table of the log is read back as arrays


class FolderError(Exception):
    """The folder cannot be used for this run; one sentence says why and what to do."""


class FolderInUse(FolderError):
    """Another process is running there."""


@dataclass(frozen=True)
class Checkpoint:
    """The state after round g: arrays by name, JSON-able facts, and the log's rows so far by table."""

    g: int
    time_s: float
    arrays: dict[str, np.ndarray]
    facts: dict
    tables: list[dict[str, dict[str, list | np.ndarray]]]


class RunFolder:
    """The folder of one run, recognised by its fingerprint (scenario, seed, versions)."""

    def __init__(self, path: Path, fingerprint: str):
        self.path = Path(path)
        self.fingerprint = fingerprint
        self.state_file = self.path / "checkpoint" / "state.safetensors"
        self.log_file = self.path / "checkpoint" / "log.arrows"
        self.lock_file = self.path / "checkpoint" / "lock"
        self._lock = None

    def open(self, fresh: bool = False) -> Checkpoint | None:
        """Make the folder, or find what an earlier, interrupted run left in it. Held until `close`.

        Raises:
            FolderError: it holds another run, or something that is not a run; it is in use, or cannot be written.
        """
        try:
            self._refuse_strangers()
            self.state_file.parent.mkdir(parents=True, exist_ok=True)
            self._hold()
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
        """Let others use the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def is_finished(self) -> bool:
        """All that a run leaves is there; summary.json was written last."""
        return self.state_file.exists() and all(
            (self.path / name).exists() for name in set(OURS) - MAY_LACK
        )

    def _refuse_strangers(self) -> None:
        """Nothing but a run is ever written over: a run has a log beside its checkpoint."""
        if self.path.exists() and not self.path.is_dir():
            raise FolderError(f"{self.path} is a file; give --out a folder")
        inside = (
            [path for path in self.path.rglob("*") if not path.is_dir()]
            if self.path.exists()
            else []
        )
        if set(inside) - {self.lock_file} and not self.log_file.exists():
            raise FolderError(f"{self.path} is not empty and holds no run; give --out a new folder")

    def _hold(self) -> None:
        """Two processes must not write one run. (Where the system has no flock, nobody checks.)"""
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
            raise FolderInUse(
                f"another process is running in {self.path}; wait, or give another --out"
            ) from None
        self._lock = lock

    def save(
        self, g: int, time_s: float, arrays: dict[str, np.ndarray], facts: dict, tables: dict
    ) -> None:
        """Append one round's rows to the log, then replace the state: in this order, so that a kill loses neither."""
        from safetensors.numpy import save

        with open(self.log_file, "ab") as log:
            write_block(log, tables)
            end = log.tell()
        facts = {
            **facts,
            "fingerprint": self.fingerprint,
            "g": g,
            "time_s": time_s,
            "log_bytes": end,
        }
        arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
        write_atomic(
            self.state_file, save(arrays, metadata={"facts": json.dumps(facts, sort_keys=True)})
        )

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
        """What a run leaves, and nothing else; first what says that it is finished."""
        names = sorted(set(OURS) - {"checkpoint"}, key=lambda name: name != "summary.json")
        for path in (*(self.path / name for name in names), self.state_file):
            path.unlink(missing_ok=True)


def write_atomic(path: Path, content: bytes | str) -> None:
    """The old file or the new one, never half of one, and nothing beside it where the disk is full."""
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
    write_atomic(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def write_block(file, tables: dict[str, dict[str, list]]) -> None:
    """One round: per table with rows an Arrow stream of one record batch, with the table's name in the schema."""
    import pyarrow as pa

    filled = {name: columns for name, columns in tables.items() if any(map(len, columns.values()))}
    for name, columns in filled.items():
        batch = pa.table(columns).replace_schema_metadata({"table": name})
        with pa.ipc.new_stream(file, batch.schema) as writer:
            writer.write_table(batch)


def read_blocks(path: Path) -> list[dict[str, dict[str, list | np.ndarray]]]:
    """What `write_block` wrote, in order, as a list of {table: columns}; long columns as arrays."""
    import pyarrow as pa

    blocks = []
    size = path.stat().st_size
    with pa.OSFile(str(path)) as file:
        while file.tell() < size:
            table = pa.ipc.open_stream(file).read_all()
            long = table.num_rows > LONG
            columns = {
                c: table[c].to_numpy() if long else table[c].to_pylist() for c in table.column_names
            }
            blocks.append({table.schema.metadata[b"table"].decode(): columns})
    return blocks
