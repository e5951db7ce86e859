"""Large arrays of a checkpoint: each in a file named by its content, so that it is written once.

Of the models that stay at a thousand devices only those of a round's participants are new. Two
folders take turns: a state's arrays lie in the one, those of the state before in the other, so that
no damage of a file is in both.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgesim.records.atomic_files import write_atomic
from fl.contracts import Array
from fl.regular_files import read_regular
from fl.stored_files import MAX_ARRAYS_BYTES, DamagedFileError

LARGE_BYTES = 1 << 20  # smaller arrays stay in the state's own file
_OURS = re.compile(r"[0-9a-f]{64}(\.new)?")
Index = dict[str, list[Any]]  # name of an array -> digest of its bytes, dtype, shape


class LargeArrays:
    """The folders of the large arrays of two states.

    Args:
        checkpoint: the folder in which they lie.
    """

    def __init__(self, checkpoint: Path) -> None:
        self.folders = checkpoint / "arrays-0", checkpoint / "arrays-1"
        # What this process wrote or read there: other files may be what a power loss left.
        self._whole: tuple[set[str], set[str]] = set(), set()

    def write(self, arrays: Mapping[str, Array], turn: int) -> tuple[dict[str, Array], Index]:
        """Write what is large, and not there yet.

        Args:
            arrays: of a state, by name.
            turn: 0 or 1, the folder; not that of the last whole state.

        Returns:
            The other arrays, and what `read` needs.

        Raises:
            OSError: a file cannot be written; what is there stays.
        """
        small, index = {}, {}
        for name, array in arrays.items():
            if array.nbytes < LARGE_BYTES:
                small[name] = array
                continue
            content = np.ascontiguousarray(array).data
            digest = hashlib.sha256(content).hexdigest()
            index[name] = [digest, array.dtype.str, list(array.shape)]
            path = self.folders[turn] / digest
            if digest not in self._whole[turn] or not path.exists():
                path.parent.mkdir(exist_ok=True)
                write_atomic(path, content)
                self._whole[turn].add(digest)
        return small, index

    def read(self, index: Index, turn: int) -> dict[str, Array]:
        """The arrays that `write` wrote.

        Raises:
            DamagedFileError: the bytes of one are not those that were written, or are gone.
        """
        arrays = {}
        for name, (digest, dtype, shape) in index.items():
            try:
                content = read_regular(self.folders[turn] / digest, MAX_ARRAYS_BYTES)
            except OSError as error:
                raise DamagedFileError(f"its array {name}: {error.strerror or error}") from error
            if hashlib.sha256(content).hexdigest() != digest:
                raise DamagedFileError(f"the bytes of its array {name} do not match their digest")
            self._whole[turn].add(digest)
            arrays[name] = np.frombuffer(content, dtype).reshape(shape).copy()
        return arrays

    def keep(self, index: Index, turn: int) -> None:
        """Remove the files of a folder that are not in ``index``."""
        kept = {digest for digest, *_ in index.values()}
        self._whole[turn].intersection_update(kept)
        for path in self._files(turn):
            if path.name not in kept:
                path.unlink()

    def remove(self) -> None:
        """Remove both folders, unless they hold something else."""
        for turn, folder in enumerate(self.folders):
            self.keep({}, turn)
            if _is_ours(folder) and not any(folder.iterdir()):
                folder.rmdir()

    def _files(self, turn: int) -> Iterator[Path]:
        folder = self.folders[turn]
        if _is_ours(folder):
            yield from (path for path in folder.iterdir() if _OURS.fullmatch(path.name))


def _is_ours(folder: Path) -> bool:
    """Whatever else names its files by digests may lie behind a link."""
    return folder.is_dir() and not folder.is_symlink()
