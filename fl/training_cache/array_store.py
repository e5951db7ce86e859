"""Arrays by key in a folder that several processes share: written at once or not at all, bounded, safe to delete.

It is a shortcut and nothing else: what is missing, damaged or does not fit is computed instead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray
LIMIT = 2 << 30  # bytes of a store
LOCKS = 2  # hexadecimal digits of a key that choose its lock: 256 of them


class Store:
    """A folder of safetensors.

    Args:
        limit: bytes in it above which nothing is added; who fills it removes it when it is no longer needed.
    """

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder, self.limit = Path(folder), limit

    def get(self, key: str) -> tuple[dict[str, Array], Any] | None:
        """The arrays and the record under a key; None where there is nothing that can be read."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self._path(key), framework="numpy") as file:
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
                return arrays, json.loads(file.metadata()["record"])
        except (OSError, SafetensorError, KeyError, TypeError, ValueError):
            return None

    def put(self, key: str, arrays: Mapping[str, Array], record: Any) -> None:
        """Keep arrays and a JSON-able record, if there is room."""
        from safetensors.numpy import save

        if self._size() + sum(array.nbytes for array in arrays.values()) > self.limit:
            return
        content = save(
            {name: np.ascontiguousarray(a) for name, a in arrays.items()},
            {"record": json.dumps(record)},
        )
        new = self._path(key).with_suffix(f".{os.getpid()}.new")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            new.write_bytes(content)
            os.replace(new, self._path(key))
        except OSError:
            with suppress(OSError):
                new.unlink()

    @contextmanager
    def making(self, key: str) -> Iterator[None]:
        """Held by one process at a time: who comes second waits, and then finds what the first has made."""
        lock = self._locked(key)
        try:
            yield
        finally:
            if lock is not None:
                lock.close()

    def _locked(self, key: str) -> Any:
        """The open file that holds the lock; None where the system or its disk has none."""
        try:
            import fcntl

            self.folder.mkdir(parents=True, exist_ok=True)
            lock = open(self.folder / f"{key[:LOCKS]}.lock", "a")  # noqa: SIM115 (held until `making` ends)
        except (ImportError, OSError):
            return None
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.safetensors"

    def _size(self) -> int:
        with suppress(OSError), os.scandir(self.folder) as files:
            return sum(file.stat().st_size for file in files)
        return 0
