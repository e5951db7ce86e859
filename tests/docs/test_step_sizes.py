"""Every shipped scenario says where its step sizes come from, and so does docs/methods.md."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from edgesim.scenario.base_file import read_with_base
from edgesim.scenario.loader import expand
from edgesim.sweep.swept_axes import axes_of_schemes, gather

ROOT = Path(__file__).parent.parent.parent
SCENARIOS = ROOT / "scenarios"
FILES = [*sorted(SCENARIOS.glob("*.yaml")), *sorted(SCENARIOS.glob("papers/**/*.yaml"))]
TUNING = sorted(SCENARIOS.glob("tuning/**/*.yaml"))
NOTHING_TRAINED, TUNED = "nothing is trained", "tuned: "


def name_of(path: Path) -> str:
    return path.relative_to(SCENARIOS).with_suffix("").as_posix()


def rows() -> list[tuple[list[str], str]]:
    """(patterns of names, what is said) of the table."""
    page = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
    section = page.split("## Where step sizes come from")[1].split("\n##")[0]
    lines = [line.strip("|").split("|", 1) for line in section.splitlines() if line[:3] == "| `"]
    return [(re.findall("`(.+?)`", names), said.strip()) for names, said in lines]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_scenario_says_what_the_table_says(path):
    (said,) = (said for names, said in rows() if any(fnmatch(name_of(path), n) for n in names))
    head, _, keys = path.read_text(encoding="utf-8").partition("\nname:")
    words = " ".join(line.strip("# ") for line in head.splitlines())
    reports = {scenario.report and scenario.report.untuned for _, scenario in expand(path)}
    compared = said == NOTHING_TRAINED or said.startswith(TUNED)
    assert reports == {None} if compared else None not in reports
    if said == NOTHING_TRAINED:
        assert "dataset: none" in keys
    elif said.startswith(TUNED):
        assert re.search("samples held out|tuned step size", words)
    else:
        assert re.search(r"[Nn]o step size is tuned|[Nn]one is tuned|not tuned", words)


@pytest.mark.parametrize("path", TUNING, ids=name_of)
def test_what_is_tuned_is_inside_a_grid_a_factor_of_20_wide_of_the_same_length_for_all(path):
    document, _ = read_with_base(path)
    axes, seeds = gather(document, (), None)
    own = axes_of_schemes(document, axes)
    place = path.relative_to(SCENARIOS / "tuning").parent
    name = f"{path.stem.removesuffix('-tuning')}.yaml"
    tuned = SCENARIOS / place / "tuned" / name  # what was chosen, where the sweep has been run
    tuned = tuned if tuned.exists() else SCENARIOS / place / name
    counts = set()
    for label, scenario in expand(tuned):
        method = scenario.learning.method.params
        for axis in (axis for axis in (*axes, *own.get(label, ())) if axis.keys[0].endswith("lr")):
            grid = sorted(float(row[0].text) for row in axis.rows)
            chosen = method.get(axis.keys[0].rpartition(".")[2], 0.1)  # fedpm's default
            assert grid[-1] / grid[0] >= 20 and grid[0] < chosen < grid[-1], label
            assert min(abs(value / chosen - 1) for value in grid) < 1e-9, label
            counts.add(len(grid))
    assert len(counts) == 1 and not {0, 1, 2, 3, 4} & set(seeds)
