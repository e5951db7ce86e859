"""Small sweeps, carried out in this process or disturbed in processes of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app
from edgesim.sweep.workers.point_task import ENDED, WorkerEvent, carry_out
from tests.conftest import ENDLESS, TIMED

ROOT = Path(__file__).parents[3]
LONGEST_WAIT_S = 300.0  # for a process to get somewhere, on a machine that is busy
COUNTED = TIMED.replace("name: timed", "name: tiny")


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
    monkeypatch.setattr("edgesim.sweep.workers.local_workers.LocalWorkers", InProcessWorkers)
    for name, text in (("tiny", COUNTED), ("two", COUNTED + SCHEMES), ("block", COUNTED + BLOCK)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


@pytest.fixture
def sweep():
    """`edgesim sweep` with these arguments, which ends with this exit code."""

    def run(*arguments, code=0):
        result = CliRunner().invoke(app, ["sweep", *map(str, arguments)])
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    return run


SWEEP = "sweep: {budget.latency_threshold: [20 ms, 25 ms], seeds: 0-1}\n"
LONG = ENDLESS.replace("name: endless\nrounds: 1000000000", "name: long\nrounds: 100") + SWEEP


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The sweep in this process, where nobody is in its way."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "long.yaml").write_text(LONG)
    ended_here(folder)
    return folder / "s"


def ended_here(folder):
    """Carry the sweep out in this process, or what is left of it; gives what it printed."""
    sweep = ["sweep", str(folder / "long.yaml"), "--out", str(folder / "s"), "--workers", "1"]
    with pytest.MonkeyPatch.context() as here:
        here.setattr("edgesim.sweep.workers.local_workers.LocalWorkers", InProcessWorkers)
        result = CliRunner().invoke(app, sweep)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


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


def wait_until(true, process=None):
    end_s = time.monotonic() + LONGEST_WAIT_S
    while not true():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end_s
        time.sleep(0.01)


def in_progress(folder):
    """A state of each point that has a checkpoint, but no summary.

    There are moments with the state before the last one alone.
    """
    states = (folder / "s" / "points").glob("*/checkpoint/*state.safetensors")
    points = {path.parent: path for path in states}
    return [path for path in points.values() if not (path.parents[1] / "summary.json").exists()]


def halted(process):
    """Stop a process, which keeps its files and locks, until it is killed or told to go on."""
    os.kill(process, signal.SIGSTOP)
    wait_until(lambda: state(process) in "TXZ")


def state(pid):
    """The letter of a process's state in Linux, such as T where it is stopped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def same(one, other):
    """The same points with the same status, and every file of every point with the same bytes."""
    tables = [(place / "sweep.parquet").read_bytes() for place in (one, other)]
    assert tables[0] == tables[1]
    (told, files), (told_there, files_there) = kept(one), kept(other)
    assert len(files) > 40 and told == told_there and files.keys() == files_there.keys()
    assert [name for name in files if files[name] != files_there[name]] == []


def kept(sweep):
    """sweep.json without the names of folders, which depend on the code, and its own digest; and
    every file's bytes.
    """
    told, files = json.loads((sweep / "sweep.json").read_text()), {}
    del told["scenario"], told["digest"]
    for point in told["points"]:
        place, point_of = sweep / point.pop("folder"), (*point["values"].values(), point["seed"])
        paths = [path for path in place.rglob("*") if path.is_file() and path.name != "timing.json"]
        files |= {(*point_of, str(path.relative_to(place))): path.read_bytes() for path in paths}
    return told, files


def holds(pid, checkpoints):
    """Has the process one of these points' locks open?"""
    locks = {str(path.with_name("lock")) for path in checkpoints}
    links = set()
    with suppress(FileNotFoundError):  # the process has ended meanwhile
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                links.add(os.readlink(path))
    return bool(locks & links)


class Silent:
    """A view that shows nothing."""

    def __getattr__(self, name):
        return lambda *told: None


class LongSweep:
    """A sweep of 4 points that takes some seconds, for tests that disturb it."""

    text = LONG
    longest_wait_s = LONGEST_WAIT_S
    silent = Silent
    started = staticmethod(started)
    ended_here = staticmethod(ended_here)
    wait_until = staticmethod(wait_until)
    halted = staticmethod(halted)
    state = staticmethod(state)
    in_progress = staticmethod(in_progress)
    same = staticmethod(same)
    holds = staticmethod(holds)


@pytest.fixture(scope="session")
def long_sweep():
    return LongSweep
