"""Regular files of a limited size; pipes and devices are refused, and never waited for."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedRandom, BufferedReader
from pathlib import Path

_KINDS = {
    stat.S_ISFIFO: "a pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


MAX_DATA_BYTES = 64 << 30  # of a data file, packed and unpacked


class FileTooLargeError(OSError):
    """A file is larger than what is read of its kind."""


def open_regular(path: Path, max_bytes: int | None = None) -> BufferedReader:
    """Open a file for reading; pipes, devices and folders are refused, and never waited for.

    Args:
        path: of the file.
        max_bytes: largest size that is read; None: any.

    Raises:
        OSError: it cannot be opened, is no regular file, or is larger.
    """
    # A pipe without a writer would block `open`; on regular files the flag does nothing.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            kinds = (name for is_kind, name in _KINDS.items() if is_kind(found.st_mode))
            problem = f"it is {next(kinds, 'no regular file')}, and only regular files are read"
            raise OSError(errno.EINVAL, problem, str(path))
        if max_bytes is not None and found.st_size > max_bytes:
            sizes = f"{size_text(found.st_size)}, more than the {size_text(max_bytes)} allowed"
            problem = f"it has {sizes}"
            raise FileTooLargeError(errno.EINVAL, problem, str(path))
    except OSError:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")


def open_lock(path: Path) -> BufferedRandom:
    """Open a file to lock it, and make it where there is none.

    Raises:
        OSError: it cannot be opened, or is a link, a pipe or a device.
    """
    if not path.is_symlink():
        # as in `open_regular`, a pipe is not waited for
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o666)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return open(descriptor, "r+b")
        os.close(descriptor)
    raise OSError(errno.EINVAL, f"its {path.name} is no regular file", str(path))


def read_regular(path: Path, max_bytes: int) -> bytes:
    """The bytes of a file that `open_regular` accepts."""
    with open_regular(path, max_bytes) as file:
        return file.read()


def size_text(size: int) -> str:
    """Such as ``256 KiB``."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} bytes"
