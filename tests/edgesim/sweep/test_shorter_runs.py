"""A sweep with more rounds goes on from the runs of an earlier one, to the bytes of a new one."""

import json
import re
import sys
from shutil import copytree
from typing import ClassVar

import pytest

from edgesim.cli.sweep.sweep_progress import SweepProgress
from edgesim.results.run_search import find_runs
from edgesim.sweep.shorter_runs import ShorterRun
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_plan import plan_sweep
from edgesim.sweep.time_estimate import estimate
from edgesim.sweep.workers.point_task import ENDED, WorkerEvent, carry_out
from tests.edgesim.sweep.conftest import InProcessWorkers

POINT = r"\S+/s/points/fedavg-s0-\w+"  # the folder that a sentence names
# how often states were written, and wall times, differ
NOT_COMPARED = {"checkpoint", "timing.json", "tensorboard"}


class FirstRounds(InProcessWorkers):
    """Keeps at which round each point began."""

    begun: ClassVar[list[int]] = []

    def __init__(self, count):
        super().__init__(count)
        FirstRounds.begun = []

    def events(self, timeout_s):
        task = self.tasks.pop()
        keep = lambda event: event["kind"] == "start" and self.begun.append(event["round"])  # noqa: E731
        yield WorkerEvent(ENDED, task.id, carry_out(task, keep))


@pytest.fixture(autouse=True)
def first_rounds(folder, monkeypatch):
    monkeypatch.setattr("edgesim.sweep.workers.local_workers.LocalWorkers", FirstRounds)
    return FirstRounds


def points(out):
    """Folder -> its files' bytes, of the points that sweep.json lists."""
    listed = json.loads((out / "sweep.json").read_text())["points"]
    return {
        each["folder"]: {
            file.name: file.read_bytes()
            for file in (out / each["folder"]).iterdir()
            if file.name not in NOT_COMPARED
        }
        for each in listed
    }


LEARNED = (
    "learning={dataset: digits, partition: {kind: iid}, model: mlp, batch_size: 20, "
    "method: {name: fedavg, local_steps: 2}}",
    "evaluate.every=2",
    "budget.latency_threshold=20ms,25ms",  # which decides nothing here: training is shared
)


@pytest.mark.slow
@pytest.mark.parametrize("keys", [(), LEARNED], ids=["counted", "trained"])
def test_a_sweep_with_more_rounds_goes_on_to_the_bytes_of_a_new_one(folder, sweep, keys):
    file = folder / ("two.yaml" if not keys else "tiny.yaml")
    sweep(file, "rounds=3", *keys, "--seeds", "0-1", "--out", "s")
    before = points(folder / "s")
    plan = sweep(file, "rounds=5", *keys, "--seeds", "0-1", "--out", "s", "--dry-run").stdout
    shown = sweep(file, "rounds=5", *keys, "--seeds", "0-1", "--out", "s").stdout
    assert "4 points go on from 3 rounds run before" in shown and shown.count("go on") == 1
    assert "4 points go on from 3 rounds run before" in plan
    assert FirstRounds.begun == [3] * 4
    after = points(folder / "s")
    taken = [json.loads((folder / "s" / name / "timing.json").read_text()) for name in after]
    assert any(each.get("passes_taken") for each in taken) == bool(keys)
    sweep(file, "rounds=5", *keys, "--seeds", "0-1", "--out", "new")
    assert FirstRounds.begun == [0] * 4
    assert after == points(folder / "new") and not after.keys() & before.keys()
    kept = {name: (folder / "s" / name / "summary.json").read_bytes() for name in before}
    assert kept == {name: files["summary.json"] for name, files in before.items()}
    assert not (folder / "s/shared").exists()


@pytest.mark.slow
def test_it_goes_on_from_the_longest_and_finished_points_stay(folder, sweep):
    for rounds in (2, 4, 3):
        sweep("tiny.yaml", f"rounds={rounds}", "--out", "s")
    sweep("tiny.yaml", "rounds=6", "--seeds", "0-1", "--out", "s")
    assert FirstRounds.begun == [4, 0]
    sweep("tiny.yaml", "rounds=4", "--out", "s")
    assert FirstRounds.begun == [4, 0]  # nothing was left to run


@pytest.mark.parametrize("change", ["network.bandwidth=30 MHz", "evaluate={targets: [0.5]}"])
def test_of_another_scenario_it_is_not(folder, sweep, change):
    sweep("tiny.yaml", "rounds=2", "--out", "s")
    shown = sweep("tiny.yaml", "rounds=3", change, "--out", "s").stdout
    assert FirstRounds.begun == [0] and "on from" not in shown


@pytest.mark.parametrize(
    ("given", "first"), [("", 0), (", moving_rounds: 9", 2), (", moving_rounds: 2", 0)]
)
@pytest.mark.slow
def test_a_method_whose_parameters_follow_from_the_rounds_begins_anew(folder, sweep, given, first):
    method = (
        "learning={dataset: digits, partition: {kind: iid}, model: mlp, batch_size: 20, "
        f"method: {{name: fedspa{given}}}}}"
    )
    sweep("tiny.yaml", "rounds=2", method, "--out", "s")
    shown = sweep("tiny.yaml", "rounds=3", method, "--out", "s").stdout
    assert FirstRounds.begun == [first] and ("on from" in shown) == (first > 0)
    sweep("tiny.yaml", "rounds=3", method, "--out", "new")
    assert points(folder / "s") == points(folder / "new")


def test_jobs_that_were_interrupted_at_the_end_begin_no_other_run(folder, sweep):
    clock = "clock={mode: asynchronous}"
    sweep("tiny.yaml", "rounds=2", clock, "--out", "s")
    shown = sweep("tiny.yaml", "rounds=3", clock, "--out", "s").stdout
    assert FirstRounds.begun == [0] and "on from" not in shown


def test_a_damaged_run_is_not_gone_on_from(folder, sweep):
    sweep("tiny.yaml", "rounds=2", "--out", "s")
    [run] = (folder / "s/points").iterdir()
    summary = run / "summary.json"
    summary.write_bytes(summary.read_bytes().replace(b'"rounds": 2', b'"rounds": 1'))
    sweep("tiny.yaml", "rounds=3", "--out", "s")
    assert FirstRounds.begun == [0]


@pytest.mark.parametrize("name", ["state.safetensors", "log.arrows"])
def test_a_run_with_a_damaged_state_is_not_gone_on_from(folder, sweep, name):
    sweep("tiny.yaml", "rounds=2", "--out", "s")
    [run] = (folder / "s/points").iterdir()
    file = run / "checkpoint" / name
    file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])
    sweep("tiny.yaml", "rounds=3", "--out", "s")
    assert FirstRounds.begun == [0]


def test_a_run_that_was_repaired_is_not_gone_on_from(folder, sweep):
    """Its summary says so for ever, and that of a new point must not."""
    sweep("tiny.yaml", "rounds=3", "--out", "s")
    [run] = (folder / "s/points").iterdir()
    state = run / "checkpoint/state.safetensors"
    state.write_bytes(b"damaged")
    (run / "summary.json").unlink()
    sweep("tiny.yaml", "rounds=3", "--out", "s")
    assert "damaged" in (run / "summary.json").read_text() and FirstRounds.begun == [2]
    sweep("tiny.yaml", "rounds=4", "--out", "s")
    assert FirstRounds.begun == [0]


def test_a_swept_number_of_rounds_goes_on_from_the_points_beside_it(folder, sweep):
    sweep("tiny.yaml", "rounds=2,4", "--out", "s")
    shown = sweep("tiny.yaml", "rounds=2,4,6", "--out", "s").stdout
    assert FirstRounds.begun == [4] and "1 point goes on from 4 rounds run before" in shown
    sweep("tiny.yaml", "rounds=2,4,6", "--out", "new")
    assert points(folder / "s") == points(folder / "new")


def test_a_run_that_stop_ended_has_no_rounds_left(folder, sweep):
    stop = "stop={jobs: 5}"  # 4 a round
    sweep("tiny.yaml", "rounds=4", stop, "--out", "s")
    planned = SweepFolder(folder / "s", plan_sweep(folder / "tiny.yaml", ["rounds=9", stop]))
    planned.look_for_shorter()
    assert planned.rounds_left(*planned.to_run()) == 0
    assert estimate(planned, 1)[0] == pytest.approx(3.3)  # of the worker and of the point
    shown = sweep("tiny.yaml", "rounds=9", stop, "--out", "s").stdout
    assert "1 point goes on from 2 rounds run before" in shown
    sweep("tiny.yaml", "rounds=9", stop, "--out", "new")
    assert points(folder / "s") == points(folder / "new")


def test_the_time_left_is_of_the_rounds_that_are_not_copied(folder, sweep):
    sweep("tiny.yaml", "rounds=3", "--out", "s")
    planned = SweepFolder(folder / "s", plan_sweep(folder / "tiny.yaml", ["rounds=5"], "0-1"))
    planned.look_for_shorter()
    assert list(SweepProgress(planned).rounds_left.values()) == [2, 5]


def test_a_point_that_was_interrupted_has_the_rounds_left_that_it_has_not_kept(folder, sweep):
    sweep("tiny.yaml", "rounds=3", "--out", "s")
    [run] = (folder / "s/points").iterdir()
    planned = SweepFolder(folder / "s", plan_sweep(folder / "tiny.yaml", ["rounds=5"], "0-1"))
    interrupted, new = planned.to_run()
    ShorterRun(run, 3).copy_state(planned.of(interrupted), folder / "s/shared")
    assert [planned.rounds_left(point) for point in (interrupted, new)] == [2, 5]
    state = planned.of(interrupted) / "checkpoint/state.safetensors"
    previous = state.rename(state.with_name("previous-state.safetensors"))
    assert planned.rounds_left(interrupted) == 2  # killed before the new state was there
    state.write_bytes(b"damaged")
    assert planned.rounds_left(interrupted) == 2  # it goes on from the one before
    previous.unlink()
    assert planned.rounds_left(interrupted) == 5


@pytest.mark.slow
def test_scalars_of_tensorboard_go_on_too(folder, sweep):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for rounds in (2, 4):
        sweep("tiny.yaml", f"rounds={rounds}", "--out", "s", "--tensorboard")
    assert FirstRounds.begun == [2]
    [point] = points(folder / "s")
    log = EventAccumulator(str(folder / "s" / point / "tensorboard")).Reload()
    assert [one.step for one in log.Scalars("latency_s")] == [0, 1, 2, 3]
    sweep("tiny.yaml", "rounds=6", "--out", "s")
    [point] = points(folder / "s")
    assert FirstRounds.begun == [4] and not (folder / "s" / point / "tensorboard").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of the size of files")
def test_a_full_disk_fails_the_point_and_the_same_command_goes_on(folder, sweep):
    import resource

    sweep("tiny.yaml", "rounds=6", "--out", "s")
    [log] = (folder / "s").rglob("log.arrows")  # by far the largest file of the sweep
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size - 1, before[1]))
    try:
        ended = sweep("tiny.yaml", "rounds=7", "--out", "s", code=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    told = rf"failed: fedavg, seed 0: {POINT}: File too large; make room, and the same command goes"
    assert re.search(told, ended.output)
    assert not (folder / "s/shared").exists()
    assert find_runs([folder / "s"]).unfinished == []  # half a copy is no run
    sweep("tiny.yaml", "rounds=7", "--out", "s")
    assert FirstRounds.begun == [6]


def test_what_is_no_full_disk_asks_for_no_room(folder, sweep):
    sweep("tiny.yaml", "rounds=2", "--out", "s")
    (folder / "s/shared").write_text("a file where a folder is wanted")
    ended = sweep("tiny.yaml", "rounds=3", "--seeds", "0-1", "--out", "s", code=1)
    told = rf"failed: fedavg, seed 0: {POINT}: (Not a directory|File exists); mend that, and"
    assert re.search(told, ended.stderr) and len(ended.stderr.splitlines()) == 1
    assert "1 of 2 points done, 1 failed" in ended.stdout and FirstRounds.begun == [0]


def test_a_copy_that_was_killed_is_made_again(folder, sweep):
    sweep("tiny.yaml", "rounds=2", "--out", "s")
    sweep("tiny.yaml", "rounds=3", "--out", "new")
    [short], [long] = ((folder / out / "points").iterdir() for out in ("s", "new"))
    half = folder / "s/shared/tmp-of-a-worker" / long.name
    copytree(short / "checkpoint", half / "checkpoint")
    (half / "checkpoint/log.arrows").write_bytes(b"half")
    sweep("tiny.yaml", "rounds=3", "--out", "s")
    assert FirstRounds.begun == [2] and points(folder / "s") == points(folder / "new")


def test_a_copy_that_another_worker_finished_first_is_left_as_it_is(folder, sweep):
    sweep("tiny.yaml", "rounds=2", "--out", "s")
    [run] = (folder / "s/points").iterdir()
    place, workplace = folder / "s/points/new", folder / "s/shared"

    class Overtaken(ShorterRun):
        def _copy(self, half, tensorboard):
            super()._copy(half, tensorboard)
            ShorterRun(self.folder, self.rounds).copy_state(place, workplace)
            (place / "summary.json").write_text("of the other worker")

    Overtaken(run, 2).copy_state(place, workplace)
    assert {file.name for file in place.iterdir()} == {"checkpoint", "summary.json"}
    assert list(workplace.iterdir()) == []
