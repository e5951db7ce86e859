"""The sub-commands ``edgesim report`` and ``edgesim compare``.

The command line finds them by the entry points of the group ``edgesim.commands`` in pyproject.toml.
Each command imports what it needs when it runs, so that ``edgesim --help`` answers at once.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from os.path import exists
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgesim.cli.options import exit_on_error
from edgesim.errors import visible

if TYPE_CHECKING:
    from reports.html_page import Progress

RUNS_DIFFER = 1  # exit code of edgesim compare


def report(
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR... [KEY=VALUE...]",
            help="Run folders, or folders of runs; and options of the report, such as "
            "figures=accuracy,latency, schemes='{joint: Proposed}', style=ieee (see --keys).",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the report.")] = None,
    options: Annotated[
        Path | None,
        typer.Option(help="File of options; else the report.yaml in the first folder."),
    ] = None,
    style: Annotated[
        str | None, typer.Option(help="The same as style=...: screen or ieee.")
    ] = None,
    keys: Annotated[
        bool, typer.Option("--keys", help="List the options of a report and stop.")
    ] = False,
) -> None:
    """Write one page, figures and tables from any set of finished runs, such as a sweep's
    folder.
    """
    dirs = [Path(text) for text in given or () if "=" not in text or exists(text)]
    changes = [text for text in given or () if Path(text) not in dirs]
    changes += [] if style is None else [f"style={style}"]
    if not dirs and not keys:
        raise typer.BadParameter("give a run's folder, or one that contains some")
    # It prints notes about its caches where there is no home, or where the machine is busy.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with exit_on_error():
        from reports.html_page import default_folder, write_report
        from reports.report_options import (
            explain_options,
            file_beside,
            read_options,
            said_where_written,
        )
        from reports.run_data.statistics.metrics import metrics_in

        if keys:
            typer.echo(explain_options())
            return
        file = options or file_beside(dirs[0])
        read = read_options(file, changes, partial(metrics_in, dirs))
        with said_where_written(file, changes), _missing_glyphs(), _progress() as progress:
            page = write_report(dirs, out or default_folder(dirs), read, progress)
        typer.echo(f"report: {page}")


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A bar on a terminal; nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = TextColumn("figures {task.completed}/{task.total}"), BarColumn()
    title = TextColumn("{task.description}", markup=False)
    with Progress(*columns, title, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, name: bar.update(
            task, completed=done, total=total, description=visible(name)
        )


@contextmanager
def _missing_glyphs() -> Iterator[None]:
    """One sentence on the characters that no font has, instead of a warning for each drawing."""
    with warnings.catch_warnings(record=True) as found:
        yield
    codes = [re.match(r"Glyph (\d+) ", str(each.message)) for each in found]
    for each, code in zip(found, codes, strict=True):
        if code is None:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    lacking = dict.fromkeys(chr(int(code[1])) for code in codes if code)
    if lacking:
        text = visible("".join(lacking))
        typer.echo(f"warning: figures show boxes for {text}, which their font lacks", err=True)


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
        typer.echo(visible("\n".join(lines)))
    if not same:
        raise typer.Exit(RUNS_DIFFER)
