"""Code of the user's own: ``./file.py:name`` in a scenario. It runs only where --allow-code was given."""

from __future__ import annotations

import importlib.util
import traceback
from pathlib import Path
from typing import Any

from edgesim.scenario import Scenario


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
    except Exception as error:  # whatever the user's file raises: say where
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else (lines or ["?"])[-1]
        reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
        raise scenario.error(at, f"cannot be loaded: {path}:{line}: {reason}") from error
    return module


def user_files(scenario: Scenario) -> list[Path]:
    """The files of user code that a scenario names."""
    names = (scenario.learning.method.name, scenario.allocation.solver)
    return [scenario.folder / name.rpartition(":")[0] for name in names if ".py:" in name]
