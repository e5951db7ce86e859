"""What the README shows is true: its Python session, its commands, the files that it quotes."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app
from tests.edgesim.sweep.conftest import InProcessWorkers

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def fenced(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_python_session(monkeypatch):
    monkeypatch.chdir(ROOT)
    session = next(block for block in fenced("python") if block.startswith(">>>"))
    test = doctest.DocTestParser().get_doctest(session, {}, "README", "README.md", 0)
    assert len(test.examples) >= 8
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize(
    ("language", "file"),
    [("yaml", "own_scenario.yaml"), ("python", "own_allocator.py"), ("python", "own_method.py")],
)
def test_quoted_files_are_the_files(language, file):
    text = (ROOT / "examples" / file).read_text(encoding="utf-8")
    code = [line for line in text.splitlines() if line.strip()]
    assert any(
        all(line in code for line in block.splitlines() if line.strip())
        for block in fenced(language)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["own_scenario", "own_allocator", "own_method"])
def test_examples_run(name, tmp_path):
    out = tmp_path / "run"
    command = [
        "run",
        str(ROOT / "examples" / f"{name}.yaml"),
        "--allow-code",
        "--quiet",
        "--out",
        str(out),
        "rounds=2",
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert (out / "summary.json").exists()


def test_code_needs_to_be_allowed(tmp_path):
    command = ["run", str(ROOT / "examples" / "own_method.yaml"), "--out", str(tmp_path / "run")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert "--allow-code" in result.output
    assert not (tmp_path / "run").exists()


COMMANDS = [
    line.split("#")[0].strip()
    for block in fenced("")
    for line in block.splitlines()
    if line.startswith("edgesim ")
]


def test_the_tour_has_commands():
    assert len(COMMANDS) >= 6


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c.split()[1] in ("check", "explain", "list")]
)
def test_commands_of_the_tour(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert CliRunner().invoke(app, command.split()[1:]).exit_code == 0


# The demo runs in the test of the whole tour below.
DEMO = "edgesim run scenarios/demo.yaml"
RUNS = [c for c in COMMANDS if c.split()[1] == "run" and c != DEMO]


def test_what_the_tour_varies_does_not_lie_among_the_runs_of_its_report():
    """A report of all folders of a changed scenario would show schemes that are no comparison."""
    assert "edgesim report runs/demo" in COMMANDS
    outs = [re.findall("--out (.*)", c) for c in RUNS if c.startswith(f"{DEMO} ")]
    assert outs == [["runs/wider-band"], ["runs/three-seeds"]]


@pytest.mark.slow
@pytest.mark.parametrize("command", RUNS)
def test_runs_of_the_tour(command, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    arguments = [word for word in shlex.split(command)[1:] if not word.startswith("rounds=")]
    result = CliRunner().invoke(
        app, [*arguments, "rounds=2", "--quiet", "--out", str(tmp_path / "out")]
    )
    assert result.exit_code == 0, result.output
    assert list((tmp_path / "out").rglob("summary.json"))


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in COMMANDS if c.split()[1] == "sweep"])
def test_sweeps_of_the_tour(command, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("edgesim.sweep.workers.local_workers.LocalWorkers", InProcessWorkers)
    arguments = [word for word in shlex.split(command)[1:] if not word.startswith("rounds=")]
    result = CliRunner().invoke(app, [*arguments, "rounds=2", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert len(list((tmp_path / "out").rglob("summary.json"))) == 4


OF_PLANS = (
    "alpha-fair",
    "clocks",
    "devices",
    "handovers",
    "hierarchy",
    "network",
    "planning-under-fading",
    "presence",
    "urban-macro",
)  # schemes are ways to plan, not to learn


@pytest.mark.parametrize(
    "path", sorted((ROOT / "scenarios").glob("*.yaml")), ids=lambda path: path.stem
)
def test_shipped_scenarios_say_what_they_are_and_are_valid(path):
    from edgesim.scenario.loader import expand

    assert path.read_text(encoding="utf-8").startswith("# ")
    labels = [label for label, _ in expand(path)]
    if path.stem not in OF_PLANS:
        assert "joint" in labels[0] or path.stem in ("all-methods", "baselines")
        assert len(labels) >= 4
    assert len({*labels}) == len(labels) >= (1 if path.stem == "network" else 2)


@pytest.mark.slow
def test_the_whole_tour_ends_in_a_report(tmp_path):
    """`edgesim run` of all five schemes, then `edgesim report`, on two rounds."""
    out = tmp_path / "demo"
    assert DEMO in COMMANDS
    run = ["run", str(ROOT / "scenarios" / "demo.yaml"), "rounds=2", "--out", str(out), "--quiet"]
    assert CliRunner().invoke(app, run).exit_code == 0
    result = CliRunner().invoke(app, ["report", str(out), "--out", str(tmp_path / "report")])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    for scheme in ("joint", "equal bandwidth", "pruning only", "personalization only", "fedavg"):
        assert scheme in page
    assert "http" not in re.sub(
        r"http://www\.w3\.org/[^\"' ]*|https?://[^\"' ]*matplotlib[^\"' ]*"
        r"|https://github\.com/leeoniya/uPlot",
        "",
        page,
    )
    figures = {path.name for path in (tmp_path / "report" / "figures").iterdir()}
    for name in ("accuracy", "latency", "devices", "timeline", "costs", "partition"):
        assert {f"{name}.pdf", f"{name}.png", f"{name}.svg"} <= figures


def test_the_browser_of_the_tests_is_an_extra_of_its_own_and_in_the_gate():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = extras["project"]["optional-dependencies"].items()
    holders = {name: each for name, each in named if any("playwright" in one for one in each)}
    assert list(holders) == ["browser"] and all(">=" in one for one in holders["browser"])
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert '-e ".[browser]"' in makefile and "tests/reports/test_page_in_browser.py" in makefile
    for file in (".ci/run", "CONTRIBUTING.md"):
        assert "make test-browser" in (ROOT / file).read_text(encoding="utf-8")


def test_the_site_is_built_with_its_warnings():
    """With --quiet mkdocs counts none, and `strict` of mkdocs.yml means nothing."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (build,) = re.findall(r"mkdocs build.*", makefile)
    assert "quiet" not in build and "\nstrict: true" in (ROOT / "mkdocs.yml").read_text()


def test_make_clean_leaves_the_runs_of_the_user(tmp_path):
    for folder in ("runs/mine", "runs/make-demo", "site"):
        (tmp_path / folder).mkdir(parents=True)
    subprocess.run(["make", "-s", "-f", ROOT / "Makefile", "clean"], cwd=tmp_path, check=True)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == [
        "runs",
        "runs/mine",
    ]
