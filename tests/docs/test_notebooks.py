"""The notebooks of the documentation hold their outputs, and run again (with two rounds)."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import matplotlib
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
nbformat = pytest.importorskip("nbformat", reason="make docs installs nbformat")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_were_run_in_order_without_an_error(path):
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not re.search(r"/(home|tmp|root|work)/", path.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_run_again(path, tmp_path, monkeypatch):
    """By IPython in this process: a kernel of its own would load every library once more."""
    ipython = pytest.importorskip("IPython.core.interactiveshell", reason="comes with make docs")
    config = pytest.importorskip("traitlets.config").Config({"HistoryManager": {"enabled": False}})
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    matplotlib.use("agg")
    shell = ipython.InteractiveShell(config=config, user_module=ModuleType("notebook"))
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "code":
            source = re.sub(r"^rounds: \d+$", "rounds: 2", cell.source, flags=re.MULTILINE)
            shell.run_cell(source).raise_error()
