"""The command line. Every command imports what it needs when it runs, so that ``edgesim --help`` answers at once.

Exit codes: 0 done, 1 points of a sweep failed, 2 bad input, 3 infeasible scenario, 130 interrupted (the same command
resumes).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from edgesim.cli.options import (
    FAILED,
    INFEASIBLE,
    INTERRUPTED,
    AllowCode,
    Board,
    Data,
    Kind,
    ScenarioFile,
    Where,
    bad_input,
    complain,
    exits,
)
from edgesim.cli.plugins import add_commands
from edgesim.cli.run_command import check, run
from edgesim.errors import COMMAND_LINE, ScenarioError

app = typer.Typer(
    help="A wireless edge-network co-simulator for federated learning.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command()(run)


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
    seeds: Annotated[
        str | None, typer.Option(help="Such as 0-4 or 0,3,7; else those of the file.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Points at a time; else one per core.")
    ] = None,
    backend: Annotated[
        Where, typer.Option(help="Processes of this machine, or workers of dask.distributed.")
    ] = (Where.local),
    scheduler: Annotated[
        str | None, typer.Option(help="Of --backend dask, such as tcp://host:8786.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the sweep; else runs/<name>-sweep.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the points and how long they take.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="--dry-run: every point, not just the first 40.")
    ] = False,
    reuse: Annotated[
        bool, typer.Option("--reuse/--no-reuse", help="Train once what is provably the same.")
    ] = True,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going/--fail-fast", help="Go on, or start no more points, once one failed."
        ),
    ] = True,
    data: Data = None,
    allow_code: AllowCode = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="Only these of the file's schemes.")
    ] = None,
    tensorboard: Board = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, only the folder.")
    ] = False,
) -> None:
    """Simulate every combination of some keys, in parallel; finished points are never run again."""
    again = f"interrupted; edgesim sweep {scenario} with the same options goes on where it stopped"
    with exits():
        if scheduler is not None and backend is not Where.dask:
            raise ScenarioError(f"{COMMAND_LINE}: --scheduler is only read with --backend dask")
    with exits(bad_input(), again):
        from edgesim.cli import sweep_command as command
        from edgesim.sweep.points import plan

        if tensorboard:
            from edgesim.runs.tensorboard_log import check_tensorboard

            check_tensorboard()
        place = command.backend(backend.value, scheduler)
        given = {"data": str(data.resolve()) if data else None, "allow_code": allow_code}
        planned, count = (
            plan(scenario, values or (), seeds, only or (), **given),
            workers or command.cores(),
        )
        if dry_run:
            command.dry_run(planned, out, count, every)
            return
        how = {"reuse": reuse, "fail_fast": not keep_going, "tensorboard": tensorboard}
        folder = command.sweep(planned, out, quiet, count, place, given, **how)
    if not command.possible(folder):
        raise typer.Exit(INFEASIBLE)
    if not command.succeeded(folder):
        raise typer.Exit(FAILED)


app.command()(check)


@app.command()
def explain(
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="Such as network.bandwidth.")
    ] = None,
) -> None:
    """Meaning, unit, allowed values, default and its source, of a scenario key."""
    with exits():
        from edgesim.cli.console import print_keys
        from edgesim.runs.catalog import method_keys
        from edgesim.scenario.key_docs import explain_key

        print_keys(explain_key(key, method_keys()), brief=key is None)


@app.command("list")
def list_(kind: Annotated[Kind, typer.Argument(help="What to list.")]) -> None:
    """What there is: methods, solvers, datasets, models or scenarios, one line each."""
    with exits():
        from edgesim.cli.console import print_catalog

        if kind is Kind.scenarios:
            rows = [
                (str(path), _first_comment(path), "")
                for path in sorted(Path("scenarios").glob("*.yaml"))
            ]
        else:
            from edgesim.runs.catalog import catalog

            rows = list(catalog(kind.value))
        if not rows:
            typer.echo(f"There are no {kind.value} here; scenarios are looked for in ./scenarios.")
        print_catalog(rows)


@app.command()
def schema() -> None:
    """JSON Schema of a scenario, for editors."""
    import json

    from edgesim.scenario.key_docs import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


add_commands(app)


def main() -> None:
    """The console script ``edgesim``."""
    # SIGINT is left as it was inherited. A script that starts `edgesim ... &` without job control
    # has it ignored there, so that Ctrl-C for the script does not end its background jobs; Python
    # then installs no handler, and SIGTERM ends the command. Nothing but a round is lost by that.
    try:
        app()
    except KeyboardInterrupt:  # before a command had begun, while its libraries were loading
        complain("interrupted.")
        sys.exit(INTERRUPTED)


def _first_comment(path: Path) -> str:
    with open(path, encoding="utf-8", errors="replace") as lines:
        return next((line.lstrip("# ").strip() for line in lines if line.startswith("#")), "")
