"""Sweeps on dask.distributed: the same bytes, and one sentence where it is missing or lost."""

import os
import signal
import socket
import sys
from contextlib import suppress

import psutil
import pytest
from typer.testing import CliRunner

from edgesim import load, simulate
from edgesim.cli.app import app
from edgesim.errors import RunError
from edgesim.sweep.scheduling import PointScheduler
from edgesim.sweep.sweep_folder import SweepFolder
from edgesim.sweep.sweep_plan import plan_sweep
from edgesim.sweep.workers.dask_workers import DaskWorkers
from tests.conftest import FEW

OWN = """
from dataclasses import dataclass
import numpy as np
from torch import nn
from fl.methods.fedavg import FedAvg

def data():
    x, y = np.random.default_rng(3).random((40, 9), dtype=np.float32), np.arange(40) % 2
    return {"x_train": x, "y_train": y, "x_test": x, "y_test": y}

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(9, 4), nn.ReLU(), nn.Linear(4, 2))

@dataclass(frozen=True, eq=False)
class Mine(FedAvg):
    def local_update(self, state, k, w, grant):
        mask = self.task.tensor(self.trained_weights(state, grant))
        return (self.training(w, mask, state.g, k, penalty=lambda v: (v - w).square().sum()),)

def last_two(view, count, stream):
    return [2, 3]
"""


def pids(backend):
    """Processes of the workers."""
    return list(backend._client.run(os.getpid).values())


@pytest.mark.slow
def test_dask_gives_the_same_bytes_though_a_worker_is_killed(tmp_path, undisturbed, long_sweep):
    pytest.importorskip("distributed")
    (tmp_path / "long.yaml").write_text(long_sweep.text)
    planned = plan_sweep(tmp_path / "long.yaml")
    folder, backend = SweepFolder(tmp_path / "s", planned), DaskWorkers(2)
    assert [info["memory_limit"] for info in backend._workers().values()] == [0, 0]
    folder.open()
    try:
        victim = Killing(folder, backend, long_sweep.holds)
        PointScheduler(folder, backend, victim, {"processes": 1}).run()
    finally:
        backend.close()
        folder.close()
    assert victim.killed and {status for status, _ in folder.status.values()} == {"done"}
    long_sweep.same(undisturbed, tmp_path / "s")


@pytest.mark.slow
def test_code_of_the_user_gives_the_same_bytes_at_workers_of_dask(tmp_path, monkeypatch):
    """Data, model, method and selection; workers carry out points of a sweep, or jobs of a run."""
    pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.yaml").write_text(FEW)
    (tmp_path / "own.py").write_text(OWN)
    parts = {"dataset": "data", "model": "Net", "method.name": "Mine", "selection": "last_two"}
    own = [f"learning.{key}=./own.py:{name}" for key, name in parts.items()]
    own += ["learning.partition={kind: iid}", "rounds=2"]
    here = simulate(load("few.yaml", own), out=tmp_path / "here", allow_code=True)
    jobs = load("few.yaml", [*own, "learning.executor=dask"])
    simulate(jobs, out=tmp_path / "jobs", allow_code=True)
    dask = ["--backend", "dask", "--workers", "1", "--allow-code", "--out", "points"]
    result = CliRunner().invoke(app, ["sweep", "few.yaml", *own, "--seeds", "0", *dask])
    assert result.exit_code == 0, result.output
    (point,) = (tmp_path / "points" / "points").iterdir()
    for name in ("rounds.csv", "device_rounds.parquet", "model.safetensors"):
        expected = (here.folder / name).read_bytes()
        assert [(at / name).read_bytes() for at in (point, tmp_path / "jobs")] == [expected] * 2


@pytest.fixture
def deserted():
    """A scheduler without workers."""
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=0, dashboard_address=None)
    yield cluster.scheduler_address
    cluster.close()


@pytest.mark.slow
def test_a_scheduler_without_workers_is_reported_and_not_waited_for_longer_than_asked(
    tmp_path, monkeypatch, long_sweep, deserted
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("edgesim.sweep.workers.dask_workers.SAY_AFTER_S", 0.0)
    (tmp_path / "long.yaml").write_text(long_sweep.text)
    dask = ["--backend", "dask", "--scheduler", deserted, "--wait-for-workers"]
    result = CliRunner().invoke(app, ["sweep", "long.yaml", *dask, "500 ms"])
    assert result.exit_code == 2
    assert result.stdout.count(f"the dask scheduler {deserted} has no worker: waiting") == 1
    sentence = f"no worker came to the dask scheduler {deserted} within 0.5 s"
    assert result.stderr.splitlines() == [f"{sentence}; start some, and the same command goes on"]
    odd = CliRunner().invoke(app, ["sweep", "long.yaml", *dask, "soon"])
    assert odd.exit_code == 2 and 'command line: --wait-for-workers is "soon"' in odd.stderr
    past = CliRunner().invoke(app, ["sweep", "long.yaml", *dask, "-10 s", "--dry-run"])
    assert past.exit_code == 2 and "is -10 s; write a time of at least 0 s" in past.stderr


@pytest.mark.slow
def test_a_worker_with_several_threads_that_comes_later_is_refused():
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=0, **options) as cluster:
        backend = DaskWorkers(1, cluster.scheduler_address)
        assert backend.capacity() == 1
        cluster.scale(1)
        backend._client.wait_for_workers(1, timeout=60)
        with pytest.raises(RunError, match="has 2 threads; start it with --nthreads 1"):
            backend.capacity()


@pytest.mark.slow
def test_points_that_would_train_on_workers_of_dask_are_no_points_of_such_workers(
    tmp_path, monkeypatch, long_sweep
):
    """Their worker would wait for itself, or could start no workers of its own."""
    pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.yaml").write_text(long_sweep.text)
    changes = [
        "learning.dataset=digits",
        "learning.partition={kind: iid}",
        "learning.executor=dask",
    ]
    result = CliRunner().invoke(app, ["sweep", "long.yaml", *changes, "--backend", "dask"])
    assert result.exit_code == 2, result.output
    sentence = "learning.executor is dask, and so is --backend; leave one of them out"
    assert result.stderr == f"command line: {sentence}\n"
    assert not (tmp_path / "runs").exists()


def test_dask_that_is_not_installed_is_one_sentence(tmp_path, monkeypatch, long_sweep):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.yaml").write_text(long_sweep.text)
    result = CliRunner().invoke(app, ["sweep", "long.yaml", "--backend", "dask"])
    assert result.exit_code == 2 and 'pip install "edgesim[cluster]"' in result.stderr
    assert len(result.stderr.splitlines()) == 1 and not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_our_scheduler_and_workers_listen_on_the_loopback_address_only(recwarn):
    """Whoever reaches a scheduler of dask can have it run any code."""
    pytest.importorskip("distributed")
    with socket.socket() as taken:  # as by another sweep: nothing is printed about that
        with suppress(OSError):
            taken.bind(("127.0.0.1", 8787))
            taken.listen()
        backend = DaskWorkers(1)
    assert not [each for each in recwarn if "already in use" in str(each.message)]
    try:
        processes = [psutil.Process(pid) for pid in (os.getpid(), *pids(backend))]
        sockets = [each for one in processes for each in one.net_connections("inet")]
        addresses = {each.laddr.ip for each in sockets if each.status == psutil.CONN_LISTEN}
    finally:
        backend.close()
    assert addresses == {"127.0.0.1"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "address", ["tls://127.0.0.1:9", "ucx://127.0.0.1:9", "nonsense://", "", "a\nb", "http://x"]
)
def test_a_scheduler_that_cannot_be_reached_is_one_sentence(address):
    pytest.importorskip("distributed")
    with pytest.raises(RunError, match=r"the dask scheduler .* cannot be reached"):
        DaskWorkers(1, address)


def test_an_unknown_protocol_is_refused_before_there_is_a_client(monkeypatch):
    """Dask's client would take ten seconds to say so, and may keep the process from ending."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "Client", lambda *_, **__: pytest.fail("a client"))
    with pytest.raises(RunError, match=r"cannot be reached .unknown address scheme 'nonsense'"):
        DaskWorkers(1, "nonsense://")


@pytest.mark.slow
def test_a_scheduler_that_is_lost_is_one_sentence_and_the_sweep_goes_on_without_it(
    tmp_path, undisturbed, long_sweep
):
    pytest.importorskip("distributed")
    (tmp_path / "long.yaml").write_text(long_sweep.text)
    folder, backend = (
        SweepFolder(tmp_path / "s", plan_sweep(tmp_path / "long.yaml")),
        DaskWorkers(1),
    )
    folder.open()
    view = long_sweep.silent()
    view.round_ended = lambda point, event: backend._client.cluster.close()
    view.worker_died = lambda point, reason: pytest.fail(f"a point was blamed: {reason}")
    try:
        with pytest.raises(RunError, match="the dask scheduler is gone; start it again"):
            PointScheduler(folder, backend, view, {"processes": 1}).run()
    finally:
        backend.close()
        folder.close()
    long_sweep.ended_here(tmp_path)
    long_sweep.same(undisturbed, tmp_path / "s")


class Killing:
    """Kills the worker of the first point that is in the middle."""

    def __init__(self, folder, backend, holds):
        self.folder, self.backend, self.holds, self.killed = folder, backend, holds, False

    def __getattr__(self, name):
        return lambda *told: None

    def round_ended(self, point, event):
        if not self.killed and event.get("round", 0) >= 5:
            lock = [self.folder.of(point) / "checkpoint" / "state.safetensors"]
            for pid in pids(self.backend):
                if self.holds(pid, lock):
                    os.kill(pid, signal.SIGKILL)
                    self.killed = True
