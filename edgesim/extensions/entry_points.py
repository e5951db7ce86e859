"""Methods, solvers, models, data sets, channels and selection rules of installed packages.

A package registers them as entry points, such as ``[project.entry-points."edgesim.methods"]``. What
is installed is trusted: it needs no --allow-code. Nothing of it is imported before it is used.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import solvers
from edgesim.errors import ScenarioKeyError
from edgesim.extensions.user_code import Key, code_path, guarded, load_object, names_of_code
from edgesim.scenario.loader import Scenario
from fl import methods
from fl.data import datasets
from fl.learned_selection.catalogue import LEARNING_RULES
from fl.models.named_models import MODELS
from fl.selection.selection_rules import RULES

SHIPPED: dict[str, Callable[[], Collection[str]]] = {  # by kind: names that stay this project's own
    "methods": methods.available,
    "solvers": lambda: solvers.METHODS,
    "models": lambda: MODELS,
    "datasets": lambda: [*datasets.DATASETS, datasets.NONE],
    "channels": list,
    "selection": lambda: [*RULES, *LEARNING_RULES],
}
KEYS: dict[str, Key] = {  # by kind: where a scenario names one
    "methods": ("learning", "method", "name"),
    "solvers": ("allocation", "solver"),
    "models": ("learning", "model"),
    "datasets": ("learning", "dataset"),
    "channels": ("network", "channel", "path_loss", "code"),
    "selection": ("learning", "selection"),
}


def group_of(kind: str) -> str:
    """The group of the entry points of a kind."""
    return f"edgesim.{kind}"


def registered(kind: str) -> dict[str, list[EntryPoint]]:
    """Name -> the entry points of that name, of one kind."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group_of(kind)):
        found.setdefault(entry.name, []).append(entry)
    return dict(sorted(found.items()))


def find_object(kind: str, scenario: Scenario, name: str, key: Key, allow_code: bool) -> Any | None:
    """The object that a name stands for: ``./file.py:name``, or what a package registers.

    Args:
        kind: one of SHIPPED.
        scenario: paths are relative to its folder.
        name: as it stands in the scenario.
        key: path of the key that has it.
        allow_code: the user's code may run; what is installed needs no permission.

    Returns:
        The object; None where the name is a shipped one, or nobody knows it.

    Raises:
        ScenarioKeyError: it may not run, cannot be loaded, or several packages register it.
    """
    own = load_object(scenario.folder, name, key, allow_code)
    entry = entry_of(kind, name, key) if own is None else None
    if entry is None:
        return own
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        problem = f"is {name}, which {package_of(entry)} cannot load: {one_line(error)}"
        raise ScenarioKeyError(key, f"{problem}; install that package again") from error


def find_function(
    kind: str, scenario: Scenario, name: str, key: Key, allow_code: bool, arguments: str
) -> Callable | None:
    """`find_object` of what has to be a function; what it raises becomes an error of its key.

    Args:
        kind: as of `find_object`, with those that follow.
        arguments: of the function, in the words of an error, such as "a view".
    """
    own = find_object(kind, scenario, name, key, allow_code)
    if own is None:
        return None
    if not callable(own):
        raise ScenarioKeyError(key, f"is {name}, which is no function of {arguments}")
    return guarded_object(own, scenario, kind, name)


def guarded_object(own: Callable, scenario: Scenario, kind: str, name: str) -> Callable:
    """A function of `find_object`; what it raises becomes an error of the key that names it."""
    path = code_path(scenario, name) if ".py:" in name else file_of(own, entry_of(kind, name, ()))
    return guarded(own, KEYS[kind], name, path)


def file_of(own: Callable, entry: EntryPoint | None) -> Path:
    """The file with the code of a function, or of the class of what is called in its place.

    What is written in C has none: there it is the file of the module that registers it.
    """
    own = inspect.unwrap(own)
    while isinstance(own, partial):
        own = own.func
    for each in (own, type(own)):
        with suppress(TypeError, OSError):
            return Path(inspect.getfile(each))
    spec = find_spec(entry.module) if entry else None
    return Path((spec and spec.origin) or str(own))


def entries_of(kind: str, name: str) -> list[EntryPoint]:
    """The entry points that a name may stand for, not loaded; none where it is a shipped one."""
    shipped = ".py:" in name or name in SHIPPED[kind]()
    return [] if shipped else registered(kind).get(name, [])


def entry_of(kind: str, name: str, key: Key) -> EntryPoint | None:
    """The entry point that a name stands for, not loaded; None where it is not of a package."""
    entries = entries_of(kind, name)
    if len(entries) > 1:
        packages = " and ".join(sorted(map(package_of, entries)))
        raise ScenarioKeyError(key, f"is {name}, which {packages} register; remove one of them")
    return entries[0] if entries else None


def entries_named(scenario: Scenario) -> list[EntryPoint]:
    """The entry points that a scenario uses."""
    return [entry for _, entry in _entries(scenario)]


def _entries(scenario: Scenario) -> list[tuple[Key, EntryPoint]]:
    """The entry points that names of a scenario stand for, with the keys of these names."""
    names = names_of_code(scenario)
    named = [(kind, key, name) for kind, key in KEYS.items() if (name := names[key])]
    return [(key, entry) for kind, key, name in named for entry in entries_of(kind, name)]


def package_code(scenario: Scenario) -> list[tuple[Key, str, Path]]:
    """What of a scenario stands for objects of installed packages: key, name and module's file.

    Modules that are imported: no code of another one can have failed.
    """
    found = [(key, each.name, sys.modules.get(each.module)) for key, each in _entries(scenario)]
    files = [(key, name, getattr(module, "__file__", None)) for key, name, module in found]
    return [(key, name, Path(file)) for key, name, file in files if file]


def added_names(kind: str) -> list[str]:
    """Names that installed packages add to the shipped ones."""
    return [name for name in registered(kind) if name not in SHIPPED[kind]()]


def more_names(kind: str) -> str:
    """What an error adds to the names that are allowed: ``, or of installed packages: mine``."""
    names = added_names(kind)
    return f", or of installed packages: {', '.join(names)}" if names else ""


def installed_rows(kind: str) -> list[tuple[str, str, str]]:
    """(name, one line, package) of what installed packages register, also of what is broken."""
    rows = []
    for name, entries in registered(kind).items():
        for entry in entries:
            rows.append((name, _line_of(entry, name in SHIPPED[kind]()), package_of(entry)))
    return rows


def installed(kind: str) -> dict[str, Any]:
    """Name -> the object that a scenario gets by it, of installed packages; none that is broken."""
    objects: dict[str, Any] = {}
    for name in registered(kind):
        with suppress(Exception, SystemExit):
            if entry := entry_of(kind, name, ()):
                objects[name] = entry.load()
    return objects


def package_of(entry: EntryPoint) -> str:
    """Name and version of the package of an entry point."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module


def identity_of(entry: EntryPoint) -> str:
    """What decides what an entry point does: its package, its version and its module's content."""
    content = b""
    spec = find_spec(entry.module.partition(".")[0])
    for place in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(place).rglob("*.py")):
            content += path.read_bytes()
    if spec and spec.origin and not spec.submodule_search_locations:
        content = Path(spec.origin).read_bytes()
    return f"{package_of(entry)} {entry.value} {hashlib.sha256(content).hexdigest()}"


def one_line(error: BaseException) -> str:
    """Kind and first line of an exception."""
    message = str(error).splitlines()[0] if str(error) else "no message"
    return f"{type(error).__name__}: {message}"


def _line_of(entry: EntryPoint, hidden: bool) -> str:
    if hidden:
        return "not used: a shipped one has this name; the package should choose another"
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:
        return f"cannot be loaded: {one_line(error)}"
    return (getattr(loaded, "__doc__", None) or "no description").strip().split("\n")[0]
