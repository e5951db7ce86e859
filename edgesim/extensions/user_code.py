"""The user's own code, ``./file.py:name`` in a scenario; it runs only with --allow-code."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from edgesim.errors import RELATIVE, ScenarioKeyError
from edgesim.scenario.documents.document import KeyPath
from edgesim.scenario.loader import Scenario
from edgesim.scenario.presence.presence_schema import TracePresence
from edgesim.scenario.radio.own_loss_schema import CodePathLoss, TracePathLoss

Key = tuple[str, ...]


def load_object(folder: Path, name: str, key: Key, allow_code: bool) -> Any | None:
    """The object that ``./file.py:name`` names; None for a plain name.

    Args:
        folder: of the scenario, from which paths count.
        name: as it stands in the scenario.
        key: path of the key that has it.
        allow_code: the user's code may run.

    Raises:
        ScenarioKeyError: it may not run, does not exist, or its file raised an exception.
    """
    if ".py:" not in name:
        return None
    if not allow_code:
        allow = "allow it with --allow-code, in Python with allow_code=True"
        raise ScenarioKeyError(key, f"is {name}, which runs code of yours; {allow}")
    file, _, attribute = name.rpartition(":")
    path = folder / file
    if not path.is_file():
        raise ScenarioKeyError(key, f"is {name}, but there is no file {path}; {RELATIVE}")
    try:
        module = _import(path)
    except (Exception, SystemExit) as error:
        raise ScenarioKeyError(key, f"cannot be loaded: {describe(error, path)}") from error
    if not hasattr(module, attribute):
        raise ScenarioKeyError(key, f"is {name}, but {path.name} defines no {attribute}")
    return getattr(module, attribute)


class FromSource(SourceFileLoader):
    """Compiles a file whenever it is loaded: that is the code whose digest a run keeps.

    Bytecode that was kept is taken for files of one size and second, which scripts write.
    """

    def path_stats(self, path: Any) -> Any:
        raise OSError("no bytecode is looked for, or written")


def _import(path: Path) -> ModuleType:
    name = f"edgesim_user_{path.stem}"
    loader = FromSource(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def guarded(function: Callable, key: Key, name: str, path: Path) -> Callable:
    """The user's function from the file ``path``; what it raises becomes an error of its key."""

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except (Exception, SystemExit) as error:
            raise failure(error, key, name, path, first_line(function, path)) from error

    return call


def first_line(function: Callable, path: Path) -> int:
    """Where a function, or what makes an object of a class, is defined in a file; 1 elsewhere."""
    made = getattr(function, "__init__", None) if isinstance(function, type) else function
    code = getattr(made, "__code__", None)
    return code.co_firstlineno if code and is_same(code.co_filename, path) else 1


def failure(
    error: BaseException, key: Key, name: str, path: Path, outside: int = 1
) -> ScenarioKeyError:
    """What the user's code raised, as the error of the key that names it."""
    return ScenarioKeyError(key, f"is {name}, which failed: {describe(error, path, outside)}")


def failure_in(
    error: BaseException, code: Sequence[tuple[Key, str, Path]]
) -> ScenarioKeyError | None:
    """The error of the user's code that was running; None where none was.

    Args:
        error: that was raised.
        code: keys of a scenario with the names there and their files; of several names in one
            file that is meant whose function or class was running.
    """
    for path in dict.fromkeys(path for *_, path in code):
        if running := codes_in(error, path) or refused_call(error, path):
            named = [(key, name) for key, name, file in code if file == path]
            known = {each.co_qualname.partition(".")[0] for each in running}
            ran = [each for each in named if each[1].rpartition(":")[2] in known] or named
            names = dict.fromkeys(name for _, name in ran)
            line = running[-1].co_firstlineno
            return failure(error, ran[0][0], " or ".join(names), path, line)
    return None


def codes_in(error: BaseException, path: Path) -> list[CodeType]:
    """Functions of a file that were running when an exception was raised, outermost first."""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [code for code in codes if is_same(code.co_filename, path)]


def refused_call(error: BaseException, path: Path) -> list[CodeType]:
    """The function of a file that was called with arguments that it does not take, if one was.

    It did not begin to run: Python says its name in ``NAME() takes ...`` or ``missing ...``. Of a
    function from elsewhere, such as torch.relu_, it is the function of the file that passes it on.
    """
    name, found, _ = str(error).partition("() ")
    if not isinstance(error, TypeError) or not found or path.suffix != ".py":
        return []
    codes = [compile(path.read_bytes(), str(path), "exec")]
    for code in codes:  # which grows on the way
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    own = [code for code in codes if code.co_qualname == name][:1]
    return own or [code for code in codes if name in code.co_names][-1:]


def describe(error: BaseException, path: Path, outside: int = 1) -> str:
    """file:line: kind: message, with the last line of the user's file that was running.

    Args:
        error: that was raised.
        path: the user's file.
        outside: the line to name where none was running, as in a call with too many arguments.
    """
    line, message = (lines_in(error, path) or [outside])[-1], str(error)
    if isinstance(error, SyntaxError) and is_same(error.filename or "", path):
        line, message = error.lineno or line, error.msg  # its text has file and line once more
    message = message.splitlines()[0] if message else "no message"
    cure = "; what it imports must be installed, or stand in the same file"
    needs = cure if isinstance(error, ModuleNotFoundError) else ""
    return f"{path}:{line}: {type(error).__name__}: {message}{needs}{notes_of(error)}"


def notes_of(error: BaseException) -> str:
    """What was added to an error on its way (PEP 678), as the end of its sentence."""
    return "".join(f"; {note}" for note in getattr(error, "__notes__", ()))


def lines_in(error: BaseException, path: Path) -> list[int | None]:
    """Lines of a file that were running when an exception was raised, outermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame.lineno for frame in frames if is_same(frame.filename, path)]


def is_same(name: str, path: Path) -> bool:
    """Does the name of a file, as the interpreter has it, mean this one?"""
    return Path(name).resolve() == path.resolve()


def code_path(scenario: Scenario, name: str) -> Path:
    """The file of ``./file.py:name``."""
    return scenario.folder / name.rpartition(":")[0]


def names_of_code(scenario: Scenario) -> dict[Key, str | None]:
    """Key -> the name there, which may stand for code; in an order that digests of runs keep."""
    learning, loss = scenario.learning, scenario.network.channel.path_loss
    return {
        ("network", "channel", "path_loss", "code"): (
            loss.code if isinstance(loss, CodePathLoss) else None
        ),
        ("learning", "method", "name"): learning.method.name,
        ("allocation", "solver"): scenario.allocation.solver,
        ("learning", "dataset"): learning.dataset,
        ("learning", "model"): learning.model,
        ("learning", "selection"): learning.selection.name,
        ("learning", "loss"): learning.loss,
        ("learning", "metric"): learning.metric,
    }


def user_code(scenario: Scenario) -> list[tuple[Key, str, Path]]:
    """Every ``./file.py:name`` of a scenario, with its key and its file."""
    names = names_of_code(scenario).items()
    return [
        (key, name, code_path(scenario, name)) for key, name in names if name and ".py:" in name
    ]


def user_files(scenario: Scenario) -> list[Path]:
    """The files of user code that a scenario names."""
    return [path for *_, path in user_code(scenario)]


def measured_files(scenario: Scenario) -> list[Path]:
    """The files of measured values that a scenario names."""
    return [scenario.folder / name for name in measured_names(scenario).values()]


def measured_names(scenario: Scenario) -> dict[KeyPath, str]:
    """Key -> the file of measured values that it names; in an order that digests of runs keep."""
    names: dict[KeyPath, str] = {}
    if isinstance(loss := scenario.network.channel.path_loss, TracePathLoss):
        names["network", "channel", "path_loss", "file"] = loss.file
    if isinstance(loss, CodePathLoss):
        for i, name in enumerate(loss.reads):
            names["network", "channel", "path_loss", "reads", i] = name
    for i, each in enumerate(scenario.devices):
        if each.mobility and each.mobility.trace:
            names["devices", i, "mobility", "trace"] = each.mobility.trace
    for i, each in enumerate(scenario.devices):
        if isinstance(each.presence, TracePresence):
            names["devices", i, "presence", "file"] = each.presence.file
    return names


def files_below(scenario: Scenario, paths: Iterable[Path]) -> list[str]:
    """Those of the files that lie in the scenario's folder or below, relative to it."""
    folder = scenario.folder
    return sorted(
        {
            path.relative_to(folder).as_posix()
            for path in paths
            if path.is_relative_to(folder) and ".." not in path.relative_to(folder).parts
        }
    )
