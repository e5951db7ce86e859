"""A signal at any moment ends a command with one sentence and its exit code, and leaves nobody."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from edgesim import load, simulate, stop_signals
from tests.conftest import ENDLESS

ROOT = Path(__file__).parents[2]
LONGEST_WAIT_S = 300.0  # for a process to get somewhere, on a machine that is busy


@pytest.fixture
def started(tmp_path):
    """Starts `edgesim` with these arguments in a session of its own, whose rest is killed."""
    (tmp_path / "endless.yaml").write_text(ENDLESS)
    processes = []

    def start(*arguments, ignored=(), before=()):
        def prepare():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

        command = [*before, sys.executable, "-m", "edgesim", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment,
            preexec_fn=prepare,
            start_new_session=True,
            **pipes,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def wait_for(moment, process=None):
    """Until this holds; of a process that has not ended, if one is given."""
    end_s = time.monotonic() + LONGEST_WAIT_S
    while not moment():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end_s
        time.sleep(0.002)


def in_charge(process, number=signal.SIGHUP):
    """Waits until the process catches the signals, the last of which is SIGHUP."""
    wait_for(lambda: has(process.pid, "SigCgt", number), process)


def has(pid, kind, number):
    """Is a signal in this mask of a process, such as SigCgt, those that it catches?"""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{kind}:")[2].split()[0], 16) >> (number - 1) & 1


def ended(process):
    """(exit code, stderr) of a process that would go on for ever, or has little left to do."""
    _, complaint = process.communicate(timeout=LONGEST_WAIT_S)
    return process.returncode, complaint


def of_session(leader):
    """Processes of the session that are still there."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = entry.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == leader and state != "Z":
            found.append(int(entry.parent.name))
    return found


@pytest.mark.parametrize(
    ("number", "code", "name"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "ended by SIGTERM"),
        (signal.SIGHUP, 129, "ended by SIGHUP"),
    ],
)
def test_a_signal_while_modules_load(started, number, code, name):
    process = started("run", "endless.yaml", "--fresh")
    in_charge(process)
    process.send_signal(number)
    sentence = f"{name}; the same command, without --fresh, resumes where it stopped.\n"
    assert ended(process) == (code, sentence)


@pytest.mark.slow
def test_a_signal_that_is_ignored_stays_ignored(started):
    """nohup ignores SIGHUP; a script without job control ignores SIGINT of its background jobs."""
    process = started("list", "methods", ignored=(signal.SIGHUP, signal.SIGINT))
    in_charge(process, signal.SIGTERM)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    assert ended(process) == (0, "")


def points_run(process, folder):
    return len(list(folder.glob("s/points/*/checkpoint/state.safetensors"))) == 2


def workers_load(process, folder):
    """Both workers and the process that multiprocessing starts beside them."""
    return len(of_session(process.pid)) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "send", "moment"),
    [
        (signal.SIGINT, os.killpg, workers_load),  # as a terminal does
        (signal.SIGTERM, os.kill, points_run),
        (signal.SIGHUP, os.killpg, points_run),
    ],
)
def test_a_sweep_ends_with_its_workers(started, tmp_path, number, send, moment):
    process = started("sweep", "endless.yaml", "seed=1,2", "--workers", "2", "--out", "s")
    wait_for(lambda: moment(process, tmp_path), process)
    workers = set(of_session(process.pid)) - {process.pid}
    of_terminal = itertools.product(workers, (signal.SIGINT, signal.SIGHUP))
    assert all(has(pid, "SigBlk", each) or has(pid, "SigIgn", each) for pid, each in of_terminal)
    send(process.pid, number)
    code, complaint = ended(process)
    assert code == 128 + number and complaint.count("\n") == 1, complaint
    assert "the same command resumes" in complaint
    wait_for(lambda: of_session(process.pid) == [])  # killed processes need a moment


@pytest.mark.slow
def test_a_run_ends_with_the_dask_workers_that_train_it(started, tmp_path):
    pytest.importorskip("distributed")
    trained = ["learning.dataset=digits", "learning.partition={kind: iid}"]
    process = started("run", "endless.yaml", *trained, "learning.executor=dask", "--out", "r")
    wait_for((tmp_path / "r" / "checkpoint" / "state.safetensors").exists, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the command and its workers
    code, complaint = ended(process)
    assert code == 128 + signal.SIGINT and complaint.count("\n") == 1, complaint
    wait_for(lambda: of_session(process.pid) == [])


@pytest.mark.slow
def test_process_1_of_a_container(started, tmp_path):
    """The system passes a signal to process 1 only where it has a handler."""
    namespace = ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces for processes here")
    process = started("run", "endless.yaml", "--out", "r", before=namespace)
    wait_for((tmp_path / "r" / "checkpoint" / "state.safetensors").exists, process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGTERM)
    assert ended(process) == (
        143,
        "ended by SIGTERM; the same command resumes where it stopped.\n",
    )


@pytest.mark.slow
def test_a_report_that_is_stopped_leaves_nothing(started, tmp_path):
    simulate(load(tmp_path / "endless.yaml", ["rounds=3"]), out=tmp_path / "r")
    process = started("report", "r", "--out", "page")
    wait_for(lambda: list(tmp_path.glob(".page-*/new/*")), process)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (143, "ended by SIGTERM.\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["endless.yaml", "r"]


@pytest.mark.slow
def test_what_a_stop_takes_away_is_no_error_of_the_block_that_used_it(monkeypatch):
    """The thread that ends the command deletes the folder while the main thread still draws into
    it: an error that follows must not be printed, nor decide the exit code.
    """
    went_on = []

    def draw():
        try:
            with stop_signals.cleanup_on_stop(lambda: None):
                raise FileNotFoundError
        except FileNotFoundError:
            went_on.append("the error")

    monkeypatch.setattr(stop_signals, "_cleanups", [])
    drawing = threading.Thread(target=draw, daemon=True)
    drawing.start()
    drawing.join(LONGEST_WAIT_S)
    assert went_on == ["the error"]
    monkeypatch.setattr(stop_signals, "_ending", threading.Event())
    stop_signals._ending.set()
    waiting = threading.Thread(target=draw, daemon=True)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive() and went_on == ["the error"]


@pytest.mark.slow
def test_a_command_ends_after_a_process_that_starts_has_what_it_reads(monkeypatch, capfd):
    """Else the process reads an empty pipe, and prints a traceback after the sentence."""
    order = []
    monkeypatch.setattr(stop_signals, "_starting", threading.Lock())
    monkeypatch.setattr(stop_signals, "_ending", threading.Event())
    monkeypatch.setattr(stop_signals, "_cleanups", [])
    monkeypatch.setattr(os, "_exit", order.append)
    ending = threading.Thread(target=stop_signals._end, args=(signal.SIGINT, "interrupted"))
    with stop_signals.process_starts():
        ending.start()
        ending.join(0.2)
        order.append("started")
    ending.join(LONGEST_WAIT_S)
    assert order == ["started", 130] and capfd.readouterr().err == "interrupted.\n"
