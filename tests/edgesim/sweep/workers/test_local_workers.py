"""Workers that are killed or interrupted: nothing is lost, and the bytes are the same."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from shutil import copytree

import pytest

from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_plan import plan_sweep
from edgesim.sweep.workers.local_workers import LocalWorkers


def children(pid):
    """Processes that the process ``pid`` has started."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # that thread has ended meanwhile
            found += map(int, path.read_text().split())
    return found


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"
)


@pytest.mark.slow
@needs_proc
def test_kill_9_of_the_command_loses_nothing_but_the_round_in_progress(
    tmp_path, undisturbed, long_sweep
):
    (tmp_path / "long.yaml").write_text(long_sweep.text)
    command = long_sweep.started(tmp_path, "--workers", "2")
    long_sweep.wait_until(lambda: long_sweep.in_progress(tmp_path), command)
    workers = children(command.pid)
    command.kill()
    command.communicate()
    long_sweep.wait_until(lambda: all(long_sweep.state(pid) in "XZ" for pid in workers))
    logs = {
        path: path.with_name("log.arrows").stat().st_size
        for path in long_sweep.in_progress(tmp_path)
    }
    assert logs and all(size > 0 for size in logs.values())
    long_sweep.ended_here(tmp_path)
    long_sweep.same(undisturbed, tmp_path / "s")


@pytest.mark.slow
@needs_proc
def test_a_worker_that_is_killed_is_replaced_and_its_point_resumes(
    tmp_path, undisturbed, long_sweep
):
    (tmp_path / "long.yaml").write_text(long_sweep.text)
    command = long_sweep.started(tmp_path, "--workers", "2")

    def busy():
        points = long_sweep.in_progress(tmp_path)
        return [pid for pid in children(command.pid) if long_sweep.holds(pid, points)]

    def halted_in_the_middle():
        """A worker that was stopped before its point had ended."""
        for pid in busy():
            long_sweep.halted(pid)
            if pid in busy():
                return pid
            os.kill(pid, signal.SIGCONT)
        return None

    victims = []
    long_sweep.wait_until(lambda: victims.append(halted_in_the_middle()) or victims[-1], command)
    os.kill(victims[-1], signal.SIGKILL)
    printed, complaint = command.communicate(timeout=long_sweep.longest_wait_s)
    assert (command.returncode, complaint) == (0, "")
    assert "its process ended by signal 9; another one goes on with it" in printed
    long_sweep.same(undisturbed, tmp_path / "s")


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path, undisturbed, long_sweep):
    (tmp_path / "long.yaml").write_text(long_sweep.text)
    command = long_sweep.started(tmp_path, "--workers", "2", start_new_session=True)
    long_sweep.wait_until(lambda: long_sweep.in_progress(tmp_path), command)
    workers = children(command.pid)
    os.killpg(command.pid, signal.SIGINT)  # as a terminal does: to the command and its workers
    _, complaint = command.communicate(timeout=long_sweep.longest_wait_s)
    assert command.returncode == 130 and len(complaint.splitlines()) == 1
    assert "the same command resumes where it stopped" in complaint
    assert not (tmp_path / "s" / "lock").exists()
    long_sweep.wait_until(lambda: all(long_sweep.state(pid) in "XZ" for pid in workers))
    long_sweep.ended_here(tmp_path)
    long_sweep.same(undisturbed, tmp_path / "s")


def test_a_second_command_in_the_same_folder_is_refused(folder, sweep):
    first = SweepFolder(folder / "s", plan_sweep(folder / "tiny.yaml"))
    first.open()
    second = sweep("tiny.yaml", "--workers", "1", "--out", "s", code=2)
    first.close()
    assert second.stderr == "another sweep is running in s; wait, or give another --out\n"


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "code"), [(60_000, 1), (500, 2)])
def test_a_full_disk_is_one_sentence(tmp_path, limit, code, long_sweep):
    """A limit on the size of files answers what a full disk answers."""
    import resource

    (tmp_path / "long.yaml").write_text(long_sweep.text)
    limits = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))  # noqa: E731
    command = long_sweep.started(tmp_path, "--workers", "1", "--seeds", "0", before=limits)
    _, complaint = command.communicate(timeout=long_sweep.longest_wait_s)
    assert command.returncode == code and "Traceback" not in complaint
    assert len(complaint.splitlines()) == (2 if code == 1 else 1) and "File too large" in complaint
    assert not list((tmp_path / "s").rglob("*.new"))
    if code == 1:
        points = json.loads((tmp_path / "s" / "sweep.json").read_text())["points"]
        assert all(p["status"] == "failed" and "make room" in p["error"] for p in points)
        assert not list((tmp_path / "s").rglob("summary.json"))


@pytest.mark.slow
def test_workers_copy_what_their_points_go_on_from(tmp_path, undisturbed, long_sweep):
    (tmp_path / "long.yaml").write_text(long_sweep.text)
    copytree(undisturbed, tmp_path / "s")
    command = long_sweep.started(tmp_path, "rounds=101", "--seeds", "0", "--workers", "2")
    printed, complaint = command.communicate(timeout=long_sweep.longest_wait_s)
    assert (command.returncode, complaint) == (0, "")
    assert "2 points go on from 100 rounds run before" in printed
    listed = json.loads((tmp_path / "s/sweep.json").read_text())["points"]
    timing = [
        json.loads((tmp_path / "s" / p["folder"] / "timing.json").read_text()) for p in listed
    ]
    assert [each["rounds"] for each in timing] == [1, 1]


@pytest.mark.slow
def test_processes_are_gone_when_a_backend_is_closed():
    backend = LocalWorkers(1)
    worker = backend._spawn()
    assert worker.process.is_alive()
    backend.close()
    assert worker.process.exitcode is not None and backend._workers == []
