"""The code that decides a point's results: who changes it gets new points, who adds another method does not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

ROOMS = ("edgesim", "fl", "solvers")
METHODS = "fl/methods/"  # one file each; of these only those that the method derives from
SAYS_AND_ASKS = ("edgesim/sweep/", "edgesim/cli", "edgesim/console", "edgesim/tracker", "edgesim/explain")


@cache
def code_digest(method: type) -> str:
    """Digest of the files behind runs of that method, read once: this process goes on with what it has imported."""
    return digest(code_files(method))


def digest(files: dict[str, Path]) -> str:
    """Of names and contents, wherever the files lie."""
    total = hashlib.sha256()
    for name, path in files.items():
        total.update(name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def code_files(method: type) -> dict[str, Path]:
    """Name -> file, in the order of their names."""
    own = {f"{cls.__module__.replace('.', '/')}.py" for cls in method.__mro__}
    return {name: path for name, path in sorted(_files()) if not name.startswith(METHODS) or name in own}


def _files() -> Iterable[tuple[str, Path]]:
    for room in ROOMS:
        for place in map(Path, find_spec(room).submodule_search_locations):
            for path in place.rglob("*.py"):
                name = f"{room}/{path.relative_to(place).as_posix()}"
                if not name.startswith(SAYS_AND_ASKS):
                    yield name, path
