"""Writes a report's folder whole or not at all: everything goes into a folder beside it, which then takes its place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reports.run_data.load_runs import ReportError

PARTS = frozenset(
    {"index.html", "figures", "tables"}
)  # what a report's folder holds, and nothing else
MARK = "<title>edgesim: "


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """An empty folder to write into; at the end of the block it becomes ``out``, instead of an earlier report there.

    Raises:
        ReportError: ``out`` holds something that is no report; the disk is full, or the place cannot be written.
    """
    out = Path(os.path.abspath(out))
    _refuse_strangers(out)
    made = _missing_parents(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
            new, old = Path(scratch) / "new", Path(scratch) / "old"
            new.mkdir()
            yield new
            if out.exists():
                os.replace(out, old)
            os.replace(new, out)
    except OSError as error:
        raise ReportError(
            f"The report cannot be written to {out}: {error.strerror or error}."
        ) from None
    finally:
        _remove_empty(made)


def _refuse_strangers(out: Path) -> None:
    """Nothing but a report is ever replaced."""
    if not out.exists():
        return
    if not out.is_dir():
        raise ReportError(
            f"The report cannot be written to {out}: it is a file; give --out a folder."
        )
    strangers = sorted(path.name for path in out.iterdir() if path.name not in PARTS)
    page = out / "index.html"
    if strangers or (
        any(out.iterdir())
        and not (page.is_file() and MARK in page.read_text("utf-8", "replace")[:4000])
    ):
        what = (
            f"{strangers[0]}, which is no part of a report"
            if strangers
            else "something that is no report"
        )
        raise ReportError(
            f"The report cannot be written to {out}: it holds {what}; give --out a new folder."
        )


def _missing_parents(out: Path) -> list[Path]:
    """Parents that do not exist yet, the innermost first."""
    return [parent for parent in out.parents if not parent.exists()]


def _remove_empty(folders: list[Path]) -> None:
    """Take back the parents that were made for a report which then failed."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
