"""The command line from end to end: what it prints, where it writes, and its exit codes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app

ROOT = Path(__file__).parents[3]
TEXT = """\
# A tiny cell, for tests
name: tiny
rounds: 2
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}}
devices:
  - {count: 3, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
budget: {latency_threshold: 25 ms}
learning:
  dataset: digits
  partition: {kind: iid}
  model: mlp
  batch_size: 20
  method: {name: fedavg}
allocation: {solver: equal}
"""
SCHEMES = """\
schemes:
  one: {}
  other one: {rounds: 1}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TEXT)
    (tmp_path / "two.yaml").write_text(TEXT + SCHEMES)
    return tmp_path


def invoke(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


@pytest.mark.slow
def test_help_needs_no_heavy_library():
    heavy = "{'pydantic', 'numpy', 'simpy', 'yaml'}"
    seen = f"import sys, edgesim.cli.app; print({heavy} & set(sys.modules))"
    assert (
        subprocess.run(
            [sys.executable, "-c", seen], capture_output=True, text=True, cwd=ROOT
        ).stdout
        == "set()\n"
    )
    for command in ("run", "check", "explain", "list", "schema", "report"):
        assert command in invoke("--help").stdout


def test_run_writes_the_default_folder_and_a_resolved_file_that_is_the_same_run(folder):
    printed = invoke("run", "tiny.yaml", "--seed", "3").stdout
    (run,) = (folder / "runs" / "tiny").iterdir()
    assert re.fullmatch(r"fedavg-[0-9a-f]{8}-s3", run.name)
    assert (
        str(run.relative_to(folder)) in printed
        and "fedavg: round 2/2" in printed
        and "accuracy" in printed
    )
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["rounds"], summary["devices"], summary["seed"]) == (2, 3, 3)
    again = invoke(
        "run", run / "scenario.yaml", "--quiet"
    ).stdout  # same digest, same seed: finished already
    assert again.split() == [str(run.relative_to(folder))]


@pytest.mark.slow
def test_several_schemes_with_out_and_only(folder):
    assert (
        invoke("run", "two.yaml", "--out", "[red]", "--only", "one", "-q").stdout
        == "one: [red]/one\n"
    )  # no markup
    invoke("run", "two.yaml", "--out", "here", "--only", "other one", "--quiet")
    assert [path.name for path in (folder / "here").iterdir()] == ["other-one"]
    printed = invoke("run", "two.yaml", "rounds=1", "--out", "here", "--fresh").stdout
    assert sorted(path.name for path in (folder / "here").iterdir()) == ["one", "other-one"]
    assert "other one: round 1/1" in printed and "one: here/one" in printed
    assert "has no scheme" in invoke("run", "two.yaml", "--only", "neither", code=2).stderr


@pytest.mark.slow
def test_one_scheme_goes_to_out_itself_and_can_be_reported(folder):
    invoke("run", "tiny.yaml", "rounds=1", "--out", "here", "--quiet")
    assert (folder / "here" / "summary.json").is_file()
    page = invoke("report", "here", "figures=cdf").stdout
    assert (
        page == "report: here/report/index.html\n"
        and (folder / "here" / "report" / "index.html").is_file()
    )


def test_a_folder_of_another_run_is_refused(folder):
    invoke("run", "tiny.yaml", "rounds=1", "--out", "here", "--quiet")
    before = (folder / "here" / "rounds.csv").read_bytes()
    result = invoke(
        "run", "tiny.yaml", "rounds=1", "--seed", "7", "--out", "here", "--quiet", code=2
    )
    assert len(result.stderr.splitlines()) == 1
    assert (folder / "here" / "rounds.csv").read_bytes() == before


@pytest.mark.slow
def test_check_prints_a_row_for_every_device_and_runs_nothing(folder):
    printed = invoke("check", "tiny.yaml").stdout
    assert "threshold 25 ms" in printed and "upload" in printed
    assert re.search("^binds +the longest part", printed, re.M)
    assert [int(row.split()[0]) for row in printed.splitlines() if re.match(r" *\d+ ", row)] == [
        0,
        1,
        2,
    ]
    assert sorted(path.name for path in folder.iterdir()) == ["tiny.yaml", "two.yaml"]
    many = invoke("check", "tiny.yaml", "devices.0.count=40").stdout
    assert "and 10 devices more (--all shows them)" in many
    assert "more (--all" not in invoke("check", "tiny.yaml", "devices.0.count=40", "--all").stdout
    assert "rung" not in printed
    paper = invoke("check", "tiny.yaml", "network.fidelity=paper").stdout
    assert "rung paper: leaves out, unless written, path loss by place, fading" in paper


def test_an_infeasible_scenario_has_exit_code_3(folder):
    liu = ["learning.method={name: liu}", "allocation.solver=kkt", "budget.latency_threshold=1 ns"]
    printed = invoke("check", "tiny.yaml", *liu, code=3).stdout
    assert (
        "cannot meet budget.latency_threshold" in printed
        and len(re.findall(r"cannot *$", printed, re.M)) == 3
    )
    result = invoke("run", "tiny.yaml", *liu, "--out", "here", code=3)
    assert len(result.stderr.splitlines()) == 1 and "cannot meet" in result.stderr
    assert not (folder / "here").exists()


def test_mistakes_found_late_name_the_line_and_run_nothing(folder):
    text = TEXT.replace("{name: fedavg}", "{name: fedavg, lrr: 0.1}")
    (folder / "late.yaml").write_text(text)
    sentence = invoke("run", "late.yaml", "--out", "here", code=2).stderr
    assert sentence.startswith("late.yaml:16: learning.method.lrr ") and sentence.count("\n") == 1
    (folder / "late.yaml").write_text(
        TEXT + "schemes:\n  good: {}\n  bad: {learning.method: {name: fedabc}}\n"
    )
    sentence = invoke("run", "late.yaml", "--out", "here", code=2).stderr
    assert sentence.startswith("late.yaml:20: learning.method.name ")
    assert not (folder / "here").exists()  # the good scheme did not start


def test_code_of_the_user_needs_permission(folder):
    (folder / "mine.py").write_text("raise SystemExit('ran')\n")
    sentence = invoke("run", "tiny.yaml", "learning.method={name: './mine.py:Mine'}", code=2).stderr
    assert "--allow-code" in sentence


@pytest.mark.slow
def test_explain(folder):
    of_a_kind = invoke("explain", "learning.partition.alpha").stdout
    assert "\n    only with: learning.partition.kind: dirichlet\n" in of_a_kind
    one = invoke("explain", "budget.latency_threshold").stdout
    assert "only with" not in one
    for fact in (
        "unit inside: s",
        "default: none",
        "source: our choice",
        "example: latency_threshold: 25 ms",
    ):
        assert fact in one
    assert (
        "[{count: 10, ...}]" in invoke("explain", "devices").stdout
    )  # brackets are text, not markup
    assert "network.channel.path_loss.exponent" in invoke("explain").stdout
    assert "did you mean network?" in invoke("explain", "netwrk", code=2).stderr


@pytest.mark.parametrize(
    ("kind", "name"),
    [("methods", "liu"), ("solvers", "kkt"), ("datasets", "digits"), ("models", "mlp")],
)
def test_list(folder, kind, name):
    lines = invoke("list", kind).stdout.splitlines()
    assert any(re.match(rf"{name} +\w.+", line) for line in lines)


def test_list_scenarios(folder):
    assert "There are no scenarios here" in invoke("list", "scenarios").stdout
    (folder / "scenarios").mkdir()
    (folder / "scenarios" / "tiny.yaml").write_text(TEXT)
    assert invoke("list", "scenarios").stdout == "scenarios/tiny.yaml  A tiny cell, for tests\n"
    (folder / "scenarios" / "papers").mkdir()
    (folder / "scenarios" / "papers" / "a.yaml").write_text("# Another")
    assert invoke("list", "scenarios").stdout.splitlines()[1] == "scenarios/papers/a.yaml  Another"


def test_version_and_completion(folder):
    assert re.fullmatch(r"edgesim \d+\.\d+\.\d+\n", invoke("--version").stdout)
    assert "--show-completion" in invoke("--help").stdout


def test_schema_is_json(folder):
    schema = json.loads(invoke("schema").stdout)
    assert {"name", "network", "devices"} <= set(schema["required"]) and schema[
        "additionalProperties"
    ] is False


def test_a_report_of_nothing_is_bad_input(folder):
    result = invoke("report", folder, code=2)
    assert len(result.stderr.splitlines()) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["tiny.yaml", "two.yaml"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["run"], "SCENARIO"),
        (["list", "cakes"], "'methods', 'solvers', 'datasets'"),
        (["run", "tiny.yaml", "--seed", "-1"], "--seed should be a whole number from 0 to 9"),
        (["sweep", "tiny.yaml", "--workers", "x"], "--workers should be a whole number from 1"),
        (["sweep", "tiny.yaml", "--backend", "slurm"], "--backend: 'slurm' is not one of 'local'"),
        (["run", "tiny.yaml", "--ouut", "x"], "--out"),
        (["swep"], "Did you mean 'sweep'?"),
        (["run", "tiny.yaml", "--out", "x\udcff"], "argument 4, 'x\\udcff', is not UTF-8"),
    ],
)
def test_wrong_usage_is_one_line_with_exit_code_2(folder, arguments, names):
    sentence = invoke(*arguments, code=2).stderr
    assert sentence.startswith("command line: ") and sentence.count("\n") == 1
    assert names in sentence
