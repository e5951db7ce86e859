"""The rooms import in one direction, and nothing heavy is imported before it is needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("solvers", "edgesim", "fl", "reports")
MAY_IMPORT = {
    "solvers": set(),
    "edgesim": {"solvers", "fl.contracts"},
    "fl": set(),
    "reports": {
        "edgesim.cli.options",
        "edgesim.errors",
        "edgesim.records.table_files",
        "edgesim.scenario.key_docs",
        "edgesim.scenario.units",
    },
}
NEVER = {"solvers": {"simpy", "torch"}, "edgesim": {"torch"}}
EVERY_ROOM = Path("edgesim/runs")  # builds a run: the only folder that knows every room


def imported(path: Path) -> set[str]:
    """Modules that a file imports anywhere, lazily or not, as dotted names."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names if node.module in ROOMS else {node.module}
    return found


def wrong_arrows(path: Path, room: str) -> set[str]:
    allowed = MAY_IMPORT[room]
    wrong = set()
    for name in imported(path):
        top = name.split(".")[0]
        ours = top in ROOMS and top != room
        if ours and not any(name == a or name.startswith(a + ".") for a in allowed):
            wrong.add(name)
        if top in NEVER.get(room, ()):
            wrong.add(name)
    return wrong


FILES = [(room, path) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.parametrize(("room", "path"), FILES, ids=[str(p.relative_to(ROOT)) for _, p in FILES])
def test_arrows_point_one_way(room, path):
    if EVERY_ROOM not in path.relative_to(ROOT).parents:
        assert wrong_arrows(path, room) == set()


def test_a_wrong_arrow_is_seen(tmp_path):
    bad = ROOT / "solvers" / "allocators" / "kkt.py"
    assert wrong_arrows(bad, "solvers") == set()
    copy = tmp_path / "copy.py"
    copy.write_text(
        "def f():\n    import torch\n    from edgesim.network.cell import Cell\n    from fl import masks\n"
    )
    assert {m.split(".")[0] for m in imported(copy)} == {"torch", "edgesim", "fl"}


@pytest.mark.parametrize(
    "statement",
    [
        "import edgesim.cli.app, reports.command",
        "import edgesim.scenario.loader",
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
