"""``edgesim verify``: digests of stored runs, and what follows from what they recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgesim.cli.options import AllowCode, DataFolder, ExitCode, exit_on_error


def verify(
    runs: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Run folders, or folders of runs.")
    ],
    data: DataFolder = None,
    allow_code: AllowCode = False,
) -> None:
    """Check digests of stored runs, and derive again what follows from them: rounds, allocations,
    finish times. Exit code 0: nothing is wrong, 1: something is.
    """
    with exit_on_error():
        from rich.text import Text

        from edgesim.cli.console import console, print_line, table_of
        from edgesim.verification.check_result import FAILED, SKIPPED
        from edgesim.verification.verify import verify as verify_folders

        counts = {"runs and sweeps": 0, "wrong": 0, "not checked": 0}
        for folder, checks in verify_folders(runs, str(data) if data else None, allow_code):
            table = table_of(str(folder))
            table.show_header, table.title_justify = False, "left"
            for check in checks:
                table.add_row(*map(Text, (check.name, check.outcome, check.detail)))
            console().print(table)
            counts["runs and sweeps"] += 1
            counts["wrong"] += sum(check.outcome == FAILED for check in checks)
            counts["not checked"] += sum(check.outcome == SKIPPED for check in checks)
        print_line(", ".join(f"{count} {what}" for what, count in counts.items()))
    if counts["wrong"]:
        raise typer.Exit(ExitCode.failed)
