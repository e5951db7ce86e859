"""``edgesim run`` and ``edgesim check``: all schemes of one scenario."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from edgesim.runs.run import Run
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

        if tensorboard:
            from edgesim.runs.tensorboard_log import check_tensorboard

            check_tensorboard()
        if len(chosen) > 1:
            _check_all(chosen, given)
        runs = []
        for label, each in chosen:
            place = _folder(each, out, label if len(schemes) > 1 else None)
            done = _simulate(each, place, fresh, quiet, tensorboard, given)
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


def _check_all(chosen: list, given: dict[str, Any]) -> None:
    """Before the first of several schemes runs: a mistake in the last one should not wait for the others."""
    from edgesim.runs.run import feasibility

    answers = [(label, feasibility(each, **given)) for label, each in chosen]
    impossible = [(label, answer) for label, answer in answers if not answer.feasible]
    for label, answer in impossible:
        complain(f"{label}: {answer.note}")
    if impossible:
        possible = [label for label, answer in answers if answer.feasible]
        complain(
            "nothing was run"
            + (f"; --only runs one scheme of {', '.join(possible)}" if possible else "")
        )
        raise typer.Exit(INFEASIBLE)


def _simulate(
    scenario: Scenario,
    folder: Path,
    fresh: bool,
    quiet: bool,
    tensorboard: bool,
    given: dict[str, Any],
) -> Run | None:
    """One scheme with its progress; None where it is infeasible, which is said at once."""
    from edgesim.cli.console import Progress
    from edgesim.errors import InfeasibleScenarioError
    from edgesim.runs.run import simulate
    from edgesim.runs.tensorboard_log import tracked

    try:
        with (
            Progress(scenario.scheme or scenario.learning.method.name, quiet) as shown,
            tracked(folder, tensorboard, shown) as progress,
        ):
            return simulate(scenario, out=folder, fresh=fresh, progress=progress, **given)
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
