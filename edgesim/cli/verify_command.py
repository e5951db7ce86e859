"""``edgesim verify``: digests of stored runs, and what follows from what they recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgesim.cli.options import AllowCode, DataFolder, ExitCode, exit_on_error
from edgesim.errors import counted

if TYPE_CHECKING:
    from edgesim.verification.check_result import CheckResult


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
        from edgesim.cli.console import print_line
        from edgesim.verification.check_result import FAILED, SKIPPED
        from edgesim.verification.verify import SWEEP
        from edgesim.verification.verify import verify as verify_folders

        kinds = {"run": 0, "sweep": 0}
        wrong, partly, reasons = dict[Path, list[str]](), 0, set[str]()
        for folder, checks in verify_folders(runs, str(data) if data else None, allow_code):
            _print_checks(folder, checks, reasons)
            kinds["sweep" if checks[0].name == SWEEP else "run"] += 1
            if failed := [check.name for check in checks if check.outcome == FAILED]:
                wrong[folder] = failed
            partly += any(check.outcome == SKIPPED for check in checks)
        for folder, names in wrong.items():
            print_line(f"{FAILED}: {folder}: {', '.join(names)}")
        found = [counted(n, kind) for kind, n in kinds.items() if n]
        print_line(f"{' and '.join(found)}: {len(wrong)} wrong, {partly} not checked in full")
    if wrong:
        raise typer.Exit(ExitCode.failed)


def _print_checks(folder: Path, checks: list[CheckResult], reasons: set[str]) -> None:
    """The folder, and a line for each check below it.

    Args:
        folder: of a run or a sweep.
        checks: of it.
        reasons: why something was not checked, as far as it is printed; each is printed once.
    """
    from edgesim.cli.console import print_entry, print_line
    from edgesim.verification.check_result import SKIPPED

    names = max(len(check.name) for check in checks)
    outcomes = max(len(check.outcome) for check in checks)
    print_line(folder)
    for check in checks:
        known = check.outcome == SKIPPED and check.detail in reasons
        detail = "as above" if known else check.detail
        print_entry(f"  {check.name}", f"{check.outcome:{outcomes}} {detail}", names + 2)
        reasons |= {check.detail} if check.outcome == SKIPPED else set()
