"""How long a sweep takes: estimated from points that have run, or from steps that are timed."""

import json

from pytest import approx

from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_plan import plan_sweep
from edgesim.sweep.time_estimate import estimate
from edgesim.sweep.timed_round import RoundTimes
from fl.stored_files import BLANK, sealed


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


def test_the_time_of_a_round_is_that_of_the_rounds_that_were_computed(folder, sweep):
    """Of 5 rounds 2 are computed, in 6 s; another point of 5 then takes 3 + 0.3 + 5 x 3 s."""
    for rounds in (3, 5):
        sweep("tiny.yaml", f"rounds={rounds}", "--out", "s")
    [listed] = json.loads((folder / "s/sweep.json").read_text())["points"]
    file = folder / "s" / listed["folder"] / "timing.json"
    timing = json.loads(file.read_text())
    assert timing["rounds"] == 2
    content = json.dumps({**timing, "wall_s": 6.0, "digest": BLANK}).encode()
    file.write_bytes(sealed(content))
    plan = plan_sweep(folder / "tiny.yaml", ["rounds=5"], "0-1")
    assert estimate(SweepFolder(folder / "s", plan), 1)[0] == approx(18.3)
