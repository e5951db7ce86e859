"""Jobs on the workers of a cluster: the bytes of one process, the data sent once, lost workers."""

import os
import signal
import threading
from dataclasses import replace

import pytest
import torch

from edgesim.seeds import Seeds
from fl.dask_client import dask_client
from fl.errors import LearningError
from fl.executors.cluster_training import ClusterTraining, divided
from fl.executors.executor_choice import choose, on_a_worker
from fl.models.architectures import build
from fl.task import LearningTask
from tests.fl.conftest import Bench

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    """Of two workers that are threads here; what travels is packed all the same."""
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=1, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def perceptron(digits):
    return Bench(LearningTask(build("mlp", digits.input_shape, 10), digits, 16, Seeds(3)))


@pytest.mark.slow
def test_workers_run_no_module_of_the_working_folder(tmp_path, monkeypatch):
    """Nor does one that takes the place of another: a scenario alone may ask for workers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "select.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    client = dask_client(None, 1)
    try:
        (pid,) = client.run(os.getpid).values()
        os.kill(pid, signal.SIGKILL)
        while list(client.run(os.getpid, on_error="ignore").values()) in ([], [pid]):
            client.wait_for_workers(1, timeout=60)
    finally:
        client.close()
        client.cluster.close()
    assert not (tmp_path / "ran").exists()


def same(one, other):
    assert one.loss == other.loss
    for name in ("w", "mask", "collected"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None and theirs is None) or torch.equal(mine, theirs)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        *((name, {}) for name in ("fedavg", "liu", "fedlps", "moon", "oort")),
        ("liu", {"importance": "exact"}),
    ],
)
def test_the_results_are_those_of_one_process(perceptron, client, name, params):
    """Closures travel: penalties, submodels, own losses, phases that start from others' results."""
    method = perceptron.method(name, **params)
    jobs = perceptron.jobs(method, method.start())
    local = choose(method.task, "auto", 1).run(jobs)
    for one, other in zip(
        ClusterTraining(method.task, 2, on_a_worker, client).run(jobs), local, strict=True
    ):
        same(one, other)


def test_the_task_is_sent_once_and_what_jobs_share_once_per_part(perceptron, client, monkeypatch):
    sent, method = [], perceptron.method("fedavg", local_steps=1)
    scatter = client.scatter
    monkeypatch.setattr(
        client, "scatter", lambda data, **how: sent.append(len(data)) or scatter(data, **how)
    )
    executor, state = ClusterTraining(method.task, 2, on_a_worker, client), method.start()
    for _ in range(3):
        executor.run(perceptron.jobs(method, state))
    assert len(sent) == 1 and sent[0] > method.task.data.x_train.nbytes
    jobs = perceptron.jobs(method, state)
    one, four = (len(executor._packed(jobs, part)) for part in ([0], [0, 1, 2, 3]))
    assert method.layout.size * 4 < one < four < 1.5 * one


def test_parts_have_about_as_many_steps(perceptron):
    method = perceptron.method("fedavg", local_steps=1)
    (first, *_) = perceptron.jobs(method, method.start())
    jobs = [
        replace(first, phases=(replace(first.phases[0], steps=steps),)) for steps in (1, 9, 4, 5, 2)
    ]
    assert divided(jobs, range(5), 2) == [[1, 4], [3, 2, 0]]  # 10 + 3 and 6 + 5 + 2
    assert divided(jobs, [2], 5) == [[2]]


def test_what_fails_in_a_job_is_raised_here(perceptron, client):
    method = perceptron.method("fedavg", local_steps=1)
    job = perceptron.jobs(method, method.start())[0]

    def criterion(logits, y):
        raise LearningError("no such loss")

    wrong = replace(job, phases=(replace(job.phases[0], criterion=criterion),))
    with pytest.raises(LearningError, match="no such loss"):
        ClusterTraining(method.task, 2, on_a_worker, client).run([wrong])
    with pytest.raises(LearningError, match=r"a job cannot be sent to a worker .*lock.*another ex"):
        ClusterTraining(method.task, 2, on_a_worker, client).run(
            [replace(job, note=threading.Lock())]
        )


@pytest.mark.slow
def test_a_lost_worker_costs_a_repetition_and_nothing_else(perceptron, tmp_path):
    """The worker that trains device 0 first ends in the middle of it; another takes its place."""
    method, flag = perceptron.method("fedavg", local_steps=3), tmp_path / "died"
    jobs = perceptron.jobs(method, method.start())

    def criterion(logits, y):
        if not flag.exists():
            flag.touch()
            os._exit(1)
        return torch.nn.functional.cross_entropy(logits, y)

    dying = [
        replace(job, phases=(replace(job.phases[0], criterion=criterion),)) if not i else job
        for i, job in enumerate(jobs)
    ]
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with (
        distributed.LocalCluster(n_workers=2, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as replacing,
    ):
        found = ClusterTraining(method.task, 2, on_a_worker, replacing).run(dying)
    assert flag.exists()
    for one, other in zip(found, choose(method.task, "auto", 1).run(dying), strict=True):
        same(one, other)


def test_what_it_cannot_do_is_one_sentence(perceptron, monkeypatch):
    task = perceptron.task
    with pytest.raises(LearningError, match="processors only; write device: cpu, or another exec"):
        ClusterTraining(replace(task, device="cuda"), 1, on_a_worker)
    monkeypatch.setattr("fl.executors.cluster_training.find_spec", lambda name: None)
    with pytest.raises(LearningError, match=r'dask.distributed: pip install "edgesim\[cluster\]"'):
        choose(task, "dask")
