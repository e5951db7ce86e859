"""`edgesim sweep`: what is run, what is kept, what is printed."""

import json
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app
from edgesim.errors import ResultsError
from edgesim.results.finished_run import read_run
from edgesim.results.loaded_results import load_sweep
from edgesim.results.run_search import find_runs
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_plan import plan_sweep

ROOT = Path(__file__).parents[3]


FAILS_LATER = """\
calls = 0
def allocator(problem):
    global calls
    calls += 1
    if calls > 2 and problem.slack_s[0] < 0.024:
        raise ValueError("no such luck")
    return problem.bits * 0 + 1 / len(problem.bits), problem.bits * 0
"""


def listed(out):
    return json.loads((out / "sweep.json").read_text())


@pytest.mark.slow
def test_the_documented_commands_and_block(folder, sweep):
    text = (ROOT / "docs/use/sweeps.md").read_text()
    dry, run, _ = re.search(r"```\n(edgesim.*?)```", text, re.S)[1].strip().splitlines()
    printed = sweep(*shlex.split(dry.replace("scenarios/", f"{ROOT}/scenarios/"))[2:]).stdout
    assert (
        "120 points in runs/demo-sweep, 120 to run" in printed
        and "joint, equal bandwidth, fedavg" in printed
    )
    words = shlex.split(
        run.replace("scenarios/", f"{ROOT}/scenarios/").replace("rounds=20", "rounds=1")
    )
    assert "4 of 4 points done" in sweep(*words[2:]).stdout
    rho = load_sweep("runs/two-bands").points.set_index(["network.bandwidth", "seed"])["rho_mean"]
    assert (rho[3.2e6] > rho[6.4e6]).all() and (rho[6.4e6] > 0).all()  # as the page says
    (folder / "documented.yaml").write_text(
        (folder / "tiny.yaml").read_text() + re.search(r"```yaml\n(.*?)```", text, re.S)[1]
    )
    planned = plan_sweep(Path("documented.yaml"))
    assert len(planned.points) == 4 * 4 * 2 * 5
    assert planned.linked == [("devices.0.count", "rounds")]
    assert {(p.scenario.device_count, p.scenario.rounds) for p in planned.points} == {
        (10, 100),
        (20, 50),
    }


def test_a_dry_run_lists_the_points_and_an_estimate_and_writes_nothing(folder, sweep):
    printed = sweep("block.yaml", "--dry-run", "--workers", 2, "--out", "s").stdout
    assert "network.bandwidth: 10 MHz, 20 MHz" in printed and "seeds: 0, 1" in printed
    assert len(re.findall(r"^ +\d+  [0-9a-f]{16}  missing ", printed, re.M)) == 12
    assert re.search(r"about .* with 2 workers, estimated from the mean time of a round", printed)
    assert not (folder / "s").exists() and not (folder / "runs").exists()


@pytest.mark.slow
def test_finished_points_are_never_run_again_and_changed_ones_are_new(folder, sweep):
    printed = sweep("tiny.yaml", "rounds=1,2", "--workers", 1, "--out", "s").stdout
    assert "[2/2] fedavg, rounds=2, seed 0: done" in printed and "2 of 2 points done" in printed
    assert "already" not in printed
    points = listed(folder / "s")["points"]
    assert [(p["label"], p["values"], p["seed"], p["status"], p["error"]) for p in points] == [
        ("fedavg", {"rounds": "1"}, 0, "done", None), ("fedavg", {"rounds": "2"}, 0, "done", None),
    ]  # fmt: skip
    for point in points:
        summary = json.loads((folder / "s" / point["folder"] / "summary.json").read_text())
        assert str(summary["rounds"]) == point["values"]["rounds"]
    before = {path: path.stat().st_mtime_ns for path in (folder / "s" / "points").rglob("*")}
    printed = sweep("tiny.yaml", "rounds=1,2,3", "--workers", 1, "--out", "s").stdout
    assert printed.startswith("2 of 3 points are finished already, 1 to run\n")
    assert "[1/1] fedavg, rounds=3, seed 0: done" in printed and "3 of 3 points done" in printed
    assert {path: path.stat().st_mtime_ns for path in before} == before
    kept = ["points", "sweep.json", "sweep.parquet"]
    assert sorted(path.name for path in (folder / "s").iterdir()) == kept
    assert pd.read_parquet(folder / "s" / "sweep.parquet")["rounds"].tolist() == [1, 2, 3]
    dry = sweep("tiny.yaml", "rounds=1,2,3,4", "--dry-run", "--out", "s").stdout
    assert (
        "4 points in s, 1 to run" in dry
        and "estimated from finished points of the same method" in dry
    )
    printed = sweep("tiny.yaml", "rounds=1", "--out", "s").stdout
    assert "2 runs of earlier sweeps lie in s/points too" in printed


@pytest.mark.slow
def test_what_finished_points_warn_of_stands_at_the_end(folder, sweep):
    """Of two devices one computes with 1 MHz, and not in 25 ms, in one of two points."""
    clocks = "devices.0.cpu.frequency=[1 MHz, 3 GHz],3 GHz"
    slow = ("devices.0.count=2", clocks, "--out", "s")
    *_, place, warning = sweep("two.yaml", "--only", "ours", *slow).stdout.splitlines()
    assert place == "s" and warning.startswith("warning: ")
    assert warning.endswith("(1 of 2 points)"), warning
    again = sweep("two.yaml", "--only", "ours", *slow).stdout.splitlines()
    assert again[-1] == warning


@pytest.mark.slow
def test_a_failing_point_is_listed_and_does_not_stop_the_others(folder, sweep):
    (folder / "mine.py").write_text(FAILS_LATER)
    command = [
        "tiny.yaml",
        "budget.latency_threshold=20ms,30ms",
        "allocation.solver=./mine.py:allocator",
    ]
    result = sweep(*command, "--allow-code", "--workers", 1, "--out", "s", code=1)
    complaint = (
        "failed: fedavg, latency_threshold=20ms, seed 0: "
        "command line: allocation.solver is ./mine.py:allocator, "
        "which failed: mine.py:6: ValueError"
    )
    assert result.stderr.startswith(complaint) and len(result.stderr.splitlines()) == 1
    assert "1 of 2 points done, 1 failed" in result.stdout
    statuses = {
        p["values"]["budget.latency_threshold"]: (p["status"], p["error"])
        for p in listed(folder / "s")["points"]
    }
    assert statuses["30ms"] == ("done", None) and "no such luck" in statuses["20ms"][1]
    result = sweep(*command, "--allow-code", "--workers", 1, "--out", "t", "--fail-fast", code=1)
    assert "0 of 2 points done, 1 failed, 1 missing" in result.stdout
    assert [p["status"] for p in listed(folder / "t")["points"]] == ["failed", "missing"]
    assert (
        "--allow-code" in sweep(*command, "--out", "u", code=2).stderr
        and not (folder / "u").exists()
    )


@pytest.mark.slow
def test_infeasible_points_are_recorded_and_the_others_run(folder, sweep):
    liu = ["learning.method={name: liu}", "allocation.solver=kkt"]
    result = sweep(
        "tiny.yaml", *liu, "budget.latency_threshold=1ns,25ms", "--workers", 1, "--out", "s"
    )
    assert (
        "infeasible: liu, latency_threshold=1ns, seed 0: 3 of 3 devices cannot take part"
        in result.stderr
    )
    assert [p["status"] for p in listed(folder / "s")["points"]] == ["infeasible", "done"]
    assert "already" not in result.stdout  # nothing has run before
    again = sweep("tiny.yaml", *liu, "budget.latency_threshold=1ns,25ms", "--out", "s").stdout
    assert again.startswith("1 of 2 points are finished already, 1 infeasible, 0 to run\n")
    sweep("tiny.yaml", *liu, "budget.latency_threshold=1ns,2ns", "--out", "t", code=3)


def test_a_lock_that_the_command_before_removes_meanwhile_is_taken_anew(folder, monkeypatch):
    """Else two commands could hold two locks of one name."""
    fcntl = pytest.importorskip("fcntl")
    held, take = SweepFolder(folder / "s", plan_sweep(folder / "tiny.yaml")), fcntl.flock
    removed = iter([lambda: (folder / "s" / "lock").unlink(), lambda: None])
    monkeypatch.setattr(fcntl, "flock", lambda file, how: (next(removed)(), take(file, how)))
    held.open()
    with open(folder / "s" / "lock") as other, pytest.raises(BlockingIOError):
        take(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    held.close()


@pytest.mark.slow
def test_values_of_thousands_of_letters_are_written_and_read_back(folder, sweep):
    clocks = [f"[{', '.join([f'{ghz} GHz'] * 200)}]" for ghz in (2, 3)]
    axis = f"devices.0.cpu.frequency={','.join(clocks)}"
    sweep("tiny.yaml", "rounds=1", "devices.0.count=200", axis, "--workers", 1, "--out", "s", "-q")
    assert load_sweep("s").points["devices.0.cpu.frequency"].tolist() == clocks
    assert not (folder / "s" / "lock").exists()


@pytest.mark.slow
def test_a_whole_number_above_64_bits_is_a_column_of_floats(folder, sweep):
    key = "devices.0.cpu.cycles_per_weight"
    sweep("tiny.yaml", "rounds=1", f"{key}=5,{10**20}", "--workers", 1, "--out", "s", "-q")
    assert pd.read_parquet(folder / "s" / "sweep.parquet")[key].tolist() == [5.0, 1e20]


def test_the_lock_goes_even_where_the_table_cannot_be_written(folder, monkeypatch):
    def unwritten(path):
        raise ResultsError("no such luck")

    opened = SweepFolder(folder / "s", plan_sweep(folder / "tiny.yaml"))
    opened.open()
    monkeypatch.setattr("edgesim.sweep.sweep_folder.write_sweep_table", unwritten)
    with pytest.raises(ResultsError, match="no such luck"):
        opened.close()
    assert not (folder / "s" / "lock").exists()


@pytest.mark.slow
def test_the_table_of_an_earlier_sweep_goes_when_points_are_added(folder, sweep):
    """Else that of an interrupted sweep would differ from its points."""
    sweep("tiny.yaml", "rounds=1,2", "--workers", 1, "--out", "s", "-q")
    SweepFolder(folder / "s", plan_sweep(Path("tiny.yaml"), ["rounds=1,2,3"])).open()
    assert not (folder / "s" / "sweep.parquet").exists()


@pytest.mark.parametrize("out", ["file", "file/below", "full"])
def test_a_folder_that_cannot_be_used_is_one_sentence(folder, out, sweep):
    (folder / "file").write_text("")
    (folder / "full").mkdir()
    (folder / "full" / "letter.txt").write_text("mine")
    stderr = sweep("tiny.yaml", "--out", out, code=2).stderr
    assert out in stderr and "give --out a" in stderr and len(stderr.splitlines()) == 1
    assert [path.name for path in (folder / "full").iterdir()] == ["letter.txt"]


@pytest.mark.slow
def test_a_report_finds_the_runs_of_a_sweep(folder, sweep):
    sweep("tiny.yaml", "budget.latency_threshold=20ms,25ms", "--workers", 1, "--out", "s", "-q")
    found = find_runs([folder / "s"])
    assert [len(part) for part in found] == [2, 0, 1]
    assert {read_run(run).threshold_s for run in found.finished} == {0.02, 0.025}


@pytest.mark.slow
def test_what_is_learned_is_the_same_with_and_without_reuse_and_is_trained_once(folder, sweep):
    learning = (
        "learning={dataset: digits, partition: {kind: iid}, model: mlp, batch_size: 20, "
        "method: {name: fedavg}}"
    )
    command = ["tiny.yaml", learning, "network.bandwidth=10MHz,20MHz"]
    for out, option in (("with", "--reuse"), ("without", "--no-reuse")):
        sweep(*command, "--workers", 1, option, "--out", out, "-q")
    assert same_bytes(folder / "with", folder / "without") >= 20
    made = [
        json.loads(p.read_text()).get("passes_made")
        for p in (folder / "with" / "points").glob("*/timing.json")
    ]
    assert sorted(made) == [0, 3]
    assert not (folder / "with" / "shared").exists()


@pytest.mark.slow
def test_tensorboard_scalars_of_every_round(folder, sweep):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sweep("tiny.yaml", "rounds=4", "--workers", 1, "--out", "s", "--tensorboard", "-q")
    (point,) = (folder / "s" / "points").iterdir()
    log = EventAccumulator(str(point / "tensorboard")).Reload()
    assert [one.step for one in log.Scalars("latency_s")] == [0, 1, 2, 3]
    rows = (point / "rounds.csv").read_text().splitlines()
    table = [dict(zip(rows[0].split(","), row.split(","), strict=True)) for row in rows[1:]]
    points = log.Scalars("latency_s")
    assert points[0].value == pytest.approx(float(table[0]["latency_s"]), rel=1e-6)  # float32
    # the axis Relative is simulated time
    assert [one.wall_time for one in points] == [float(row["time_s"]) for row in table]
    result = CliRunner().invoke(app, ["run", "tiny.yaml", "--out", "r", "--tensorboard", "-q"])
    assert result.exit_code == 0 and any((folder / "r" / "tensorboard").iterdir())


def test_tensorboard_that_is_missing_is_one_sentence(folder, monkeypatch):
    monkeypatch.setattr("edgesim.runs.tensorboard_log.find_spec", lambda name: None)
    for command in ("run", "sweep"):
        result = CliRunner().invoke(app, [command, "tiny.yaml", "--tensorboard"])
        assert result.exit_code == 2 and 'pip install "edgesim[tensorboard]"' in result.stderr
        assert len(result.stderr.splitlines()) == 1 and not (folder / "runs").exists()


def same_bytes(one, other):
    """How many files of two sweeps are the same; all must be but timing.json."""
    files = [
        path.relative_to(one)
        for path in sorted(one.rglob("*"))
        if path.is_file() and path.name != "timing.json"
    ]
    assert [
        path for path in files if (one / path).read_bytes() != (other / path).read_bytes()
    ] == []
    return len(files)
