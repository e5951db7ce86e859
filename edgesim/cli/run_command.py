"""``edgesim run`` and ``edgesim check``: all schemes of one scenario."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgesim.cli.options import (
    INFEASIBLE,
    AllowCode,
    Board,
    Data,
    Only,
    Overrides,
    ScenarioFile,
    Seed,
    bad_input,
    complain,
    exits,
)
from edgesim.errors import COMMAND_LINE, ScenarioError

if TYPE_CHECKING:
    from edgesim.runs.run import PreparedRun, Run
    from edgesim.scenario.loader import Scenario


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
    data: Data = None,
    allow_code: AllowCode = False,
    only: Only = None,
    tensorboard: Board = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, only the folders.")
    ] = False,
) -> None:
    """Simulate a scenario, every scheme of it; an interrupted run resumes where it was."""
    with exits():
        schemes = _schemes(scenario, overrides, seed)
        chosen = _only(schemes, only, scenario)
    given = {"data": str(data) if data else None, "allow_code": allow_code}
    with exits(
        bad_input(),
        f"interrupted; edgesim run {scenario} with the same options resumes where it stopped",
    ):
        from edgesim.cli.console import print_runs
        from edgesim.runs.run import prepare

        if tensorboard:
            from edgesim.runs.tensorboard_log import check_tensorboard

            check_tensorboard()
        prepared = [(label, prepare(each, **given)) for label, each in chosen]
        if len(prepared) > 1:
            _refuse_infeasible(prepared)
        runs = []
        while prepared:  # each is dropped before the next one runs, with the data that it has read
            label, each = prepared.pop(0)
            place = _folder(each.setup.scenario, out, label if len(schemes) > 1 else None)
            done = _run(each, place, fresh, quiet, tensorboard)
            runs += [(label, done)] if done else []
        print_runs(runs, quiet)
    if len(runs) < len(chosen):
        raise typer.Exit(INFEASIBLE)


def check(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    seed: Seed = None,
    data: Data = None,
    allow_code: AllowCode = False,
    only: Only = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every device, not just the first 30.")
    ] = False,
) -> None:
    """Check a scenario and print what each device can reach in a round; runs nothing."""
    with exits():
        chosen = _only(_schemes(scenario, overrides, seed), only, scenario)
    with exits(bad_input()):
        from edgesim.cli.console import print_feasibility
        from edgesim.runs.run import feasibility

        feasible = True
        for label, each in chosen:
            answer = feasibility(each, data=str(data) if data else None, allow_code=allow_code)
            print_feasibility(label or each.learning.method.name, answer, None if every else 30)
            feasible = feasible and answer.feasible
    if not feasible:
        raise typer.Exit(INFEASIBLE)


def _refuse_infeasible(prepared: list[tuple[str | None, PreparedRun]]) -> None:
    """Exit before the first of several schemes runs if one of them cannot."""
    impossible = [pair for pair in prepared if not pair[1].feasibility.feasible]
    for label, each in impossible:
        complain(f"{label}: {each.feasibility.note}")
    if impossible:
        possible = [str(label) for label, each in prepared if each.feasibility.feasible]
        complain(
            "nothing was run"
            + (f"; --only runs one scheme of {', '.join(possible)}" if possible else "")
        )
        raise typer.Exit(INFEASIBLE)


def _run(
    prepared: PreparedRun, folder: Path, fresh: bool, quiet: bool, tensorboard: bool
) -> Run | None:
    """One scheme with its progress; None where it is infeasible, which is said at once."""
    from edgesim.cli.console import Progress
    from edgesim.errors import InfeasibleScenarioError
    from edgesim.runs.tensorboard_log import with_tensorboard

    scenario = prepared.setup.scenario
    try:
        with (
            Progress(scenario.scheme or scenario.learning.method.name, quiet) as shown,
            with_tensorboard(folder, tensorboard, shown) as progress,
        ):
            return prepared.run(folder, fresh, progress)
    except InfeasibleScenarioError as problem:
        complain(f"{scenario.scheme}: {problem}" if scenario.scheme else problem)
        return None


def _folder(scenario: Scenario, out: Path | None, label: str | None) -> Path:
    """--out itself for a file of one scheme, a folder in it for each of several; else a name made of what is run."""
    from edgesim.runs.run import default_folder

    if out is None:
        return default_folder(scenario)
    return out / label.replace(" ", "-") if label else out


def _schemes(
    path: Path, overrides: list[str] | None, seed: int | None
) -> list[tuple[str | None, Scenario]]:
    """All schemes of the file; --seed 3 is short for seed=3, so that the resolved scenario of the run holds it."""
    from edgesim.scenario.loader import expand

    return expand(path, [*(overrides or ()), *([] if seed is None else [f"seed={seed}"])])


def _only(schemes: list, label: str | None, path: Path) -> list:
    """The chosen scheme, or all of them."""
    chosen = [pair for pair in schemes if label is None or pair[0] == label]
    if not chosen:
        known = ", ".join(name for name, _ in schemes if name) or "no schemes"
        raise ScenarioError(f'{COMMAND_LINE}: {path} has no scheme "{label}"; it has {known}')
    return chosen
