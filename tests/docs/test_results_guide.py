"""The commands and the code of docs/guide/results.md, in order, as they are printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import matplotlib
import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "results.md"


def run_command(line: str) -> None:
    result = CliRunner().invoke(app, [*shlex.split(line)[1:], "--quiet"])
    assert result.exit_code == 0, result.output


@pytest.mark.slow
def test_the_guide_runs_as_printed_and_says_what_is_true(tmp_path, monkeypatch):
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    names: dict = {}
    text = PAGE.read_text(encoding="utf-8")
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S):
        if kind == "python":
            exec(block, names)
        else:
            run_command(block.strip() + " --workers 1")
    assert names["sweep"].units == {"network.bandwidth": "Hz"}
    assert names["table"].shape == (2, 2) and names["table"].notna().all(axis=None)
    assert len(names["results"].rounds) == 40 and len(names["uploads"])
    assert names["axes"].get_title() == "two seeds"
    assert len(names["longer"].rounds) == 25
    (line,) = re.findall(r"`(edgesim run [^`]*)`", text)
    run_command(line)
