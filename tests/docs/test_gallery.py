"""The gallery's commands are ones that the program takes, and its pictures those that it names."""

import re
import shlex
from pathlib import Path

import pytest

from edgesim.scenario.loader import expand
from edgesim.sweep.sweep_plan import plan_sweep

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gallery.md").read_text()


def commands(name):
    """The words after ``edgesim NAME`` of every such command in a block."""
    blocks = "".join(re.findall(r"```\n(.*?)```", PAGE, re.S)).replace("\\\n", "")
    lines = [shlex.split(line, comments=True) for line in blocks.splitlines()]
    return [words[2:] for words in lines if words[:2] == ["edgesim", name]]


@pytest.mark.slow
def test_its_runs_and_its_sweep_are_accepted(monkeypatch):
    monkeypatch.chdir(ROOT)
    runs = [expand(Path(words[0]), words[1:]) for words in commands("run")]
    assert [(schemes[0][1].name, schemes[0][1].rounds) for schemes in runs] == [
        ("demo", 40),
        ("clocks", 120),
        ("urban-macro", 2),
        ("network", 2),
    ]
    (words,) = commands("sweep")
    plan = plan_sweep(Path(words[0]), words[1 : words.index("--out")])
    assert len(plan.points) == 75
    reported = {words[0] for words in commands("report")}
    folders = {"demo", "clocks", "threshold", "urban-macro", "network"}
    assert reported == {f"runs/{name}" for name in folders}


def test_every_picture_is_one_of_a_figure_that_the_page_names():
    paths = re.findall(r"\]\((gallery/.*?\.png)\)", PAGE)
    shown = [Path(path).stem for path in paths]
    figures = re.findall(r"\(`figures=([\w-]+)`\)", PAGE)
    again = {"job-timeline": "timeline", "sector-map": "topology"}  # shown for a second time
    assert [again.get(one, one) for one in shown] == figures
    assert {*(ROOT / "docs" / "gallery").rglob("*.png")} == {ROOT / "docs" / path for path in paths}
