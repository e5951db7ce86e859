"""Sweeps from the command line: which points there are, what is run, what is said."""

import io
import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from pytest import approx
from rich.console import Console
from typer.testing import CliRunner

from edgesim.cli.app import app
from edgesim.cli.sweep_progress import SweepProgress
from edgesim.runs.fingerprint import code_files, digest
from edgesim.scenario.loader import load
from edgesim.sweep.point_task import ENDED, PointOutcome, WorkerEvent, carry_out
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_plan import plan_sweep
from edgesim.sweep.time_estimate import estimate
from fl.methods.liu import Liu
from reports.run_data.finished_run import load_run
from reports.run_data.run_search import find_runs

ROOT = Path(__file__).parents[2]
COUNTED = """\
name: tiny
rounds: 3
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}}
devices:
  - {count: 3, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
budget: {latency_threshold: 25 ms}
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg}}
allocation: {solver: equal}
"""
SCHEMES = """\
schemes:
  ours: {learning: {method: {name: liu, warmup_steps: 2}}, allocation: {solver: kkt}}
  plain: {learning: {method: {name: fedavg, local_steps: 7}}}
"""
BLOCK = """\
sweep:
  network.bandwidth: [10 MHz, 20 MHz]
  rounds: range(1,3,1)
  seeds: 0-1
"""
FAILS_LATER = """\
calls = 0
def allocator(problem):
    global calls
    calls += 1
    if calls > 2 and problem.slack_s[0] < 0.024:
        raise ValueError("no such luck")
    return problem.bits * 0 + 1 / len(problem.bits), problem.bits * 0
"""


class InProcessWorkers:
    """Carries points out in this process; test_sweep_workers.py has the real ones."""

    def __init__(self, count):
        self.tasks = []

    def capacity(self):
        return 1

    def start(self, task):
        self.tasks.append(task)

    def events(self, timeout_s):
        task = self.tasks.pop()
        yield WorkerEvent(ENDED, task.id, carry_out(task, lambda event: None))

    def close(self):
        pass


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("edgesim.sweep.local_workers.LocalWorkers", InProcessWorkers)
    for name, text in (("tiny", COUNTED), ("two", COUNTED + SCHEMES), ("block", COUNTED + BLOCK)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def sweep(*arguments, code=0):
    result = CliRunner().invoke(app, ["sweep", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def listed(out):
    return json.loads((out / "sweep.json").read_text())


# --- which points --------------------------------------------------------------------------------------------------


def test_every_combination_of_values_schemes_and_seeds(folder):
    planned = plan_sweep(
        Path("two.yaml"), ["budget.latency_threshold=20ms,25ms", "rounds=2"], "0-1"
    )
    assert [(p.label, p.values["budget.latency_threshold"], p.seed) for p in planned.points] == [
        ("ours", "20ms", 0), ("plain", "20ms", 0), ("ours", "20ms", 1), ("plain", "20ms", 1),
        ("ours", "25ms", 0), ("plain", "25ms", 0), ("ours", "25ms", 1), ("plain", "25ms", 1),
    ]  # fmt: skip
    assert planned.axes == {
        "budget.latency_threshold": ["20ms", "25ms"]
    }  # one value of rounds is no axis
    assert {p.scenario.rounds for p in planned.points} == {2}
    assert planned.points[0].name == "ours, latency_threshold=20ms, seed 0"
    assert len({p.id for p in planned.points}) == 8


def test_a_point_is_what_run_would_run(folder):
    (point,) = plan_sweep(
        Path("tiny.yaml"), ["rounds=2", "budget.latency_threshold=20 ms"], "7"
    ).points
    alone = load("tiny.yaml", ["rounds=2", "budget.latency_threshold=20 ms", "seed=7"])
    assert (point.scenario.digest(), point.seed) == (alone.digest(), 7)


def test_a_hash_tells_content_and_nothing_else(folder):
    def ids(*texts, file="tiny.yaml", seeds=None):
        return {p.id for p in plan_sweep(Path(file), texts, seeds).points}

    assert ids("budget.latency_threshold=20ms,25ms") == ids("budget.latency_threshold=25 ms,0.02s")
    assert ids("rounds=2") < ids("rounds=2,3") and not ids("rounds=2") & ids("rounds=3")
    assert not ids(seeds="0") & ids(seeds="1") and ids("seed=0,1") == ids(seeds="0-1")
    (folder / "moved.yaml").write_text("# other\n" + COUNTED)
    assert ids(file="moved.yaml") == ids()


def test_other_code_makes_other_points_and_another_method_does_not(folder, monkeypatch):
    def ids():
        return [point.id for point in plan_sweep(folder / "tiny.yaml").points]

    before, files = ids(), code_files(Liu)
    assert ids() == before
    monkeypatch.setattr("edgesim.sweep.points.code_digest", lambda method: "of other code")
    assert ids() != before
    assert {
        "edgesim.engine.rounds",
        "edgesim.seeds",
        "fl.training.local_sgd",
        "solvers.allocators.kkt",
        "fl.methods.liu",
        "fl.methods.fedalt",
    } <= set(files)
    told = (
        "fl.methods.fedlps.fedlps",
        "edgesim.cli.sweep_progress",
        "edgesim.cli.app",
        "edgesim.cli.console",
        "reports.html_page",
    )
    assert not set(told) & set(files) and all(path.is_file() for path in files.values())
    (folder / "a.py").write_text("1")
    one = digest({"a.py": folder / "a.py"})
    (folder / "a.py").write_text("2")
    assert len({one, digest({"a.py": folder / "a.py"}), digest({"b.py": folder / "a.py"})}) == 3


def test_a_sweep_block_and_the_command_line_that_wins(folder):
    planned = plan_sweep(Path("block.yaml"))
    assert planned.axes == {"network.bandwidth": ["10 MHz", "20 MHz"], "rounds": ["1", "2", "3"]}
    assert len(planned.points) == 2 * 3 * 2
    planned = plan_sweep(Path("block.yaml"), ["rounds=5"], "9")
    assert planned.axes == {"network.bandwidth": ["10 MHz", "20 MHz"]} and len(planned.points) == 2
    assert {(p.scenario.rounds, p.seed) for p in planned.points} == {(5, 9)}
    assert (
        load("block.yaml").digest() == load("tiny.yaml").digest()
    )  # `edgesim run` runs the file without it
    assert "sweep" not in load("block.yaml").to_yaml()


def test_zipped_keys_are_no_grid(folder):
    planned = plan_sweep(
        Path("tiny.yaml"),
        ["network.bandwidth:rounds=10MHz:1,20MHz:2", "budget.latency_threshold=20ms,25ms"],
    )
    found = {(p.scenario.network.bandwidth_hz, p.scenario.rounds) for p in planned.points}
    assert found == {(1e7, 1), (2e7, 2)} and len(planned.points) == 4


def test_a_swept_method_chooses_among_the_schemes_with_their_parameters(folder):
    planned = plan_sweep(Path("two.yaml"), ["learning.method.name=fedavg,liu"])
    assert [(p.label, p.scenario.learning.method.params) for p in planned.points] == [
        ("plain", {"local_steps": 7}), ("ours", {"warmup_steps": 2}),
    ]  # fmt: skip
    assert "chooses among the schemes of two.yaml: plain, ours" in planned.notes[0]
    (only,) = plan_sweep(Path("two.yaml"), ["learning.method.name=liu"], only=["ours"]).points
    assert only.label == "ours"


def test_a_swept_method_of_a_file_without_schemes_starts_afresh(folder):
    text = COUNTED.replace("{name: fedavg}", "{name: fedavg, local_steps: 7}")
    (folder / "steps.yaml").write_text(text)
    planned = plan_sweep(Path("steps.yaml"), ["learning.method.name=fedavg,fedprox"])
    assert [p.scenario.learning.method.params for p in planned.points] == [{"local_steps": 7}, {}]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tiny.yaml", "bandwith=1,2"], "the key bandwith is unknown"),
        (
            ["tiny.yaml", "network.bandwidth=10 MHz,20"],
            'network.bandwidth=20 (no unit); write "20 MHz"',
        ),
        (["tiny.yaml", "rounds=1,2", "rounds=3"], "rounds is given twice"),
        (
            ["tiny.yaml", "rounds=5,05"],
            'the points "fedavg, rounds=5, seed 0" and "fedavg, rounds=05, seed 0" are the',
        ),
        (["tiny.yaml", "seed=1,2", "--seeds", "0"], "seed and --seeds are both given"),
        (["tiny.yaml", "--seeds", "x"], 'seeds is "x"; write such as 0-4'),
        (["tiny.yaml", "scheme=a,b"], "scheme cannot be swept"),
        (
            ["tiny.yaml", "learning.method.name=fedavg,fedabc"],
            'learning.method.name is "fedabc"; allowed are',
        ),
        (["two.yaml", "--only", "theirs"], 'two.yaml has no scheme "theirs"; it has ours, plain'),
        (
            ["two.yaml", "learning.method.name=fedprox"],
            "no scheme of two.yaml has (ours: liu; plain: fedavg); add one",
        ),
        (["tiny.yaml", "rounds=range(1,2000,1)", "--seeds", "0-99"], "allowed are 100000"),
        (["missing.yaml"], "there is no such file"),
        (["tiny.yaml", "--scheduler", "tcp://h:1"], "--scheduler is only read with --backend dask"),
    ],
)
def test_mistakes_are_one_sentence_before_anything_runs(folder, arguments, sentence):
    stderr = sweep(*arguments, code=2).stderr
    assert sentence in stderr and len(stderr.splitlines()) == 1
    assert not (folder / "runs").exists()


def test_a_mistake_in_a_block_names_its_line(folder):
    (folder / "wrong.yaml").write_text(
        COUNTED + "sweep:\n  rounds: [1, 2]\n  network.bandwidth: [10 MHz, 20]\n"
    )
    assert sweep("wrong.yaml", code=2).stderr.startswith(
        "wrong.yaml:14: network.bandwidth is 20 (no unit)"
    )


def test_another_kind_starts_afresh_wherever_the_override_stands(folder):
    (folder / "steps.yaml").write_text(
        COUNTED.replace("{name: fedavg}", "{name: fedavg, local_steps: 7, lr: 0.5}")
    )
    for texts in (
        ["learning.method.name=fedprox", "learning.method.local_steps=3"],
        ["learning.method.local_steps=3", "learning.method.name=fedprox"],
    ):
        method = load("steps.yaml", texts).learning.method
        assert (method.name, method.params) == ("fedprox", {"local_steps": 3})
    same = load("steps.yaml", ["learning.method.name=fedavg"]).learning.method
    assert same.params == {"local_steps": 7, "lr": 0.5}


def test_the_documented_commands_and_block(folder):
    text = (ROOT / "docs" / "sweeps.md").read_text()
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
    (folder / "documented.yaml").write_text(
        COUNTED + re.search(r"```yaml\n(.*?)```", text, re.S)[1]
    )
    planned = plan_sweep(Path("documented.yaml"))
    assert len(planned.points) == 4 * 4 * 2 * 5
    assert {(p.scenario.device_count, p.scenario.rounds) for p in planned.points} == {
        (10, 100),
        (20, 50),
    }


def test_the_estimate_counts_finished_points_and_the_start_of_the_workers(folder):
    """2 s a round in a finished point; one of 3 rounds and one of 6 are missing: 3 + (0.3 + 6 + 0.3 + 12) / 2 s."""
    sweep("tiny.yaml", "--out", "s")
    (timing,) = (folder / "s").rglob("timing.json")
    timing.write_text(json.dumps({"wall_s": 6.0}))
    texts = ["rounds:budget.latency_threshold=3:25ms,3:30ms,6:25ms"]
    seconds, source = estimate(
        SweepFolder(folder / "s", plan_sweep(folder / "tiny.yaml", texts)), 2
    )
    assert seconds == approx(3 + 18.6 / 2) and source == "finished points of the same method"


# --- what is run ---------------------------------------------------------------------------------------------------


def test_a_dry_run_lists_the_points_and_an_estimate_and_writes_nothing(folder):
    printed = sweep("block.yaml", "--dry-run", "--workers", 2, "--out", "s").stdout
    assert "network.bandwidth: 10 MHz, 20 MHz" in printed and "seeds: 0, 1" in printed
    assert len(re.findall(r"^ +\d+  [0-9a-f]{16}  missing ", printed, re.M)) == 12
    assert re.search(r"about .* with 2 workers, estimated from counted FLOPs", printed)
    assert not (folder / "s").exists() and not (folder / "runs").exists()


def test_finished_points_are_never_run_again_and_changed_ones_are_new(folder):
    printed = sweep("tiny.yaml", "rounds=1,2", "--workers", 1, "--out", "s").stdout
    assert "[2/2] fedavg, rounds=2, seed 0: done" in printed and "2 of 2 points done" in printed
    points = listed(folder / "s")["points"]
    assert [(p["label"], p["values"], p["seed"], p["status"], p["error"]) for p in points] == [
        ("fedavg", {"rounds": "1"}, 0, "done", None), ("fedavg", {"rounds": "2"}, 0, "done", None),
    ]  # fmt: skip
    for point in points:
        summary = json.loads((folder / "s" / point["folder"] / "summary.json").read_text())
        assert str(summary["rounds"]) == point["values"]["rounds"]
    before = {path: path.stat().st_mtime_ns for path in (folder / "s" / "points").rglob("*")}
    printed = sweep("tiny.yaml", "rounds=1,2,3", "--workers", 1, "--out", "s").stdout
    assert "[1/1] fedavg, rounds=3, seed 0: done" in printed and "3 of 3 points done" in printed
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert sorted(path.name for path in (folder / "s").iterdir()) == ["points", "sweep.json"]
    dry = sweep("tiny.yaml", "rounds=1,2,3,4", "--dry-run", "--out", "s").stdout
    assert (
        "4 points in s, 1 to run" in dry
        and "estimated from finished points of the same method" in dry
    )
    printed = sweep("tiny.yaml", "rounds=1", "--out", "s").stdout
    assert "2 runs of earlier sweeps lie in s/points too" in printed


def test_a_failing_point_is_listed_and_does_not_stop_the_others(folder):
    (folder / "mine.py").write_text(FAILS_LATER)
    command = [
        "tiny.yaml",
        "budget.latency_threshold=20ms,30ms",
        "allocation.solver=./mine.py:allocator",
    ]
    result = sweep(*command, "--allow-code", "--workers", 1, "--out", "s", code=1)
    complaint = "failed: fedavg, latency_threshold=20ms, seed 0: ./mine.py:allocator failed: mine.py:6: ValueError"
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


def test_infeasible_points_are_recorded_and_the_others_run(folder):
    liu = ["learning.method={name: liu}", "allocation.solver=kkt"]
    result = sweep(
        "tiny.yaml", *liu, "budget.latency_threshold=1ns,25ms", "--workers", 1, "--out", "s"
    )
    assert (
        "infeasible: liu, latency_threshold=1ns, seed 0: 3 of 3 devices cannot take part"
        in result.stderr
    )
    assert [p["status"] for p in listed(folder / "s")["points"]] == ["infeasible", "done"]
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


@pytest.mark.parametrize("out", ["file", "file/below", "full"])
def test_a_folder_that_cannot_be_used_is_one_sentence(folder, out):
    (folder / "file").write_text("")
    (folder / "full").mkdir()
    (folder / "full" / "letter.txt").write_text("mine")
    stderr = sweep("tiny.yaml", "--out", out, code=2).stderr
    assert out in stderr and "give --out a" in stderr and len(stderr.splitlines()) == 1
    assert [path.name for path in (folder / "full").iterdir()] == ["letter.txt"]


def test_a_report_finds_the_runs_of_a_sweep(folder):
    sweep("tiny.yaml", "budget.latency_threshold=20ms,25ms", "--workers", 1, "--out", "s", "-q")
    found = find_runs([folder / "s"])
    assert [len(part) for part in found] == [2, 0, 1]
    assert {load_run(run).threshold_s for run in found.finished} == {0.02, 0.025}


def test_what_is_learned_is_the_same_with_and_without_reuse_and_is_trained_once(folder):
    learning = "learning={dataset: digits, partition: {kind: iid}, model: mlp, batch_size: 20, method: {name: fedavg}}"
    command = ["tiny.yaml", learning, "network.bandwidth=10MHz,20MHz"]
    for out, option in (("with", "--reuse"), ("without", "--no-reuse")):
        sweep(*command, "--workers", 1, option, "--out", out, "-q")
    assert same_bytes(folder / "with", folder / "without") >= 20
    made = [
        json.loads(p.read_text()).get("passes_made")
        for p in (folder / "with" / "points").glob("*/timing.json")
    ]
    assert sorted(made) == [0, 3]
    assert sorted(path.name for path in (folder / "with").iterdir()) == ["points", "sweep.json"]


def test_the_live_view_tells_rounds_accuracy_and_the_time_left_from_the_first_rounds_on(
    folder, monkeypatch
):
    """Three points of ten rounds, one resumes at its round 4. Three rounds in 6 s after the first: 2 (8 + 4 + 10) s."""
    now = iter([100.0, 106.0, 112.0])
    monkeypatch.setattr(
        "edgesim.cli.sweep_progress.time", SimpleNamespace(monotonic=lambda: next(now))
    )
    planned = plan_sweep(
        folder / "tiny.yaml", ["rounds=10", "budget.latency_threshold=20ms,25ms,30ms"]
    )
    view = SweepProgress(SweepFolder(folder / "out", planned))
    one, other, last = view.folder.plan.points
    view.console = Console(width=120, file=io.StringIO())
    for point in (one, other):
        view.point_started(point)
    view.round_ended(other, {"kind": "start", "round": 4, "rounds": 10})
    view.round_ended(one, {"kind": "start", "round": 0, "rounds": 10})
    for g, accuracy in ((0, 0.25), (1, None)):
        view.round_ended(one, {"kind": "round", "round": g, "rounds": 10, "accuracy": accuracy})
    view.round_ended(other, {"kind": "round", "round": 4, "rounds": 10, "accuracy": None})
    view.round_ended(other, {"kind": "round", "round": 5, "rounds": 10, "accuracy": None})
    view.console.print(view._table())
    shown = view.console.file.getvalue()
    assert "0 of 3 points done, 2 running, 1 missing, 12 s, about 44 s left" in shown, shown
    assert re.search(r"latency_threshold=20ms.* 2/10 +0.250", shown) and re.search(
        r"=25ms.* 6/10 *\n", shown
    )
    view.point_ended(one, PointOutcome("failed", "boom"))
    assert view.rounds_left == {other.id: 4, last.id: 10}


def test_tensorboard_scalars_of_every_round(folder):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sweep("tiny.yaml", "rounds=4", "--workers", 1, "--out", "s", "--tensorboard", "-q")
    (point,) = (folder / "s" / "points").iterdir()
    log = EventAccumulator(str(point / "tensorboard")).Reload()
    assert [one.step for one in log.Scalars("latency_s")] == [0, 1, 2, 3]
    rows = (point / "rounds.csv").read_text().splitlines()
    latency_s = float(rows[1].split(",")[rows[0].split(",").index("latency_s")])
    assert log.Scalars("latency_s")[0].value == pytest.approx(latency_s, rel=1e-6)  # float32
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
