"""``edgesim init``: a folder with a scenario, a method and an allocator to start from."""

from __future__ import annotations

import shlex
from os.path import lexists
from pathlib import Path
from typing import Annotated

import typer

from edgesim.cli.options import exit_on_error
from edgesim.cli.starter.starter_files import FILES
from edgesim.errors import COMMAND_LINE, ScenarioError


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder, new or without them.")],
) -> None:
    """Write a commented scenario with a method and an allocator of your own, ready to run."""
    with exit_on_error():
        taken = [name for name in FILES if lexists(folder / name)]
        if taken:
            problem = f"{folder} has {' and '.join(taken)} already; give another folder"
            raise ScenarioError(f"{COMMAND_LINE}: {problem}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in FILES.items():
                (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            reason = error.strerror or error
            raise ScenarioError(
                f"{COMMAND_LINE}: {folder} cannot be written ({reason}); give another folder"
            ) from error
        for name in FILES:
            typer.echo(folder / name)
        typer.echo(f"now: edgesim run {shlex.quote(str(folder / 'scenario.yaml'))} --allow-code")
