"""Digest of the code that decides a result, found by following imports from what carries out a run.

Editing a module that takes part in a run changes the digest; editing a method that the run does not
use, the command line or a report does not.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("edgesim", "fl", "solvers")
ENTRY = "edgesim.runs.run"  # simulates a scenario from start to end


@cache
def code_digest(method: type) -> str:
    """SHA-256 over the files behind runs of that method; read once, as the process keeps its code.

    Args:
        method: class of the method; the modules of its bases are followed too.
    """
    return digest(code_files(method))


def digest(files: dict[str, Path]) -> str:
    """SHA-256 over module names and file contents, wherever the files lie."""
    total = hashlib.sha256()
    for name, path in files.items():
        total.update(name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def code_files(method: type) -> dict[str, Path]:
    """Module name -> file of all that the entry point and the method import, sorted by name."""
    waiting = [ENTRY, *(cls.__module__ for cls in method.__mro__)]
    found: dict[str, Path] = {}
    while waiting:
        for name in _with_parents(waiting.pop()):
            path = None if name in found else _module_file(name)
            if path is not None:
                found[name] = path
                waiting += _imported(path)
    return dict(sorted(found.items()))


def _with_parents(module: str) -> list[str]:
    """``a.b.c`` -> ``a``, ``a.b``, ``a.b.c``: importing a module runs its packages first."""
    parts = module.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts) + 1)]


@cache
def _module_file(module: str) -> Path | None:
    """File of a module of this project; None for other packages and for names within a module."""
    package, _, rest = module.partition(".")
    if package not in PACKAGES:
        return None
    spec = find_spec(package)
    for root in map(Path, spec.submodule_search_locations if spec else ()):
        place = root.joinpath(*rest.split(".")) if rest else root
        for path in (place / "__init__.py", place.with_suffix(".py")):
            if path.is_file():
                return path
    return None


@cache
def _imported(path: Path) -> frozenset[str]:
    """Dotted names that a file imports at any depth, lazily or not; ``from a import b`` is both."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)
