"""Methods, solvers, models, data sets, channels and selection rules of installed packages.

A package registers them as entry points, such as ``[project.entry-points."edgesim.methods"]``. What
is installed is trusted: it needs no --allow-code. Nothing of it is imported before it is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from edgesim.errors import ScenarioKeyError

KINDS = ("methods", "solvers", "models", "datasets", "channels", "selection")
Key = tuple[str, ...]


def group_of(kind: str) -> str:
    """The group of the entry points of a kind."""
    return f"edgesim.{kind}"


def registered(kind: str) -> dict[str, list[EntryPoint]]:
    """Name -> the entry points of that name, of one kind."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group_of(kind)):
        found.setdefault(entry.name, []).append(entry)
    return dict(sorted(found.items()))


def find_installed(kind: str, name: str, key: Key, shipped: Collection[str]) -> Any | None:
    """The object that an installed package registers under a name.

    Args:
        kind: one of KINDS.
        name: as it stands in the scenario.
        key: path of the key that has it.
        shipped: the names that this package has itself; they are never replaced.

    Returns:
        The object; None where the name is a shipped one, or nobody registers it.

    Raises:
        ScenarioKeyError: it cannot be loaded, or several packages register it.
    """
    entry = entry_of(kind, name, key, shipped)
    if entry is None:
        return None
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        problem = f"is {name}, which {package_of(entry)} cannot load: {one_line(error)}"
        raise ScenarioKeyError(key, f"{problem}; install that package again") from error


def entry_of(kind: str, name: str, key: Key, shipped: Collection[str]) -> EntryPoint | None:
    """The entry point of `find_installed`, not loaded."""
    entries = [] if name in shipped or ".py:" in name else registered(kind).get(name, [])
    if len(entries) > 1:
        packages = " and ".join(sorted(map(package_of, entries)))
        raise ScenarioKeyError(key, f"is {name}, which {packages} register; remove one of them")
    return entries[0] if entries else None


def more_names(kind: str, shipped: Collection[str]) -> str:
    """What an error adds to the names that are allowed: ``, or of packages: mine, other``."""
    names = [name for name in registered(kind) if name not in shipped]
    return f", or of installed packages: {', '.join(names)}" if names else ""


def installed_rows(kind: str, shipped: Collection[str]) -> list[tuple[str, str, str]]:
    """(name, one line, package) of what installed packages register, also of what is broken."""
    rows = []
    for name, entries in registered(kind).items():
        for entry in entries:
            rows.append((name, _line_of(entry, name in shipped), package_of(entry)))
    return rows


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
