"""The files of `solvers` import in one direction, lazily or not; only types may be named the other way round."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import solvers

ROOM = Path(solvers.__file__).parent


def needed(source: str) -> set[str]:
    """Files of this room that a file imports, but for what only a checker of types reads."""
    tree, found = ast.parse(source), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("solvers"):
            found.add(node.module.removeprefix("solvers").removeprefix(".") or "__init__")
    return found


def order(sources: dict[str, str]) -> list[str]:
    return list(
        TopologicalSorter({name: needed(source) for name, source in sources.items()}).static_order()
    )


def test_no_circle():
    sources = {
        ".".join(path.relative_to(ROOM).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path.read_text(encoding="utf-8")
        for path in ROOM.rglob("*.py")
    }
    names = order(sources)
    assert set(names) == set(sources)
    assert names.index("problem") < names.index("allocation") < names.index("certificate")


def test_a_circle_is_seen():
    with pytest.raises(CycleError):
        order({"a": "def f():\n    from solvers.b import g", "b": "from solvers.a import f"})
    order({"a": "if TYPE_CHECKING:\n    from solvers.b import g", "b": "from solvers.a import f"})
