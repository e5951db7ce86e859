"""Which folders can hold a run or a sweep, and the sentences about those that cannot."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from edgesim.errors import RunError, shorten_path

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
USE_FRESH = "use --fresh (in Python fresh=True)"
REPLACE = f"{USE_FRESH} to replace it, or another --out"  # the cure where it holds another run


class FolderError(RunError):
    """The folder cannot be used for this run."""


class FolderInUseError(FolderError):
    """Another process is running in the folder."""


def unusable(path: Path, error: OSError) -> FolderError:
    """What the system says of a folder, as a sentence."""
    reason = error.strerror or error
    return FolderError(f"{shorten_path(path)} cannot be used ({reason}); give --out a folder")


def not_written(path: Path, error: OSError) -> FolderError:
    """The sentence about what could not be written while a sweep ran."""
    reason = error.strerror or error
    mend = "make room" if error.errno in DISK_FULL else "mend that"
    return FolderError(f"{path}: {reason}; {mend}, and the same command goes on")


def refuse_unusable(path: Path, kind: str, mark: Path, lock: Path) -> None:
    """Before anything is computed, refuse a path where no run or sweep can be kept; writes nothing.

    Args:
        path: of the folder.
        kind: run or sweep.
        mark: a file of every folder of this kind.
        lock: which a command leaves, empty, that was killed before it wrote the mark; the new
            mark, not yet renamed, may lie beside it.

    Raises:
        FolderError: it holds something else, it is a file, or one of its parents is.
    """
    try:
        if path.exists() and not path.is_dir():
            raise FolderError(f"{path} is a file; give --out a folder")
        os.listdir(next(place for place in path.absolute().parents if place.exists()))
        new = mark.with_name(f"{mark.name}.new")  # see write_atomic
        others = (file for file in path.rglob("*") if not file.is_dir() and file != new)
        if not mark.exists() and any(file != lock or file.stat().st_size for file in others):
            raise FolderError(f"{path} is not empty and holds no {kind}; give --out a new folder")
    except OSError as error:
        raise unusable(path, error) from error
