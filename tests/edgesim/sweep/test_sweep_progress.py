"""What a sweep shows while it runs, and the estimate before it."""

import io
import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from pytest import approx
from rich.console import Console

from edgesim.cli.sweep.chosen_values import grid_in_words
from edgesim.cli.sweep.sweep_progress import SweepProgress
from edgesim.results.best_validation import Candidate, Choice
from edgesim.runs.run import prepare
from edgesim.scenario.loader import load
from edgesim.sweep import timed_round
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_plan import plan_sweep
from edgesim.sweep.time_estimate import estimate
from edgesim.sweep.timed_round import RoundTimes
from edgesim.sweep.workers.point_task import PointOutcome
from fl.stored_files import BLANK, sealed


def test_the_live_view_tells_rounds_accuracy_and_the_time_left_from_the_first_rounds_on(
    folder, monkeypatch
):
    """Three points of ten rounds, one resumes at its round 4.

    Three rounds in 6 s after the first: 2 (8 + 4 + 10) s are left.
    """
    now = iter([100.0, 106.0, 112.0])
    monkeypatch.setattr(
        "edgesim.cli.sweep.sweep_progress.time", SimpleNamespace(monotonic=lambda: next(now))
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


def test_the_estimate_counts_finished_points_and_the_start_of_the_workers(folder, sweep):
    """2 s a round in a finished point; one of 3 rounds and one of 6 are missing.

    That is 3 + (0.3 + 6 + 0.3 + 12) / 2 s.
    """
    sweep("tiny.yaml", "--out", "s")
    (timing,) = (folder / "s").rglob("timing.json")
    timing.write_bytes(sealed(json.dumps({"wall_s": 6.0, "digest": BLANK}).encode()))
    texts = ["rounds:budget.latency_threshold=3:25ms,3:30ms,6:25ms"]
    seconds, source = estimate(
        SweepFolder(folder / "s", plan_sweep(folder / "tiny.yaml", texts)), 2
    )
    assert seconds == approx(3 + 18.6 / 2) and source == "finished points of the same method"


def test_the_estimate_counts_rounds_and_evaluations_of_what_is_timed_once_for_each_kind(
    tiny, tmp_path, monkeypatch
):
    """2 s a round and 10 s an evaluation, after rounds 4, 8 and 10: 50 s a point, and the engine.

    That is 0.3 s a point, and a round 0.008 s and 0.0002 s for each of four devices.
    """
    timed = []

    def times(setup):
        timed.append(setup.scenario.learning.method.params["local_steps"])
        return RoundTimes(2.0, 10.0)

    monkeypatch.setattr("edgesim.sweep.time_estimate.timed_round", times)
    texts = ["rounds=10", "evaluate.every=4", "learning.method.lr=0.1,0.2"]
    for steps, kinds in (("1", 1), ("1,2", 2)):
        method = "learning.method={name: fedavg}", f"learning.method.local_steps={steps}"
        plan = plan_sweep(tiny, [*method, *texts])
        timed.clear()
        seconds, source = estimate(SweepFolder(tmp_path / "new", plan), 1)
        assert seconds == approx(3 + 2 * kinds * (50.3 + 10 * (0.008 + 4 * 0.0002)))
        assert timed == [1, 2][:kinds] and source.startswith("a few steps and test samples")


FEDMAP = "{name: fedmap, participants: 2, local_steps: 3, lr: 0.05, phase_rounds: 1}"
LIU = "{name: liu, personal_steps: 5, global_steps: 2, warmup_steps: 1, personal_lr: 0.1, "
LIU += "global_lr: 0.1}"


@pytest.fixture
def one_second_each(monkeypatch):
    """Every training step and every tested sample takes 1 s."""

    def timed(work, given):
        result = work(given)
        if work is list:
            return sum(values.shape[1] for _, values in result), result
        return timed_round.steps(given), result

    monkeypatch.setattr(timed_round, "timed", timed)


@pytest.fixture
def setup_of(tiny):
    return lambda *changes: prepare(load(tiny, changes)).setup


@pytest.mark.parametrize(
    ("changes", "steps", "probes"),
    [
        (["learning.method={name: fedavg, local_steps: 7, lr: 0.1}"], 4 * 7, 0),
        (["learning.method={name: fedavg, participants: 3, local_steps: 7, lr: 0.1}"], 3 * 7, 0),
        ([f"learning.method={LIU}"], 4 * 8, 0),
        # two sizes, each as TopK and as a draw
        ([f"learning.method={FEDMAP}", "devices.0.model_budget=[1, 1, 0.25, 0.25]"], 2 * 3, 4),
        (["clock={mode: buffered, buffer: 2}"], 2 * 5, 0),
        # a mask phase of no steps comes first
        ([f"learning.method={FEDMAP[:-1]}, mask_steps: 0}}"], 0, 2),
    ],
    ids=["all", "participants", "phases", "probes", "buffer", "no steps"],
)
def test_all_steps_of_a_round_and_all_tests_are_counted(
    one_second_each, setup_of, changes, steps, probes
):
    setup = setup_of("learning.method={name: fedavg, local_steps: 5, lr: 0.1}", *changes)
    times = timed_round.timed_round(setup)
    data = setup.task.data
    tested = sum(map(len, data.test_index)) + probes * len(data.y_test)
    assert times == timed_round.RoundTimes(steps, tested)


def test_validation_samples_are_tested_too(one_second_each, setup_of):
    setup = setup_of("learning.validation=0.2")
    data = setup.task.data
    tested = sum(map(len, (*data.test_index, *data.validation_index)))
    assert timed_round.timed_round(setup).evaluation_s == tested > sum(map(len, data.test_index))


def test_a_clock_that_stands_still_for_a_step_divides_by_nothing(setup_of, monkeypatch):
    """As that of a system which counts CPU time in ticks."""
    monkeypatch.setattr(timed_round, "process_time", lambda: 1.0)
    times = timed_round.timed_round(setup_of("learning.method={name: fedavg, lr: 0.1}"))
    assert 0 < times.training_s < 0.1 and 0 < times.evaluation_s < 0.1


def test_a_scenario_that_only_counts_takes_no_training(setup_of):
    only_counts = setup_of("learning.dataset=none", "learning.partition=none")
    assert timed_round.timed_round(only_counts) == timed_round.RoundTimes()


def test_one_value_tried_is_printed_alone():
    tried = [{"name": "fedavg", "lr": lr} for lr in ("0.01", "0.1")]
    grid = Choice("fedavg", tuple(Candidate(values, 0.5, 1) for values in tried))
    assert grid_in_words(grid) == "fedavg, 0.01 to 0.1 (2)"


METRIC = "def close(outputs, y):\n    return ((outputs - y).abs() < 1).float().mean(1)\n"


@pytest.fixture
def swept_with_metric(folder, sweep):
    """A sweep of one point with real targets and this text of a metric: what it prints, summary."""

    def run(metric):
        (folder / "my.py").write_text(metric)
        rng = np.random.default_rng(1)
        x = {split: rng.normal(size=(count, 4)) for split, count in (("train", 30), ("test", 20))}
        arrays = {f"x_{split}": each for split, each in x.items()}
        np.savez("real.npz", **arrays, **{f"y_{split}": each[:, :2] for split, each in x.items()})
        learning = "{dataset: ./real.npz, partition: {kind: iid}, metric: ./my.py:close, "
        learning += "model: mlp, batch_size: 10, method: {name: fedavg, lr: 0.1, local_steps: 1}}"
        shown = sweep("tiny.yaml", f"learning={learning}", "--allow-code", "--out", "s").stdout
        (summary,) = (folder / "s").rglob("summary.json")
        return shown, json.loads(summary.read_text())

    return run


def test_a_metric_that_is_infinite_at_the_end_is_a_dash(swept_with_metric):
    shown, ended = swept_with_metric(METRIC.replace("< 1).float()", "* float('inf'))"))
    assert ended["final_metric"] == {"close": None}
    assert re.search(rf": done, loss {ended['final_loss']:.4g}, close -, [\d.]+ s\n", shown), shown


def test_real_targets_show_the_loss_and_the_users_metric(folder, swept_with_metric):
    """As `edgesim run` does, in the line of a point and in the live table."""
    shown, ended = swept_with_metric(METRIC)
    loss, close = ended["final_loss"], ended["final_metric"]["close"]
    assert f": done, loss {loss:.4g}, close {close:.4g}, " in shown, shown

    view = SweepProgress(SweepFolder(folder / "out", plan_sweep(folder / "tiny.yaml", [])))
    view.console = Console(width=120, file=io.StringIO())
    (point,) = view.folder.plan.points
    view.point_started(point)
    known = {"accuracy": math.nan, "loss": loss, "metrics": {"close": close}}
    unknown = {"accuracy": math.nan, "loss": math.nan}
    for g, figures in enumerate((known, unknown)):
        view.round_ended(point, {"kind": "round", "round": g, "rounds": 3, **figures})
    view.console.print(view._table())
    table = view.console.file.getvalue()
    assert re.search(rf"round +loss +close *\n.* 2/3 +{loss:.4g} +{close:.4g} *\n", table), table
