"""The log of a run's checkpoint: blocks of Arrow streams, one a round, that are only appended."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import IO, Any

import numpy as np

from edgesim.records.run_tables.arrow_columns import arrow_table
from fl.regular_files import open_regular
from fl.stored_files import DamagedFileError

MAX_LIST_ROWS = 10_000  # longer tables of the log are read back as arrays
CHUNK_BYTES = 1 << 20
Tables = dict[str, dict[str, list | np.ndarray]]  # table -> column -> values


class CheckpointLog:
    """The file of the blocks, with the running digest of all its bytes.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digest = hashlib.sha256()

    def clear(self) -> None:
        """Start an empty log, in the place of whatever lies there: a link, or a pipe."""
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(b"")
        self._digest = hashlib.sha256()

    def append(self, tables: Tables) -> dict[str, Any]:
        """Append the block of a round; the facts by which `restore` finds and checks it."""
        with open(self.path, "ab") as file:
            write_block(_HashedFile(file, self._digest), tables)
            return {"log_bytes": file.tell(), "log_sha256": self._digest.hexdigest()}

    def check(self, facts: dict[str, Any]) -> Any:
        """Compare the bytes that the facts are about with their digest.

        Returns:
            The running digest after them.

        Raises:
            DamagedFileError: they are not those that were written.
            OSError: the file cannot be read.
        """
        size, expected = facts["log_bytes"], facts["log_sha256"]
        digest, left = hashlib.sha256(), size
        with open_regular(self.path) as file:
            while left and (chunk := file.read(min(left, CHUNK_BYTES))):
                digest.update(chunk)
                left -= len(chunk)
        if left:
            raise DamagedFileError(f"its log has {size - left} bytes of {size}")
        if digest.hexdigest() != expected:
            raise DamagedFileError("the bytes of its log do not match their digest")
        return digest

    def restore(self, facts: dict[str, Any]) -> list[Tables]:
        """The blocks that the facts are about; what was appended after them is cut off.

        Raises:
            DamagedFileError: their bytes are not those that were written, or those of a link, to
                which the next round would be appended; nothing is cut off.
            OSError: the file cannot be read.
        """
        if self.path.is_symlink():
            raise DamagedFileError("its log is a link")
        self._digest = self.check(facts)
        if self.path.stat().st_size > facts["log_bytes"]:
            os.truncate(self.path, facts["log_bytes"])
        return read_blocks(self.path, facts["log_bytes"])


class _HashedFile(io.RawIOBase):
    """A file open for writing that adds what is written to a digest."""

    def __init__(self, file: IO[bytes], digest: Any) -> None:
        self.file, self.digest = file, digest

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return self.file.write(data)


def write_block(file: Any, tables: Tables) -> None:
    """Append one round: per table with rows an Arrow stream, its schema with the table's name."""
    import pyarrow as pa

    filled = {name: columns for name, columns in tables.items() if any(map(len, columns.values()))}
    for name, columns in filled.items():
        batch = arrow_table(columns).replace_schema_metadata({"table": name})
        with pa.ipc.new_stream(file, batch.schema) as writer:
            writer.write_table(batch)


def read_blocks(path: Path, size: int | None = None) -> list[Tables]:
    """What `write_block` wrote, in order, one table each; long columns as arrays.

    Args:
        path: of the log.
        size: bytes to read; None: all.

    Raises:
        DamagedFileError: they are no blocks.
    """
    import pyarrow as pa

    blocks = []
    size = path.stat().st_size if size is None else size
    with pa.OSFile(str(path)) as file:
        while file.tell() < size:
            try:
                table = pa.ipc.open_stream(file).read_all()
            except pa.ArrowException as error:
                raise DamagedFileError(f"its log holds no tables ({error})") from error
            long = table.num_rows > MAX_LIST_ROWS
            columns = {
                c: table[c].to_numpy() if long else table[c].to_pylist() for c in table.column_names
            }
            blocks.append({table.schema.metadata[b"table"].decode(): columns})
    return blocks
