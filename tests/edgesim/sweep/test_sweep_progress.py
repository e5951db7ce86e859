"""What a sweep shows while it runs, and the estimate before it."""

import io
import json
import re
from types import SimpleNamespace

from pytest import approx
from rich.console import Console

from edgesim.cli.sweep_progress import SweepProgress
from edgesim.sweep.point_task import PointOutcome
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_plan import plan_sweep
from edgesim.sweep.time_estimate import estimate
from fl.stored_files import BLANK, sealed


def test_the_live_view_tells_rounds_accuracy_and_the_time_left_from_the_first_rounds_on(
    folder, monkeypatch
):
    """Three points of ten rounds, one resumes at its round 4.

    Three rounds in 6 s after the first: 2 (8 + 4 + 10) s are left.
    """
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
