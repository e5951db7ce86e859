"""Named arrays by key in a folder that several processes share.

Files are written at once or not at all, the folder is bounded, and it may be deleted at any time:
what is missing, damaged or of another key is computed again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fl.contracts import Array
from fl.regular_files import open_lock
from fl.stored_files import DamagedFileError, read_sealed_arrays, sealed_arrays

MAX_BYTES = 2 << 30
LOCK_DIGITS = 2  # hexadecimal digits of a key that choose its lock file: 256 of them


class ArrayStore:
    """A folder of safetensors files.

    Args:
        folder: made when something is first stored.
        max_bytes: size of the folder above which nothing is added; its owner deletes the folder.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self.folder, self.max_bytes = Path(folder), max_bytes

    def get(self, key: str) -> tuple[dict[str, Array], Any] | None:
        """Arrays and record under a key; None where nothing is stored, or it is damaged."""
        try:
            arrays, facts = read_sealed_arrays(self._path(key))
        except (OSError, DamagedFileError):
            return None
        return (arrays, facts["record"]) if facts.get("key") == key else None

    def put(self, key: str, arrays: Mapping[str, Array], record: Any) -> None:
        """Store arrays and a JSON-able record, if there is room."""
        if self._size() + sum(array.nbytes for array in arrays.values()) > self.max_bytes:
            return
        new = self._path(key).with_suffix(f".{os.getpid()}.new")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            new.unlink(missing_ok=True)  # a link there would have another file written
            new.write_bytes(sealed_arrays(arrays, {"key": key, "record": record}))
            os.replace(new, self._path(key))
        except OSError:
            with suppress(OSError):
                new.unlink()

    @contextmanager
    def making(self, key: str) -> Iterator[None]:
        """Lock of a key: a second process waits, and then finds what the first one stored."""
        lock = self._lock(key)
        try:
            yield
        finally:
            if lock is not None:
                lock.close()

    def _lock(self, key: str) -> Any:
        """The open file that holds the lock; None where the system or its disk has no locks."""
        try:
            import fcntl

            self.folder.mkdir(parents=True, exist_ok=True)
            lock = open_lock(self.folder / f"{key[:LOCK_DIGITS]}.lock")
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
