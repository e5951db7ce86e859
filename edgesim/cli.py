"""The command line. Every command imports what it needs when it runs, so that ``edgesim --help`` answers at once.

Exit codes: 0 done, 1 points of a sweep failed, 2 bad input, 3 infeasible scenario, 130 interrupted (the same command
resumes).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgesim.yamlmarks import COMMAND_LINE, ScenarioError

if TYPE_CHECKING:
    from edgesim.run import Run
    from edgesim.scenario import Scenario

FAILED, BAD_INPUT, INFEASIBLE, INTERRUPTED = 1, 2, 3, 130
DIFFERENT = 1  # of edgesim compare

app = typer.Typer(
    help="A wireless edge-network co-simulator for federated learning.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Where(StrEnum):
    """Where a sweep's points are carried out."""

    local = "local"
    dask = "dask"


class Kind(StrEnum):
    """What `edgesim list` lists."""

    methods = "methods"
    solvers = "solvers"
    datasets = "datasets"
    models = "models"
    scenarios = "scenarios"


class Figures(StrEnum):
    """How `edgesim report` draws its files."""

    screen = "screen"
    ieee = "ieee"


ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file in YAML.")]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Keys to change, as a.b.c=value.")
]
Seed = Annotated[int | None, typer.Option(min=0, max=2**63 - 1, help="Seed of every random stream.")]
Data = Annotated[Path | None, typer.Option(envvar="EDGESIM_DATA", help="Folder with the data sets' files.")]
AllowCode = Annotated[bool, typer.Option("--allow-code", help="Run methods and solvers from ./file.py:name.")]
Only = Annotated[str | None, typer.Option(metavar="LABEL", help="Only this one of the file's schemes.")]
Board = Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard scalars into the run's folder.")]


@app.command()
def run(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    seed: Seed = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; with several schemes, of all of them.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start again instead of resuming.")] = False,
    data: Data = None,
    allow_code: AllowCode = False,
    only: Only = None,
    tensorboard: Board = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the folders.")] = False,
) -> None:
    """Simulate a scenario, every scheme of it; an interrupted run resumes where it was."""
    with _exits():
        schemes = _schemes(scenario, overrides, seed)
        chosen = _only(schemes, only, scenario)
    given = {"data": str(data) if data else None, "allow_code": allow_code}
    with _exits(_bad_input(), f"interrupted; edgesim run {scenario} with the same options resumes where it stopped"):
        from edgesim.console import print_runs

        if tensorboard:
            from edgesim.tracker import check_tensorboard

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


@app.command()
def sweep(
    scenario: ScenarioFile,
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUES]...",
            help="Keys to vary, such as rounds=10,20; budget.latency_threshold='range(15ms,30ms,5ms)'; "
            "network.bandwidth='log(1MHz,1GHz,4)'; network.bandwidth:rounds=100MHz:10,200MHz:20 for keys that change "
            "together. One value only: a key to change. They win over the file's sweep block.",
        ),
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="Such as 0-4 or 0,3,7; else those of the file.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=1024, help="Points at a time; else one per core.")] = None,
    backend: Annotated[Where, typer.Option(help="Processes of this machine, or workers of dask.distributed.")] = (
        Where.local
    ),
    scheduler: Annotated[str | None, typer.Option(help="Of --backend dask, such as tcp://host:8786.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the sweep; else runs/<name>-sweep.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the points and how long they take.")] = False,
    every: Annotated[bool, typer.Option("--all", help="--dry-run: every point, not just the first 40.")] = False,
    reuse: Annotated[bool, typer.Option("--reuse/--no-reuse", help="Train once what is provably the same.")] = True,
    keep_going: Annotated[
        bool, typer.Option("--keep-going/--fail-fast", help="Go on, or start no more points, once one failed.")
    ] = True,
    data: Data = None,
    allow_code: AllowCode = False,
    only: Annotated[list[str] | None, typer.Option(metavar="LABEL", help="Only these of the file's schemes.")] = None,
    tensorboard: Board = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the folder.")] = False,
) -> None:
    """Simulate every combination of some keys, in parallel; finished points are never run again."""
    again = f"interrupted; edgesim sweep {scenario} with the same options goes on where it stopped"
    with _exits():
        if scheduler is not None and backend is not Where.dask:
            raise ScenarioError(f"{COMMAND_LINE}: --scheduler is only read with --backend dask")
    with _exits(_bad_input(), again):
        from edgesim.sweep import command
        from edgesim.sweep.points import plan

        if tensorboard:
            from edgesim.tracker import check_tensorboard

            check_tensorboard()
        given = {"data": str(data.resolve()) if data else None, "allow_code": allow_code}
        planned, count = plan(scenario, values or (), seeds, only or (), **given), workers or command.cores()
        if dry_run:
            command.dry_run(planned, out, count, every)
            return
        how = {"reuse": reuse, "fail_fast": not keep_going, "tensorboard": tensorboard}
        place = command.backend(backend.value, scheduler)
        folder = command.sweep(planned, out, quiet, count, place, given, **how)
    if not command.possible(folder):
        raise typer.Exit(INFEASIBLE)
    if not command.succeeded(folder):
        raise typer.Exit(FAILED)


@app.command()
def check(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    seed: Seed = None,
    data: Data = None,
    allow_code: AllowCode = False,
    only: Only = None,
    every: Annotated[bool, typer.Option("--all", help="Every device, not just the first 30.")] = False,
) -> None:
    """Check a scenario and print what each device can reach in a round; runs nothing."""
    with _exits():
        chosen = _only(_schemes(scenario, overrides, seed), only, scenario)
    with _exits(_bad_input()):
        from edgesim.console import print_feasibility
        from edgesim.run import feasibility

        feasible = True
        for label, each in chosen:
            answer = feasibility(each, data=str(data) if data else None, allow_code=allow_code)
            print_feasibility(label or each.learning.method.name, answer, None if every else 30)
            feasible = feasible and answer.feasible
    if not feasible:
        raise typer.Exit(INFEASIBLE)


@app.command()
def explain(
    key: Annotated[str | None, typer.Argument(metavar="[KEY]", help="Such as network.bandwidth.")] = None,
) -> None:
    """Meaning, unit, allowed values, default and its source, of a scenario key."""
    with _exits():
        from edgesim.build import method_keys
        from edgesim.console import print_keys
        from edgesim.explain import explain as look_up

        print_keys(look_up(key, method_keys()), brief=key is None)


@app.command("list")
def list_(kind: Annotated[Kind, typer.Argument(help="What to list.")]) -> None:
    """What there is: methods, solvers, datasets, models or scenarios, one line each."""
    with _exits():
        from edgesim.console import print_catalog

        if kind is Kind.scenarios:
            rows = [(str(path), _first_comment(path), "") for path in sorted(Path("scenarios").glob("*.yaml"))]
        else:
            from edgesim.build import catalog

            rows = list(catalog(kind.value))
        if not rows:
            typer.echo(f"There are no {kind.value} here; scenarios are looked for in ./scenarios.")
        print_catalog(rows)


@app.command()
def schema() -> None:
    """JSON Schema of a scenario, for editors."""
    import json

    from edgesim.explain import schema as make

    typer.echo(json.dumps(make(), indent=2))


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Run folders, or folders of runs.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the report.")] = None,
    style: Annotated[Figures, typer.Option(help="Of the figures' files; ieee: 3.5 in wide, 8 pt.")] = Figures.screen,
) -> None:
    """Write one page, figures and tables from any set of finished runs, such as a sweep's folder."""
    from reports.load import ReportError
    from reports.page import write_report

    with _exits((ReportError,)):
        page = write_report(runs, out or _report_folder(runs), style)
        typer.echo(f"report: {page}")


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A run's folder, or a folder of runs.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
) -> None:
    """Say where two runs differ: keys, tables, first diverging round. Exit code 0: equal, 1: different."""
    from reports.compare import compare as look
    from reports.load import ReportError

    with _exits((ReportError,)):
        lines, same = look(a, b)
        typer.echo("\n".join(lines))
    if not same:
        raise typer.Exit(DIFFERENT)


def main() -> None:
    """The console script ``edgesim``."""
    try:
        app()
    except KeyboardInterrupt:  # before a command had begun, while its libraries were loading
        _complain("interrupted.")
        sys.exit(INTERRUPTED)


@contextmanager
def _exits(bad: tuple = (ScenarioError,), interrupted: str = "interrupted") -> Iterator[None]:
    """Turn the errors that users can cause into one sentence and an exit code."""
    try:
        yield
    except bad as problem:
        _complain(problem)
        raise typer.Exit(BAD_INPUT) from None
    except KeyboardInterrupt:
        _complain(f"{interrupted}.")
        raise typer.Exit(INTERRUPTED) from None


def _bad_input() -> tuple[type[Exception], ...]:
    """The errors of the engine that mean bad input; the engine is imported only now."""
    from edgesim.errors import RunError
    from edgesim.runfolder import FolderError

    return ScenarioError, RunError, FolderError


def _check_all(chosen: list, given: dict[str, Any]) -> None:
    """Before the first of several schemes runs: a mistake in the last one should not wait for the others."""
    from edgesim.run import feasibility

    answers = [(label, feasibility(each, **given)) for label, each in chosen]
    impossible = [(label, answer) for label, answer in answers if not answer.feasible]
    for label, answer in impossible:
        _complain(f"{label}: {answer.note}")
    if impossible:
        possible = [label for label, answer in answers if answer.feasible]
        _complain("nothing was run" + (f"; --only runs one scheme of {', '.join(possible)}" if possible else ""))
        raise typer.Exit(INFEASIBLE)


def _simulate(
    scenario: Scenario, folder: Path, fresh: bool, quiet: bool, tensorboard: bool, given: dict[str, Any]
) -> Run | None:
    """One scheme with its progress; None where it is infeasible, which is said at once."""
    from edgesim.console import Progress
    from edgesim.run import InfeasibleScenario, simulate
    from edgesim.tracker import tracked

    try:
        with (
            Progress(scenario.scheme or scenario.learning.method.name, quiet) as shown,
            tracked(folder, tensorboard, shown) as progress,
        ):
            return simulate(scenario, out=folder, fresh=fresh, progress=progress, **given)
    except InfeasibleScenario as problem:
        _complain(f"{scenario.scheme}: {problem}" if scenario.scheme else problem)
        return None


def _folder(scenario: Scenario, out: Path | None, label: str | None) -> Path:
    """--out itself for a file of one scheme, a folder in it for each of several; else a name made of what is run."""
    from edgesim.run import default_folder

    if out is None:
        return default_folder(scenario)
    return out / label.replace(" ", "-") if label else out


def _complain(problem: Any) -> None:
    typer.echo(" ".join(str(problem).split()), err=True)


def _schemes(path: Path, overrides: list[str] | None, seed: int | None) -> list[tuple[str | None, Scenario]]:
    """All schemes of the file; --seed 3 is short for seed=3, so that the resolved scenario of the run holds it."""
    from edgesim.scenario import expand

    return expand(path, [*(overrides or ()), *([] if seed is None else [f"seed={seed}"])])


def _only(schemes: list, label: str | None, path: Path) -> list:
    """The chosen scheme, or all of them."""
    chosen = [pair for pair in schemes if label is None or pair[0] == label]
    if not chosen:
        known = ", ".join(name for name, _ in schemes if name) or "no schemes"
        raise ScenarioError(f'{COMMAND_LINE}: {path} has no scheme "{label}"; it has {known}')
    return chosen


def _first_comment(path: Path) -> str:
    with open(path, encoding="utf-8", errors="replace") as lines:
        return next((line.lstrip("# ").strip() for line in lines if line.startswith("#")), "")


def _report_folder(runs: list[Path]) -> Path:
    """Inside the one folder given, or beside several."""
    return (runs[0] if len(runs) == 1 else runs[0].parent) / "report"


if __name__ == "__main__":
    main()
