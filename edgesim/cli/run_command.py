"""``edgesim run`` and ``edgesim check``: all schemes of one scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgesim.cli.options import (
    AllowCode,
    DataFolder,
    ExitCode,
    OnlyScheme,
    Overrides,
    ScenarioFile,
    Seed,
    WriteTensorBoard,
    exit_on_error,
    print_error,
)
from edgesim.errors import COMMAND_LINE, InfeasibleScenarioError, ScenarioError

if TYPE_CHECKING:
    from edgesim.runs.run import PreparedRun
    from edgesim.scenario.loader import Scenario

    Schemes = Sequence[tuple[str | None, Scenario]]  # by label

SHOWN_DEVICES = 30  # that check lists where it was not asked for all


def run(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    seed: Seed = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; with several schemes, of all of them.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start again instead of resuming.")
    ] = False,
    data: DataFolder = None,
    allow_code: AllowCode = False,
    only: OnlyScheme = None,
    tensorboard: WriteTensorBoard = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, only the folders.")
    ] = False,
) -> None:
    """Simulate a scenario, every scheme of it; an interrupted run resumes where it was."""
    with exit_on_error():
        schemes = _schemes(scenario, overrides, seed)
        chosen = _chosen(schemes, only, scenario)
        from edgesim.cli.run_progress import RunProgress, print_runs
        from edgesim.runs.run import default_folder, prepare
        from edgesim.runs.tensorboard_log import check_tensorboard, with_tensorboard

        if tensorboard:
            check_tensorboard()
        folder_of_data = str(data) if data else None
        prepared = [
            (label, prepare(each, data=folder_of_data, allow_code=allow_code))
            for label, each in chosen
        ]
        if len(prepared) > 1:
            _refuse_infeasible(prepared)
        runs = []
        while prepared:  # each is dropped before the next one runs, with the data that it has read
            label, run_of_scheme = prepared.pop(0)
            each = run_of_scheme.setup.scenario
            folder = out or default_folder(each)
            if out and label and len(schemes) > 1:
                folder = out / label.replace(" ", "-")
            try:
                with (
                    RunProgress(each.scheme or each.learning.method.name, quiet) as shown,
                    with_tensorboard(folder, tensorboard, shown) as progress,
                ):
                    done = run_of_scheme.run(folder, fresh, progress)
                runs.append((label, done))
            except InfeasibleScenarioError as problem:
                print_error(f"{each.scheme}: {problem}" if each.scheme else problem)
        print_runs(runs, quiet)
    if len(runs) < len(chosen):
        raise typer.Exit(ExitCode.infeasible)


def check(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    seed: Seed = None,
    data: DataFolder = None,
    allow_code: AllowCode = False,
    only: OnlyScheme = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every device, not just the first 30.")
    ] = False,
) -> None:
    """Check a scenario and print what each device can reach in a round; runs nothing."""
    with exit_on_error():
        chosen = _chosen(_schemes(scenario, overrides, seed), only, scenario)
        from edgesim.cli.feasibility_table import print_feasibility
        from edgesim.runs.run import feasibility

        feasible = True
        for label, each in chosen:
            table = feasibility(each, data=str(data) if data else None, allow_code=allow_code)
            name = label or each.learning.method.name
            print_feasibility(name, table, None if every else SHOWN_DEVICES)
            feasible = feasible and table.feasible
    if not feasible:
        raise typer.Exit(ExitCode.infeasible)


def _refuse_infeasible(prepared: Sequence[tuple[str | None, PreparedRun]]) -> None:
    """Before the first of several schemes runs, so that a mistake in the last is found at once."""
    tables = [(label, each.feasibility) for label, each in prepared]
    for label, table in tables:
        if not table.feasible:
            print_error(f"{label}: {table.note}")
    possible = [label or "" for label, table in tables if table.feasible]
    if len(possible) < len(tables):
        hint = f"; --only runs one scheme of {', '.join(possible)}" if possible else ""
        print_error(f"nothing was run{hint}")
        raise typer.Exit(ExitCode.infeasible)


def _schemes(path: Path, overrides: list[str] | None, seed: int | None) -> Schemes:
    """All schemes of the file; --seed 3 is short for seed=3, so that the resolved file holds it."""
    from edgesim.scenario.loader import expand

    return expand(path, [*(overrides or ()), *([] if seed is None else [f"seed={seed}"])])


def _chosen(schemes: Schemes, label: str | None, path: Path) -> Schemes:
    """The scheme of that label, or all of them."""
    chosen = [pair for pair in schemes if label is None or pair[0] == label]
    if not chosen:
        known = ", ".join(name for name, _ in schemes if name) or "no schemes"
        raise ScenarioError(f'{COMMAND_LINE}: {path} has no scheme "{label}"; it has {known}')
    return chosen
