"""Every shipped scenario says where its step sizes come from, and so does docs/methods.md.

Its table of methods names scenarios that play them.
"""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from edgesim.scenario.base_file import read_with_base
from edgesim.scenario.loader import expand
from edgesim.scenario.overrides import scheme_labels
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


def test_the_scenarios_beside_a_method_play_it():
    """All methods of a row are in its scenarios; a method in brackets is the only one there."""
    page = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
    texts = {name_of(path): path.read_text(encoding="utf-8") for path in FILES}
    lines = [line for line in page.split("\n## ")[0].splitlines() if line[:3] == "| `"]
    assert len(lines) > 30
    for line in lines:
        first, *_, last, _ = line.removeprefix("|").split("|")
        for pattern, only in re.findall(r"`([^`]+)`(?: \(`([^`]+)`\))?", last):
            found = [texts[name] for name in texts if fnmatch(name, pattern)]
            for method in [only] if only else re.findall("`(.+?)`", first):
                plays = re.compile(rf"method:\s*{{?\s*name: {method}\b(?!-)")
                assert found and all(map(plays.search, found)), (method, pattern)


def swept(path: Path) -> tuple[dict[str | None, list], tuple[int, ...] | None]:
    """(the axes of each scheme of a file, those of all among them, its seeds)."""
    document, _ = read_with_base(path)
    axes, seeds = gather(document, ())
    own = axes_of_schemes(document)
    found = {}
    for label in scheme_labels(document):
        mine = own.get(label, [])
        keys = {key for axis in mine for key in axis.keys}
        found[label] = [*mine, *(axis for axis in axes if not keys & set(axis.keys))]
    return found, seeds


def chosen(axes: list, key: str, params: dict[str, float]) -> set[float]:
    """The values of a key in a tuned scenario: one for each value of an axis, or a single one."""
    along = {float(v.text) for axis in axes for row in axis.rows for v in row if v.key == key}
    return along or {params.get(key.rpartition(".")[2], 0.1)}  # fedpm's default


@pytest.mark.parametrize("path", TUNING, ids=name_of)
def test_what_is_tuned_is_inside_a_grid_a_factor_of_20_wide_of_the_same_length_for_all(path):
    grids, seeds = swept(path)
    place = path.relative_to(SCENARIOS / "tuning").parent
    name = f"{path.stem.removesuffix('-tuning')}.yaml"
    tuned = SCENARIOS / place / "tuned" / name  # what was chosen, where the sweep has been run
    tuned = tuned if tuned.exists() else SCENARIOS / place / name
    found, _ = swept(tuned)
    counts = set()
    for label, scenario in expand(tuned):
        params = scenario.learning.method.params
        for axis in (axis for axis in grids[label] if axis.keys[0].endswith("lr")):
            grid = sorted(float(row[0].text) for row in axis.rows)
            for value in chosen(found[label], axis.keys[0], params):
                assert grid[-1] / grid[0] >= 20 and grid[0] < value < grid[-1], label
                assert min(abs(each / value - 1) for each in grid) < 1e-9, label
            counts.add(len(grid))
    assert len(counts) == 1 and not {0, 1, 2, 3, 4} & set(seeds)


@pytest.mark.parametrize("page", ["methods", "papers/step-sizes"])
def test_the_step_size_in_bold_is_the_best_of_its_line(page):
    lines = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8").splitlines()
    bold = [line for line in lines if line[:2] == "| " and re.search(r"\*\*[\d.]+\*\* \|", line)]
    assert len(bold) > 20
    for line in bold:
        cells = [each.strip() for each in line.split("|")[2:]]  # of several seeds the mean ends it
        read = [re.fullmatch(r"(?:.*: )?(\**)([\d.]+)\1", cell) for cell in cells]
        found = [(float(each[2]), bool(each[1])) for each in read if each]
        (best,) = [value for value, is_bold in found if is_bold]
        assert best == max(value for value, _ in found), line


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs/notebooks").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_a_notebook_with_one_step_size_for_several_says_that_it_is_no_fair_comparison(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    words = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    assert re.search(
        r"One step size for (all|both)[\w ]* is not a fair comparison[^.;]*;\n\[sweeps\]"
        r"\(\.\./use/sweeps\.md\)", "\n".join(words),
    )  # fmt: skip


def test_the_page_of_the_ladder_says_what_the_table_says():
    (said,) = (said for names, said in rows() if "ladder" in names)
    page = (ROOT / "docs/models.md").read_text(encoding="utf-8")
    ladder = page.split("### The ladder")[1].split("\n##")[0]
    assert said.startswith(TUNED) and "on the rung `cell`" in said
    assert "tuned on the rung `cell`, the same on all rungs" in ladder and "not tuned" not in ladder


@pytest.mark.parametrize("page", ["choose/clock", "choose/edges-and-cloud", "choose/presence"])
def test_each_table_of_these_pages_has_five_seeds_and_says_so(page):
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    commands = re.findall(r"edgesim (?:run|sweep) scenarios/[^`]*?--seeds (\S+?)[` ]", text)
    assert commands and set(commands) == {"0-4"}
    assert "five seeds" in text and "three seeds" not in text


def test_the_ladder_has_five_seeds_and_its_page_says_so():
    _, seeds = swept(SCENARIOS / "ladder.yaml")
    page = (ROOT / "docs/models.md").read_text(encoding="utf-8")
    ladder = page.split("### The ladder")[1].split("\n##")[0]
    assert tuple(seeds) == (0, 1, 2, 3, 4)
    assert "means of five seeds" in ladder and "three seeds" not in ladder
