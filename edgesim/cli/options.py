"""What the commands share: options, exit codes, and errors as one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum, StrEnum
from os.path import exists, isdir
from pathlib import Path
from typing import Annotated

import typer

from edgesim.errors import EdgesimError, ScenarioError, one_line, visible


class ExitCode(IntEnum):
    """Exit codes beside 0 and those of signals (`edgesim.stop_signals`)."""

    failed = 1  # points of a sweep
    bad_input = 2
    infeasible = 3


class Backend(StrEnum):
    """Where the points of a sweep are carried out."""

    local = "local"
    dask = "dask"


class Selection(StrEnum):
    """By what `edgesim sweep` chooses among the values that it swept."""

    best_validation = "best-validation"


class CatalogKind(StrEnum):
    """What `edgesim list` lists."""

    methods = "methods"
    solvers = "solvers"
    datasets = "datasets"
    models = "models"
    channels = "channels"
    selection = "selection"
    scenarios = "scenarios"
    runs = "runs"


ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="A scenario in YAML, or its folder.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...", help="Keys to change, as a.b.c=value; '~a.b.c' removes a key."
    ),
]
Seed = Annotated[
    int | None, typer.Option(min=0, max=2**63 - 1, help="Seed of every random stream.")
]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", envvar="EDGESIM_DATA", help="Folder with the data sets' files."),
]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Run code of your own from ./file.py:name.")
]
OnlySchemes = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="LABEL", help="Only these of the file's schemes."),
]
WriteTensorBoard = Annotated[
    bool,
    typer.Option("--tensorboard", help="Also write TensorBoard scalars into the run's folder."),
]


@contextmanager
def exit_on_error() -> Iterator[None]:
    """End the command with one sentence and exit code 2 where an error of the user comes up."""
    try:
        yield
    except EdgesimError as problem:
        print_error(problem)
        raise typer.Exit(ExitCode.bad_input) from None


def scenario_file(given: Path) -> Path:
    """The file of a scenario; of a folder that is given in its place, its scenario.yaml.

    Raises:
        ScenarioError: the folder is a sweep, or holds folders of runs or scenarios.
        DamagedRunError: the file is that of a finished run, and not as it was written.
    """
    if not isdir(given):  # `Path.is_dir` raises where a name is too long
        return _undamaged(given)
    path = given / "scenario.yaml"
    if path.exists():
        return _undamaged(path)
    if (given / "sweep.json").exists():
        cure = "give the file that was swept, or one of the folders in points"
        raise ScenarioError(f"{given} holds a sweep and no scenario.yaml; {cure}")
    inner = sorted(file.parent for file in given.glob("*/scenario.yaml"))
    if sum((folder / "checkpoint").is_dir() for folder in inner) > 1:
        cure = "give one of them, or the command that made them, with the same --out"
        raise ScenarioError(f"{given} holds several runs and no scenario.yaml; {cure}")
    if inner:
        raise ScenarioError(f"{given} holds no scenario.yaml; give {inner[0]}, which does")
    return given  # which is no file, as the loader says


def _undamaged(path: Path) -> Path:
    """The path of a scenario, of which a run's folder beside it may have the digest."""
    from edgesim.records.checksums import CHANGED, SUMS, DamagedRunError, read_summed
    from edgesim.scenario.documents.yaml_text import MAX_RESOLVED_BYTES, is_of_run

    # without the file of digests, reading goes on: the same command writes it from the checkpoint
    if is_of_run(path) and exists(path.with_name(SUMS)):
        try:
            with suppress(OSError):  # which the loader raises as a sentence
                read_summed(path, MAX_RESOLVED_BYTES)
        except DamagedRunError as error:
            raise DamagedRunError(f"{error}; {CHANGED}") from None
    return path


def print_error(problem: object) -> None:
    """One line on stderr."""
    typer.echo(visible(one_line(problem)), err=True)
