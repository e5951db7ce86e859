"""The commands and the code of docs/guide/results.md as printed, and the bands that pages sweep."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import matplotlib
import pytest
from safetensors.numpy import load_file
from typer.testing import CliRunner

import edgesim
from edgesim.cli.app import app
from edgesim.errors import ResultsError
from edgesim.runs.run import feasibility
from edgesim.sweep.sweep_plan import plan_sweep

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
    assert names["table"].shape == (2, 2) and (names["table"] > 0).all(axis=None)
    assert len(names["results"].rounds) == 40 and len(names["uploads"])
    assert names["axes"].get_title() == "two seeds"
    assert len(names["longer"].rounds) == 25
    (line,) = re.findall(r"`(edgesim run [^`]*)`", text)
    run_command(line)


def test_runs_without_training_have_no_model_and_no_accuracy_as_the_guide_says(tmp_path):
    matplotlib.use("agg")
    changes = ["learning.dataset=none", "~learning.partition", "rounds=1"]
    scenario = edgesim.load(ROOT / "scenarios" / "demo.yaml", changes, label="joint")
    edgesim.simulate(scenario, out=tmp_path / "run")
    assert load_file(tmp_path / "run" / "model.safetensors") == {}
    results = edgesim.load_run(tmp_path / "run")
    assert results.plot("latency")
    with pytest.raises(ResultsError, match="no test accuracy"):
        results.plot()
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    model = text.partition("**The trained model.**")[2].partition("**Figures.**")[0]
    assert "runs/mine" not in model and "the file is empty" in model
    assert "the accuracy over simulated time, of runs with training" in text


def swept_bands(page: Path) -> list[list[str]]:
    """The changes of each swept band of a page: of its commands, its table and its block."""
    text = page.read_text(encoding="utf-8")
    commands = re.findall(r"^(edgesim sweep .*network\.bandwidth.*)", text, re.M)
    found = [[word for word in shlex.split(line) if "=" in word] for line in commands]
    found += [
        shlex.split(item) for item in re.findall(r"^\| `('?network\.bandwidth.*?)` ", text, re.M)
    ]
    block = re.search(r"^sweep:\n((?: +.*\n)+)", text, re.M)
    keys = dict(re.findall(r"^ +([\w.]+): (.*)", block[1], re.M)) if block else {}
    axes = [f"{key}={value.strip('[]')}" for key, value in keys.items() if key != "seeds"]
    return found + ([[axis.replace(" ", "") for axis in axes]] if axes else [])


@pytest.mark.slow
@pytest.mark.parametrize("page", ["guide/results.md", "use/sweeps.md"])
def test_every_swept_band_of_the_page_prunes(page):
    bands = swept_bands(ROOT / "docs" / page)
    assert len(bands) == {"guide/results.md": 1, "use/sweeps.md": 5}[page]
    for words in bands:
        kept = [word for word in words if not word.startswith(("learning.", "~"))]
        changes = [*kept, "learning.dataset=none", "~learning.partition"]
        plan = plan_sweep(ROOT / "scenarios" / "demo.yaml", changes, "0-4", only=["joint"])
        for point in plan.points:
            rows = feasibility(point.scenario, point.seed).rows
            assert max(row["rho"] for row in rows) > 0, (words, point.name)
