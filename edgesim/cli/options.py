"""What the commands share: their options, their exit codes, and how a mistake becomes one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from edgesim.errors import ScenarioError

FAILED, BAD_INPUT, INFEASIBLE, INTERRUPTED = 1, 2, 3, 130


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


ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file in YAML.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Keys to change, as a.b.c=value."),
]
Seed = Annotated[
    int | None, typer.Option(min=0, max=2**63 - 1, help="Seed of every random stream.")
]
Data = Annotated[
    Path | None, typer.Option(envvar="EDGESIM_DATA", help="Folder with the data sets' files.")
]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Run methods and solvers from ./file.py:name.")
]
Only = Annotated[
    str | None, typer.Option(metavar="LABEL", help="Only this one of the file's schemes.")
]
Board = Annotated[
    bool,
    typer.Option("--tensorboard", help="Also write TensorBoard scalars into the run's folder."),
]


@contextmanager
def exits(bad: tuple = (ScenarioError,), interrupted: str = "interrupted") -> Iterator[None]:
    """Turn the errors that users can cause into one sentence and an exit code."""
    try:
        yield
    except bad as problem:
        complain(problem)
        raise typer.Exit(BAD_INPUT) from None
    except KeyboardInterrupt:
        complain(f"{interrupted}.")
        raise typer.Exit(INTERRUPTED) from None


def bad_input() -> tuple[type[Exception], ...]:
    """The errors of the engine that mean bad input; the engine is imported only now."""
    from edgesim.errors import RunError
    from edgesim.records.run_folder import FolderError

    return ScenarioError, RunError, FolderError


def complain(problem: Any) -> None:
    typer.echo(" ".join(str(problem).split()), err=True)
