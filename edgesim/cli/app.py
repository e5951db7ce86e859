"""The command line: ``edgesim run``, ``sweep``, ``check`` and what explains a scenario.

Every command imports what it needs when it runs, so that ``edgesim --help`` answers at once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from edgesim import __version__
from edgesim.cli.one_line_errors import OneLineErrors
from edgesim.cli.options import CatalogKind, exit_on_error
from edgesim.cli.plugin_commands import add_commands
from edgesim.cli.run_command import check, run
from edgesim.cli.starter.init_command import init
from edgesim.cli.sweep.sweep_command import sweep
from edgesim.cli.verify_command import verify
from edgesim.errors import COMMAND_LINE, ScenarioError

app = typer.Typer(
    help="A wireless edge-network co-simulator for federated learning.",
    cls=OneLineErrors,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (run, sweep, check, verify, init):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"edgesim {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """A wireless edge-network co-simulator for federated learning."""


@app.command()
def explain(
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="Such as network.bandwidth.")
    ] = None,
) -> None:
    """Meaning, unit, allowed values, default and its source, of a scenario key."""
    with exit_on_error():
        from edgesim.cli.console import print_keys
        from edgesim.cli.listings import method_keys
        from edgesim.scenario.key_docs import explain_key

        print_keys(explain_key(key, method_keys()), brief=key is None)


@app.command("list")
def list_(
    kind: Annotated[CatalogKind, typer.Argument(help="What to list.")],
    place: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Of runs: where; else runs.")
    ] = None,
) -> None:
    """What there is of a kind, one line each; of runs, how far each of them is."""
    with exit_on_error():
        if kind is CatalogKind.runs:
            from edgesim.cli.console import print_listed
            from edgesim.results.run_listing import list_runs

            place = place or Path("runs")
            print_listed(place, list_runs(place))
            return
        if place is not None:
            raise ScenarioError(f"{COMMAND_LINE}: only edgesim list runs takes a folder")
        from edgesim.cli.console import print_catalog

        if kind is CatalogKind.scenarios:
            found = (path for path in Path("scenarios").rglob("*.yaml") if path.is_file())
            files = sorted(found, key=lambda path: (len(path.parts), path))
            rows = [(path.as_posix(), _first_comment(path), "") for path in files]
        else:
            from edgesim.cli.listings import catalog

            rows = list(catalog(kind.value))
        if not rows:
            typer.echo(f"There are no {kind.value} here; scenarios are looked for in ./scenarios.")
        print_catalog(rows)


@app.command()
def schema() -> None:
    """JSON Schema of a scenario, for editors."""
    from edgesim.scenario.key_docs import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


add_commands(app)


def _first_comment(path: Path) -> str:
    with open(path, encoding="utf-8", errors="replace") as lines:
        return next((line.lstrip("# ").strip() for line in lines if line.startswith("#")), "")
