"""The gallery's commands are ones that the program takes, and its pictures those that it names."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb

from edgesim.scenario.loader import expand
from edgesim.sweep.sweep_plan import plan_sweep
from reports.styling.colours_and_markers import OTHER_COLOURS, PHASE_COLOURS, ROLE_COLOURS

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
        ("clocks", 120),
        ("urban-macro", 2),
        ("network", 2),
    ]
    sweeps = [
        plan_sweep(Path(words[0]), words[1 : words.index("--out")]) for words in commands("sweep")
    ]
    assert [len(plan.points) for plan in sweeps] == [5, 75]
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


SCHEMES = [colour for colour, _ in (*ROLE_COLOURS.values(), OTHER_COLOURS[0])]
PHASES = [PHASE_COLOURS[phase] for phase in ("personal", "warm-up", "global", "train", "upload")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "colours"),
    [
        *((name, SCHEMES) for name in ("cdf", "devices", "pareto", "rho-by-latency-threshold")),
        *((name, PHASES) for name in ("decomposition", "timeline")),
    ],
)
def test_a_palette_leaves_five_schemes_or_phases_their_colours(name, colours):
    image = pyplot.imread(ROOT / "docs" / "gallery" / f"{name}.png")[..., :3]
    for colour in colours:
        near = np.abs(image - to_rgb(colour)).max(axis=-1) < 24 / 255
        assert near.sum() > 40, colour  # a marker in the legend has more
