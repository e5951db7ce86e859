"""Replacement of a report's folder: all of it is written, or nothing is changed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgesim.errors import ResultsError
from edgesim.stop_signals import cleanup_on_stop

PARTS = frozenset({"index.html", "figures", "tables"})  # all that a report's folder holds
TITLE = "<title>edgesim: "  # by which index.html is known as a report


@contextmanager
def replaced_folder(out: Path) -> Iterator[Path]:
    """An empty folder to write into, which becomes ``out`` at the end of the block.

    An earlier report there is replaced, but nothing else ever is.

    Raises:
        ResultsError: ``out`` holds something that is no report, or cannot be written.
    """
    out = Path(os.path.abspath(out))
    _check_replaceable(out)
    made = [parent for parent in out.parents if not parent.exists()]  # the innermost first
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        # a folder beside it, so that it is renamed and not copied
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
            new, old = Path(scratch) / "new", Path(scratch) / "old"
            new.mkdir()
            with cleanup_on_stop(lambda: _take_back(out, old, Path(scratch))):
                yield new
                with _alone_in(out.parent):
                    if out.exists():
                        os.replace(out, old)
                    os.replace(new, out)
    except OSError as error:
        raise _cannot_write(out, error.strerror or str(error)) from None
    finally:
        _remove_empty(made)


@contextmanager
def _alone_in(parent: Path) -> Iterator[None]:
    """Of two reports that end at the same time, one moves after the other, where there is flock."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    folder = os.open(parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _take_back(out: Path, old: Path, scratch: Path) -> None:
    """What is left of a report that a signal stops: the one before, if there was one."""
    if old.exists() and not out.exists():
        os.replace(old, out)
    # Under another name first: another thread may still write files into the folder by its path,
    # and what it adds while the folder is deleted would stay.
    gone = scratch.with_name(f"{scratch.name}-gone")
    os.replace(scratch, gone)
    shutil.rmtree(gone, ignore_errors=True)


def _cannot_write(out: Path, why: str) -> ResultsError:
    return ResultsError(f"The report cannot be written to {out}: {why}.")


def _check_replaceable(out: Path) -> None:
    if not out.exists():
        above = next(parent for parent in out.parents if parent.exists())
        if not above.is_dir():
            raise _cannot_write(out, f"{above} is a file; give --out a folder")
        return
    if not out.is_dir():
        raise _cannot_write(out, "it is a file; give --out a folder")
    names = sorted(path.name for path in out.iterdir())
    others = [name for name in names if name not in PARTS]
    page = out / "index.html"
    is_report = page.is_file() and TITLE in page.read_text("utf-8", "replace")[:4000]
    if others or (names and not is_report):
        what = (
            f"{others[0]}, which is no part of a report"
            if others
            else "something that is no report"
        )
        raise _cannot_write(out, f"it holds {what}; give --out a new folder")


def _remove_empty(folders: list[Path]) -> None:
    """Take back the parents that were made for a report which then failed."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
