"""The sub-commands ``edgesim report`` and ``edgesim compare``.

The command line finds them by the entry points of the group ``edgesim.commands`` in pyproject.toml.
Each command imports what it needs when it runs, so that ``edgesim --help`` answers at once.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from edgesim.cli.options import exit_on_error

RUNS_DIFFER = 1  # exit code of edgesim compare


class StyleName(StrEnum):
    """How `edgesim report` draws the files in figures/."""

    screen = "screen"
    ieee = "ieee"


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Run folders, or folders of runs.")
    ],
    out: Annotated[Path | None, typer.Option(help="Folder of the report.")] = None,
    style: Annotated[
        StyleName, typer.Option(help="Of the figures' files; ieee: 3.5 in wide, 8 pt.")
    ] = StyleName.screen,
) -> None:
    """Write one page, figures and tables from any set of finished runs, such as a sweep's
    folder.
    """
    # inside the one folder given, or beside several
    default = (runs[0] if len(runs) == 1 else runs[0].parent) / "report"
    with exit_on_error():
        from reports.html_page import write_report

        page = write_report(runs, out or default, style)
        typer.echo(f"report: {page}")


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A run's folder, or a folder of runs.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
) -> None:
    """Say where two runs differ: keys, tables, first diverging round.
    Exit code 0: equal, 1: different.
    """
    from reports.run_diff import compare as compare_folders

    with exit_on_error():
        lines, same = compare_folders(a, b)
        typer.echo("\n".join(lines))
    if not same:
        raise typer.Exit(RUNS_DIFFER)
