"""What decides the bytes of a run, as hashes: scenario, seed, data, versions and code.

The digest of the code follows imports from what carries out a run: editing a module that takes part
changes it; editing a method that the run does not use, the command line or a report does not.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from edgesim.extensions.entry_points import entries_named, identity_of
from edgesim.extensions.user_code import measured_files, user_files
from edgesim.runs.artifacts import versions
from edgesim.runs.setup.setup import Setup
from fl.contracts import Array
from fl.data.own_data import content_digest
from fl.methods import available

PACKAGES = ("edgesim", "fl", "solvers")
# An import at the beginning of a line, found 35 times faster than by parsing; lines of texts that
# read like one name modules that are not there, or too many.
_IMPORT = re.compile(
    r"^[ \t]*(?:import (?P<modules>.+)"
    r"|from (?P<package>[\w.]+) import (?P<names>\((?:#.*|[^)#])*\)|.+))",
    re.MULTILINE,
)
_COMMENT = re.compile(r"#.*")
ENTRY = "edgesim.runs.run"  # simulates a scenario from start to end


def result_digest(setup: Setup) -> str:
    """SHA-256 of what decides the results: scenario, seed, data, user code, versions, device."""
    where = [setup.scenario.learning.device, setup.arithmetic()]
    parts = [setup.scenario.digest(), str(setup.seed), *where, *map(str, versions().items())]
    parts += map(identity_of, entries_named(setup.scenario))
    total = hashlib.sha256("\n".join(parts).encode())
    own = [*user_files(setup.scenario), *measured_files(setup.scenario)]
    for path in [*own, *setup.source.files]:
        total.update(file_digest(path))
    total.update(memory_digest(setup))
    for labels in (setup.task.data.y_train, setup.task.data.y_test):
        total.update(labels.tobytes())
    return total.hexdigest()


def training_digest(setup: Setup) -> str | None:
    """SHA-256 of what decides training and evaluation beside states, jobs and the processor.

    That is the data and who holds them, model, method, seed, arithmetic and code. None where
    nothing is trained, or by the user's own code, which could read anything. Torch need not be
    loaded for it.
    """
    learning = setup.scenario.learning
    own_code = (
        learning.method.name not in available()
        or not setup.task.architecture.in_layers
        or any(".py:" in (name or "") for name in (learning.loss, learning.metric))
    )
    if setup.counts_only or own_code:
        return None
    parts = [
        setup.scenario.digest(("learning", "accounting")),
        str(setup.seed),
        setup.scenario.learning.device,
        setup.arithmetic(),
        *map(str, versions().items()),
    ]
    total = hashlib.sha256("\n".join(parts).encode())
    total.update(code_digest(type(setup.method)).encode())
    data = setup.task.data
    for path in setup.source.files:
        total.update(file_digest(path))
    total.update(memory_digest(setup))
    held = (data.y_train, data.y_test, setup.task.samples, *data.train_index, *data.test_index)
    for array in held:
        total.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return total.hexdigest()


def memory_digest(setup: Setup) -> bytes:
    """SHA-256 of samples that no file holds, and of a module of the user's own; or nothing."""
    data, given = setup.task.data, setup.source.samples
    held: list[Array | None] = []
    if setup.source.in_memory and given is not None:
        held = [data.x_train, data.x_test, *(given.owners or ()), given.clients]
    known = [array for array in held if array is not None]
    return (content_digest(known) if known else b"") + setup.task.architecture.digest()


def file_digest(path: Path) -> bytes:
    """SHA-256 of a file; it is read again only if it has changed."""
    found = path.stat()
    return _file_digest(path, found.st_size, found.st_mtime_ns, found.st_ino)


@lru_cache(maxsize=1024)
def _file_digest(path: Path, *stamp: int) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


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
        total.update(name.encode() + file_digest(path))
    return total.hexdigest()


def code_files(method: type) -> dict[str, Path]:
    """Module name -> file of all that the entry point and the method import, sorted by name."""
    waiting = {ENTRY, *(cls.__module__ for cls in method.__mro__)}
    found: dict[str, Path] = {}
    seen: set[str] = set()
    while waiting:
        for name in _with_parents(waiting.pop()):
            if name in seen:
                continue
            seen.add(name)
            if (path := _module_file(name)) is not None:
                found[name] = path
                waiting |= _imported(path) - seen
    return dict(sorted(found.items()))


@cache
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
    for root in map(Path, (spec and spec.submodule_search_locations) or ()):
        place = root.joinpath(*rest.split(".")) if rest else root
        for path in (place / "__init__.py", place.with_suffix(".py")):
            if path.is_file():
                return path
    return None


@cache
def _imported(path: Path) -> frozenset[str]:
    """Dotted names that a file imports at any depth, lazily or not; ``from a import b`` is both."""
    names: set[str] = set()
    for found in _IMPORT.finditer(path.read_text(encoding="utf-8")):
        after = _COMMENT.sub("", found["names"] or found["modules"]).strip("()")
        imported = [each.split()[0] for each in after.split(",") if each.strip()]
        package = found["package"]
        names |= {package, *(f"{package}.{name}" for name in imported)} if package else {*imported}
    return frozenset(names)
