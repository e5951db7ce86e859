"""What a sweep shows while it runs."""

import io
import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from edgesim.cli.sweep.sweep_progress import SweepProgress
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_plan import plan_sweep
from edgesim.sweep.workers.point_task import PointOutcome


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


def test_a_loss_that_is_infinite_takes_the_place_of_the_one_before(folder):
    view = SweepProgress(SweepFolder(folder / "out", plan_sweep(folder / "tiny.yaml", [])))
    [point] = view.folder.plan.points
    view.point_started(point)
    for g, loss in enumerate((0.25, math.inf, math.nan)):
        view.round_ended(point, {"kind": "round", "round": g, "accuracy": math.nan, "loss": loss})
    view.console = Console(width=120, file=io.StringIO())
    view.console.print(view._table())
    assert re.search(r"3/\d+ +- *\n", view.console.file.getvalue())


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
