"""SHA256SUMS, the digests of a finished run's files, in the format of the program ``sha256sum``.

The digests are those of the bytes that were to be written, not of what a disk gave back. The file
is written before summary.json, which marks a run finished and whose digest it has too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from edgesim.errors import RunError
from edgesim.records.atomic_files import write_atomic
from fl.regular_files import open_regular, read_regular
from fl.stored_files import is_sealed

SUMS = "SHA256SUMS"
CHANGED = "to run what was changed on purpose, copy it to another folder"
MAX_SUMS_BYTES = 1 << 20


class DamagedRunError(RunError):
    """A file of a finished run is not as it was written."""


class FileDamage(NamedTuple):
    """The name of a damaged file, and a sentence about it."""

    name: str
    problem: str


class SummedFiles:
    """Writes files and remembers their digests.

    Args:
        digests: file name -> digest, of files that are there already.
    """

    def __init__(self, digests: dict[str, str] | None = None) -> None:
        self._digests = dict(digests or {})

    def write(self, path: Path, content: bytes | str, name: str = "") -> None:
        """Write a file as `write_atomic` does; name: its path from the run's folder if below."""
        self.add(name or path.name, content)
        write_atomic(path, content)

    def add(self, name: str, content: bytes | str) -> None:
        """Remember the digest of a file that is written elsewhere."""
        data = content.encode() if isinstance(content, str) else content
        self._digests[name] = hashlib.sha256(data).hexdigest()

    def write_sums(self, folder: Path) -> None:
        """Write SHA256SUMS."""
        lines = [f"{digest}  {name}\n" for name, digest in sorted(self._digests.items())]
        write_atomic(folder / SUMS, "".join(lines))


def read_sums(folder: Path) -> dict[str, str] | None:
    """Path from the folder -> digest; None without SHA256SUMS, as before a run has ended.

    Raises:
        DamagedRunError: the file is not as it was written, cannot be read, or was there once.
    """
    path = folder / SUMS
    if not path.exists():
        if _had_sums(folder):
            raise DamagedRunError(
                f"{path} is missing, so that nothing shows whether the other files are whole; run "
                "the scenario into this folder again, and it is written anew from the checkpoint"
            )
        return None
    try:
        lines = read_regular(path, MAX_SUMS_BYTES).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DamagedRunError(f"{path} cannot be read ({error})") from None
    pairs = [line.partition("  ") for line in lines]
    if not all(len(digest) == 64 and _is_name(name) for digest, _, name in pairs):
        raise DamagedRunError(f"{path} is damaged: it has a line without digest and file name")
    return {name: digest for digest, _, name in pairs}


def _had_sums(folder: Path) -> bool:
    """Did `edgesim` finish this run? Its timing.json has a digest then, and it wrote sums."""
    try:
        timing = read_regular(folder / "timing.json", MAX_SUMS_BYTES)
    except OSError:
        return False
    return is_sealed(timing) and (folder / "summary.json").exists()


def _is_name(name: str) -> bool:
    """A file in the folder or further below; no other name leads anywhere."""
    path = PurePosixPath(name)
    below = bool(path.parts) and not path.is_absolute() and ".." not in path.parts
    return below and name.isprintable() and str(path) == name


def damaged_files(folder: Path, but: Collection[str] = ()) -> list[FileDamage]:
    """Files of a finished run that are not as they were written.

    Args:
        folder: of the run.
        but: names of files that are not looked at.
    """
    try:
        sums = read_sums(folder)
    except DamagedRunError as error:
        return [FileDamage(SUMS, str(error))]
    if sums is None:
        return [FileDamage(SUMS, f"{folder} has no {SUMS}")]
    found = []
    for name, digest in sums.items():
        if name in but:
            continue
        try:
            with open_regular(folder / name) as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                    found.append(FileDamage(name, _mismatch(folder / name)))
        except OSError as error:
            reason = error.strerror or error
            found.append(FileDamage(name, f"{folder / name} cannot be read ({reason})"))
    return found


def read_summed(path: Path, max_bytes: int) -> bytes:
    """The bytes of a file of a finished run, compared with SHA256SUMS where there is one.

    Raises:
        DamagedRunError: they are not those that were written.
        OSError: the file cannot be read, is no regular file, or is larger than ``max_bytes``.
    """
    content = read_regular(path, max_bytes)
    sums = read_sums(path.parent)
    if sums is not None and hashlib.sha256(content).hexdigest() != sums.get(path.name):
        raise DamagedRunError(_mismatch(path))
    return content


def _mismatch(path: Path) -> str:
    return (
        f"{path} is damaged: its bytes do not match {SUMS}; repeat the command that made the run, "
        "and it is written anew from the checkpoint"
    )
