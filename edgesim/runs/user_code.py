"""Code of the user's own: ``./file.py:name`` in a scenario. It runs only where --allow-code was given."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from edgesim.scenario.loader import Scenario


class UserCodeError(Exception):
    """The user's own function failed: file, line and reason."""


def user_code(scenario: Scenario, name: str, at: tuple[str, ...], allow_code: bool) -> Any | None:
    """The object that ``./file.py:name`` stands for, None for a plain name; paths count from the scenario's folder.

    Raises:
        ScenarioError: it was not allowed, is not there, or the file cannot be run: file, line and reason.
    """
    if ".py:" not in name:
        return None
    if not allow_code:
        raise scenario.error(at, f"is {name}, which runs code of yours; allow it with --allow-code")
    file, _, attribute = name.rpartition(":")
    path = scenario.folder / file
    if not path.is_file():
        raise scenario.error(at, f"is {name}, but there is no file {path}")
    module = _run(scenario, path, at)
    if not hasattr(module, attribute):
        raise scenario.error(at, f"is {name}, but {path.name} defines no {attribute}")
    return getattr(module, attribute)


def _run(scenario: Scenario, path: Path, at: tuple[str, ...]) -> Any:
    spec = importlib.util.spec_from_file_location(f"edgesim_user_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever the user's file raises: say where
        raise scenario.error(at, f"cannot be loaded: {said(error, path)}") from error
    return module


def guarded(function: Callable, name: str, path: Path) -> Callable:
    """The user's function, which stands in the file ``path``; what it raises becomes one sentence with its line."""

    @wraps(function)
    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except (Exception, SystemExit) as error:
            raise UserCodeError(f"{name} failed: {said(error, path)}") from error

    return call


@contextmanager
def blamed(scenario: Scenario) -> Iterator[None]:
    """What a hook of the user's own method raises, as one sentence with file and line; other errors pass."""
    try:
        yield
    except Exception as error:
        for path in user_files(scenario):
            if any(Path(frame.filename).resolve() == path.resolve() for frame in frames_of(error)):
                raise UserCodeError(said(error, path)) from error
        raise


def frames_of(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def said(error: BaseException, path: Path) -> str:
    """file:line: kind: message, with the last line of the user's file that was running."""
    lines = [
        frame.lineno
        for frame in frames_of(error)
        if Path(frame.filename).resolve() == path.resolve()
    ]
    line = error.lineno if isinstance(error, SyntaxError) else (lines or [1])[-1]
    return f"{path}:{line}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"


def user_files(scenario: Scenario) -> list[Path]:
    """The files of user code that a scenario names."""
    names = (scenario.learning.method.name, scenario.allocation.solver)
    return [scenario.folder / name.rpartition(":")[0] for name in names if ".py:" in name]


def plain_user_files(scenario: Scenario) -> list[str]:
    """Names of the user files that lie right beside the scenario."""
    names = [
        path.relative_to(scenario.folder).as_posix()
        for path in user_files(scenario)
        if is_beside(scenario, path)
    ]
    return sorted(set(names))


def is_beside(scenario: Scenario, path: Path) -> bool:
    return (
        path.resolve().parent == scenario.folder.resolve()
        and path.parent.as_posix() == scenario.folder.as_posix()
    )
