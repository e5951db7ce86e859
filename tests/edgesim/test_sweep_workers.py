"""Workers of a sweep that are killed, interrupted, or on dask: nothing is lost, and the bytes are the same."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app
from edgesim.errors import RunError
from edgesim.sweep.dask_workers import DaskWorkers
from edgesim.sweep.local_workers import LocalWorkers
from edgesim.sweep.point_task import DIED, ENDED, PointOutcome, WorkerEvent
from edgesim.sweep.scheduling import PointScheduler, grouped
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_plan import plan_sweep

ROOT = Path(__file__).parents[2]
LONG = """\
name: long
rounds: 150
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 100 dB}, fading: {kind: rayleigh, coherence: 10 ms}}
devices:
  - {count: 3, tx_power: 28 dBm, cpu: {frequency: 3 GHz, cycles_per_weight: 5}}
budget: {latency_threshold: 25 ms}
learning: {dataset: none, model: mlp, batch_size: 20, method: {name: fedavg}}
allocation: {solver: equal}
sweep: {budget.latency_threshold: [20 ms, 25 ms], seeds: 0-1}
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The sweep with one worker and nobody in its way."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "long.yaml").write_text(LONG)
    command = started(folder, "--workers", "1")
    _, complaint = command.communicate(timeout=60)
    assert command.returncode == 0, complaint
    return folder / "s"


def started(folder, *options, before=lambda: None, **how):
    """A sweep in a process of its own, in which ``before`` is called first.

    Ctrl-C reaches it, also where these tests were started with SIGINT ignored.
    """

    def prepare():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        before()

    command = [sys.executable, "-m", "edgesim", "sweep", "long.yaml", "--out", "s", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(
        command, cwd=folder, env=environment, preexec_fn=prepare, **pipes, **how
    )


def wait_until(true, process=None, seconds=40):
    end_s = time.monotonic() + seconds
    while not true():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end_s
        time.sleep(0.005)


def in_progress(folder):
    """Has a point a checkpoint, but no summary?"""
    points = list((folder / "s" / "points").glob("*/checkpoint/state.safetensors"))
    return [path for path in points if not (path.parents[1] / "summary.json").exists()]


def same(one, other):
    """The same points with the same status, and every file of every point with the same bytes."""
    (told, files), (told_there, files_there) = kept(one), kept(other)
    assert len(files) > 40 and told == told_there and files.keys() == files_there.keys()
    assert [name for name in files if files[name] != files_there[name]] == []


def kept(sweep):
    """What sweep.json tells but for names of folders, which also tell the code; and (values, seed, file) -> bytes."""
    told, files = json.loads((sweep / "sweep.json").read_text()), {}
    del told["scenario"]
    for point in told["points"]:
        place, point_of = sweep / point.pop("folder"), (*point["values"].values(), point["seed"])
        paths = [path for path in place.rglob("*") if path.is_file() and path.name != "timing.json"]
        files |= {(*point_of, str(path.relative_to(place))): path.read_bytes() for path in paths}
    return told, files


def children(pid):
    """Processes whose parent is ``pid``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, parent = path.parent.name, path.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        found += [int(name)] if int(parent) == pid else []
    return found


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"
)


@needs_proc
def test_kill_9_of_the_command_loses_nothing_but_the_round_in_progress(tmp_path, undisturbed):
    (tmp_path / "long.yaml").write_text(LONG)
    command = started(tmp_path, "--workers", "2")
    wait_until(lambda: in_progress(tmp_path), command)
    workers = children(command.pid)
    command.kill()
    command.communicate()
    wait_until(
        lambda: not any(Path(f"/proc/{pid}").exists() and not zombie(pid) for pid in workers)
    )
    logs = {path: path.with_name("log.arrows").stat().st_size for path in in_progress(tmp_path)}
    assert logs and all(size > 0 for size in logs.values())
    command = started(tmp_path, "--workers", "2")
    _, complaint = command.communicate(timeout=60)
    assert (command.returncode, complaint) == (0, "")
    same(undisturbed, tmp_path / "s")


def zombie(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@needs_proc
def test_a_worker_that_is_killed_is_replaced_and_its_point_resumes(tmp_path, undisturbed):
    (tmp_path / "long.yaml").write_text(LONG)
    command = started(tmp_path, "--workers", "2")
    wait_until(lambda: in_progress(tmp_path), command)
    busy = [pid for pid in children(command.pid) if holds(pid, in_progress(tmp_path))]
    os.kill(busy[0], signal.SIGKILL)
    printed, complaint = command.communicate(timeout=60)
    assert (command.returncode, complaint) == (0, "")
    assert "its process ended by signal 9; another one goes on with it" in printed
    same(undisturbed, tmp_path / "s")


def holds(pid, checkpoints):
    """Has the process one of these points' locks open?"""
    locks = {str(path.with_name("lock")) for path in checkpoints}
    links = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
    return bool(locks & set(links))


def test_ctrl_c_says_how_to_go_on(tmp_path, undisturbed):
    (tmp_path / "long.yaml").write_text(LONG)
    command = started(tmp_path, "--workers", "2", start_new_session=True)
    wait_until(lambda: in_progress(tmp_path), command)
    os.killpg(command.pid, signal.SIGINT)  # as a terminal does: to the command and its workers
    _, complaint = command.communicate(timeout=20)
    assert command.returncode == 130 and len(complaint.splitlines()) == 1
    assert "with the same options goes on where it stopped" in complaint
    command = started(tmp_path, "--workers", "2")
    _, complaint = command.communicate(timeout=60)
    assert (command.returncode, complaint) == (0, "")
    same(undisturbed, tmp_path / "s")


def test_a_second_command_in_the_same_folder_is_refused(tmp_path):
    (tmp_path / "long.yaml").write_text(LONG)
    first = started(tmp_path, "--workers", "1")
    wait_until(lambda: in_progress(tmp_path), first)
    _, complaint = started(tmp_path, "--workers", "1").communicate(timeout=30)
    first.kill()
    first.communicate()
    assert complaint == "another sweep is running in s; wait, or give another --out\n"


@pytest.mark.parametrize(("limit", "code"), [(60_000, 1), (500, 2)])
def test_a_full_disk_is_one_sentence(tmp_path, limit, code):
    """A process may not write files beyond a limit: what a disk without room answers, but without filling one."""
    import resource

    (tmp_path / "long.yaml").write_text(LONG)
    limits = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))  # noqa: E731
    command = started(tmp_path, "--workers", "1", "--seeds", "0", before=limits)
    _, complaint = command.communicate(timeout=60)
    assert command.returncode == code and "Traceback" not in complaint
    assert len(complaint.splitlines()) == (2 if code == 1 else 1) and "File too large" in complaint
    assert not list((tmp_path / "s").rglob("*.new"))
    if code == 1:
        points = json.loads((tmp_path / "s" / "sweep.json").read_text())["points"]
        assert all(p["status"] == "failed" and "make room" in p["error"] for p in points)
        assert not list((tmp_path / "s").rglob("summary.json"))


def test_dask_gives_the_same_bytes_though_a_worker_is_killed(tmp_path, undisturbed):
    pytest.importorskip("distributed")
    (tmp_path / "long.yaml").write_text(LONG)
    planned = plan_sweep(tmp_path / "long.yaml")
    folder, backend = SweepFolder(tmp_path / "s", planned), DaskWorkers(2)
    assert [info["memory_limit"] for info in backend._workers().values()] == [0, 0]
    folder.open()
    try:
        victim = Killing(folder, backend)
        PointScheduler(folder, backend, victim, {"processes": 1}).run()
    finally:
        backend.close()
        folder.close()
    assert victim.killed and {status for status, _ in folder.status.values()} == {"done"}
    same(undisturbed, tmp_path / "s")


def test_dask_that_is_not_installed_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.yaml").write_text(LONG)
    result = CliRunner().invoke(app, ["sweep", "long.yaml", "--backend", "dask"])
    assert result.exit_code == 2 and 'pip install "edgesim[cluster]"' in result.stderr
    assert len(result.stderr.splitlines()) == 1 and not (tmp_path / "runs").exists()


def test_a_scheduler_that_is_lost_is_one_sentence_and_the_sweep_goes_on_without_it(
    tmp_path, undisturbed
):
    pytest.importorskip("distributed")
    (tmp_path / "long.yaml").write_text(LONG)
    folder, backend = (
        SweepFolder(tmp_path / "s", plan_sweep(tmp_path / "long.yaml")),
        DaskWorkers(1),
    )
    folder.open()
    view = Silent()
    view.round_ended = lambda point, event: backend._cluster.close()
    view.worker_died = lambda point, reason: pytest.fail(f"a point was blamed: {reason}")
    try:
        with pytest.raises(RunError, match="the dask scheduler is gone; start it again"):
            PointScheduler(folder, backend, view, {"processes": 1}).run()
    finally:
        backend.close()
        folder.close()
    again = started(tmp_path, "--workers", "1")
    assert again.wait(60) == 0
    same(undisturbed, tmp_path / "s")


class Silent:
    """A view that shows nothing."""

    def __getattr__(self, name):
        return lambda *told: None


class Killing(Silent):
    """Kills the worker of the first point that is in the middle."""

    def __init__(self, folder, backend):
        self.folder, self.backend, self.killed = folder, backend, False

    def round_ended(self, point, event):
        if not self.killed and event.get("round", 0) >= 5:
            lock = [self.folder.of(point) / "checkpoint" / "state.safetensors"]
            for pid in self.backend.pids():
                if holds(pid, lock):
                    os.kill(pid, signal.SIGKILL)
                    self.killed = True


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


def folder_of(tmp_path, *texts):
    (tmp_path / "long.yaml").write_text(LONG.replace("sweep:", "#"))
    folder = SweepFolder(tmp_path / "s", plan_sweep(tmp_path / "long.yaml", texts))
    folder.open()
    return folder


def test_a_point_whose_processes_die_is_given_up_after_three(tmp_path):
    folder = folder_of(tmp_path, "rounds=1,2")
    cursed = folder.plan.points[0].id
    backend = Scripted(lambda name, turn: DIED if name == cursed else ENDED)
    PointScheduler(folder, backend, Silent(), {}).run()
    assert [task.id == cursed for task in backend.order] == [True, True, True, False]
    assert folder.status[cursed] == ("failed", "tried 3 times: its process ended by signal 9")


def test_points_that_may_share_run_behind_one_another(tmp_path):
    learning = "learning={dataset: digits, partition: {kind: iid}, model: mlp, batch_size: 20, method: {name: fedavg}}"
    folder = folder_of(tmp_path, learning, "budget.latency_threshold=20ms,25ms", "seed=0,1,2")
    assert [point.seed for point in folder.plan.points] == [0, 1, 2, 0, 1, 2]
    assert [point.seed for point in grouped(folder.plan.points)] == [0, 0, 1, 1, 2, 2]
    backend = Scripted(lambda name, turn: ENDED, size=2)
    PointScheduler(folder, backend, Silent(), {}).run()
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
    PointScheduler(folder, backend, Silent(), {}, reuse=False).run()
    assert {task.options["shared"] for task in backend.order} == {None}


def test_processes_are_gone_when_a_backend_is_closed():
    backend = LocalWorkers(1)
    worker = backend._spawn()
    assert worker.process.is_alive()
    backend.close()
    assert worker.process.exitcode is not None and backend.pids() == []
