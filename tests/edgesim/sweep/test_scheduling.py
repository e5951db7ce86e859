"""Which point runs when: retries after deaths, and groups that share their training."""

import sys

import pytest

from edgesim.records.checkpoint.usable_folder import FolderError
from edgesim.sweep.scheduling import PointScheduler, grouped
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_plan import plan_sweep
from edgesim.sweep.workers.point_task import DIED, ENDED, PointOutcome, WorkerEvent


class Scripted:
    """A backend that answers as told: a queue of events per point."""

    def __init__(self, script, size=1):
        self.script, self.size, self.order, self.waiting = script, size, [], []

    def capacity(self):
        return self.size

    def start(self, task):
        self.order.append(task)
        self.waiting.append(task.id)

    def events(self, timeout_s):
        name = self.waiting.pop(0)
        kind = self.script(name, len([task for task in self.order if task.id == name]))
        content = PointOutcome("done") if kind == ENDED else "its process ended by signal 9"
        yield WorkerEvent(kind, name, content)


@pytest.fixture
def open_folder(tmp_path, long_sweep):
    """A sweep of one scenario with these values."""

    def make(*texts):
        (tmp_path / "long.yaml").write_text(long_sweep.text.replace("sweep:", "#"))
        folder = SweepFolder(tmp_path / "s", plan_sweep(tmp_path / "long.yaml", texts))
        folder.open()
        return folder

    return make


def test_a_point_whose_processes_die_is_given_up_after_three(open_folder, long_sweep):
    folder = open_folder("rounds=1,2")
    cursed = folder.plan.points[0].id
    backend = Scripted(lambda name, turn: DIED if name == cursed else ENDED)
    PointScheduler(folder, backend, long_sweep.silent(), {}).run()
    assert [task.id == cursed for task in backend.order] == [True, True, True, False]
    assert folder.status[cursed] == ("failed", "tried 3 times: its process ended by signal 9")


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of the size of files")
def test_a_full_disk_at_the_end_is_one_sentence(open_folder):
    import resource

    folder = open_folder("rounds=1,2")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(FolderError, match=r"sweep\.parquet: File too large; make room, and"):
            folder.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (folder.path / "lock").exists()


def test_points_that_may_share_run_behind_one_another(open_folder, long_sweep):
    learning = (
        "learning={dataset: digits, partition: {kind: iid}, model: mlp, batch_size: 20, "
        "method: {name: fedavg}}"
    )
    folder = open_folder(learning, "budget.latency_threshold=20ms,25ms", "seed=0,1,2")
    assert [point.seed for point in folder.plan.points] == [0, 1, 2, 0, 1, 2]
    assert [point.seed for point in grouped(folder.plan.points)] == [0, 0, 1, 1, 2, 2]
    backend = Scripted(lambda name, turn: ENDED, size=2)
    PointScheduler(folder, backend, long_sweep.silent(), {}).run()
    seeds = [task.scenario.seed for task in backend.order]
    assert seeds[:3] == [
        0,
        1,
        0,
    ]  # nobody starts a second point of a group while there is other work
    assert all(task.options["shared"] == folder.shared.resolve() / "" for task in backend.order)
    backend = Scripted(lambda name, turn: ENDED, size=2)
    for point in folder.plan.points:
        folder.status[point.id] = "missing", None
    PointScheduler(folder, backend, long_sweep.silent(), {}, reuse=False).run()
    assert {task.options["shared"] for task in backend.order} == {None}
