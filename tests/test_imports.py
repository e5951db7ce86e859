"""Imports run one way between files and between folders, and nothing heavy is imported early.

No folder is a hall, and tests lie at the place of what they test.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("solvers", "fl", "edgesim", "reports")
MAY_IMPORT = {
    "solvers": set(),
    "fl": set(),
    "edgesim": {"solvers", "fl"},
    "reports": {"edgesim"},
}
NEVER = {"solvers": {"simpy", "torch"}, "fl": {"simpy"}, "reports": {"simpy", "torch"}}


def modules_of(root: Path) -> dict[str, Path]:
    """Dotted name -> file of every module of the packages below ``root``."""
    found = {}
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def names_imported(path: Path) -> frozenset[str]:
    """Dotted names that a file imports at any depth, lazily or for types; `from a import b` is
    a.b.
    """
    return names_in(path.read_text(encoding="utf-8"))


@cache
def names_in(code: str) -> frozenset[str]:
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import of {[alias.name for alias in node.names]}"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def arrows_of(root: Path) -> dict[str, set[str]]:
    """Module -> modules of the packages that it imports."""
    modules = modules_of(root)
    arrows = {}
    for module, path in modules.items():
        targets = set()
        for name in names_imported(path):
            module_of_name = name if name in modules else name.rpartition(".")[0]
            if module_of_name in modules:
                targets.add(module_of_name)
        arrows[module] = targets - {module}
    return arrows


def wrong_arrows(root: Path) -> list[str]:
    """Imports between packages, or of libraries, that are not allowed."""
    wrong = []
    for module, path in modules_of(root).items():
        package = module.split(".")[0]
        for name in sorted(names_imported(path)):
            top = name.split(".")[0]
            foreign = top in PACKAGES and top not in {package, *MAY_IMPORT[package]}
            if foreign or top in NEVER.get(package, ()):
                wrong.append(f"{module} -> {name}")
    return wrong


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """One circle of a graph, or an empty list."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def circles(root: Path) -> dict[str, list[str]]:
    """Circles between files ("files"), and by folder between the files and folders in it.

    A folder counts as one node beside its neighbours. Arrows between neighbours without a circle
    can be drawn so that all of them run down.
    """
    arrows = arrows_of(root)
    levels: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module, targets in arrows.items():
        for target in targets:
            one, other = module.split("."), target.split(".")
            depth = next(
                (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
                min(len(one), len(other)),
            )
            if depth < min(len(one), len(other)):  # else one is the face (__init__) of the other
                levels[".".join(one[:depth])][one[depth]].add(other[depth])
    found = {folder or ".": circle(graph) for folder, graph in levels.items()}
    found["files"] = circle(arrows)
    return {folder: path for folder, path in found.items() if path}


@pytest.mark.slow
def test_packages_import_in_one_direction():
    assert wrong_arrows(ROOT) == []


def test_neither_files_nor_folders_import_each_other_in_a_circle():
    assert circles(ROOT) == {}


CATALOGUES = ("fl/methods", "tests/fl/methods")  # one module per method


def halls(root: Path) -> list[str]:
    """Folders of packages and tests with more than twelve modules, their faces not counted."""
    modules = Counter(
        path.parent.relative_to(root).as_posix()
        for package in (*PACKAGES, "tests")
        for path in (root / package).rglob("*.py")
        if path.name != "__init__.py"
    )
    return [folder for folder in modules if modules[folder] > 12 and folder not in CATALOGUES]


def test_no_folder_is_a_hall():
    assert halls(ROOT) == []


@pytest.mark.parametrize("folder", ["edgesim/records", "tests/solvers"])
def test_a_hall_is_seen(tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True)
    for name in ("__init__", *"abcdefghijkl"):
        (tmp_path / folder / f"{name}.py").touch()
    assert halls(tmp_path) == []
    (tmp_path / folder / "m.py").touch()
    assert halls(tmp_path) == [folder]


def strays(root: Path) -> list[str]:
    """Folders of tests that are named for no folder and no module of the code."""
    folders = {
        path.parent.relative_to(root / "tests")
        for package in (*PACKAGES, "examples")
        for path in (root / "tests" / package).rglob("*.py")
    }
    code = (root / folder for folder in folders)
    return [str(at) for at in code if not (at.is_dir() or at.with_suffix(".py").is_file())]


def test_tests_mirror_the_tree_of_the_code():
    assert strays(ROOT) == []


def test_a_stray_folder_of_tests_is_seen(tmp_path):
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "problem.py").touch()
    for folder in ("solvers/problem", "solvers/nothing"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "test_it.py").touch()
    assert strays(tmp_path) == [str(tmp_path / "solvers" / "nothing")]


def test_no_file_of_tests_is_long():
    files = (ROOT / "tests").rglob("*.py")
    assert [path for path in files if len(path.read_text().splitlines()) > 300] == []


PLANTED = {
    "a package that stands above": ("solvers/problem.py", "from edgesim.network.cell import Cell"),
    "learning that knows time": ("fl/accounting.py", "def f():\n    import simpy"),
    "a library for types only": (
        "solvers/problem.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch",
    ),
    "reports by name": (
        "edgesim/cli/app.py",
        "def f():\n    from reports.page import write_report",
    ),
}


@pytest.fixture
def copy(tmp_path):
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )

    def plant(file, line):
        path = tmp_path / file
        path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
        return tmp_path

    return plant


@pytest.mark.slow
@pytest.mark.parametrize(("file", "line"), PLANTED.values(), ids=PLANTED)
def test_a_planted_arrow_is_seen(copy, file, line):
    module = file.removesuffix(".py").replace("/", ".")
    assert [arrow.split(" -> ")[0] for arrow in wrong_arrows(copy(file, line))] == [module]


@pytest.mark.slow
def test_a_planted_circle_of_files_is_seen(copy):
    root = copy("solvers/problem.py", "def f():\n    from solvers import certificate")
    assert {"solvers.problem", "solvers.certificate"} <= set(circles(root)["files"])


@pytest.mark.slow
def test_a_planted_circle_of_folders_is_seen(copy):
    """No circle of files: the two that import each other's folder are four different files."""
    root = copy("edgesim/scenario/units.py", "from edgesim.network import grants")
    assert {"scenario", "network"} <= set(circles(root)["edgesim"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "import edgesim.cli",
        "import edgesim.scenario",
        "import fl.methods.liu, fl.data.datasets, fl.models.architectures",
        "import solvers",
    ],
)
def test_heavy_libraries_wait_until_they_are_needed(statement):
    """`edgesim --help` and `edgesim check` answer at once because of this."""
    heavy = "{'torch', 'pandas', 'pyarrow', 'scipy', 'cvxpy', 'matplotlib', 'sklearn'}"
    code = f"import sys; {statement}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("given", "then"), [({}, "AUTO"), ({"MKL_CBWR": "SSE4_2"}, "SSE4_2")])
@pytest.mark.parametrize("package", ["edgesim", "fl"])
def test_the_import_says_how_mkl_rounds(package, given, then):
    code = f"import {package}, os; print(os.environ['MKL_CBWR'])"
    others = {name: value for name, value in os.environ.items() if name != "MKL_CBWR"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=others | given,
        check=True,
    )
    assert done.stdout.strip() == then
