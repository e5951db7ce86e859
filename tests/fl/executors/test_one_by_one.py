"""One job after the other, on any number of threads: the same bytes, and errors that reach the
caller.
"""

import threading
import time

import pytest
import torch

from fl.executors.batched import Batched
from fl.executors.deferred_training import Trainer
from fl.executors.one_by_one import OneByOne
from fl.training import local_sgd
from fl.worker_threads import map_in_threads, raise_if_stopped
from tests.fl.random_jobs import CNN, MLP, job, same, task_of


@pytest.fixture
def cnn():
    return task_of(CNN)


def test_an_error_in_a_thread_is_raised(cnn):
    def broken(w):
        raise ZeroDivisionError("by design")

    with pytest.raises(ZeroDivisionError, match="by design"):
        OneByOne(cnn, 2).run([job(cnn, k, penalty=broken) for k in range(4)])


def test_ctrl_c_ends_a_pass_after_the_jobs_under_way(cnn, ctrl_c):
    begun, never_stopped, both = [], [], threading.Barrier(2)

    def start(done):
        begun.append(threading.get_ident())
        if both.wait(60) == 0:
            ctrl_c()
        for _ in range(60_000):
            raise_if_stopped()
            time.sleep(1e-3)
        never_stopped.append(done)

    with pytest.raises(KeyboardInterrupt):
        OneByOne(cnn, 2).run([job(cnn, 0, start=start) for _ in range(20)])
    assert len(begun) == 2 and not never_stopped
    assert all(thread.ident not in begun for thread in threading.enumerate())


def test_jobs_that_leave_no_memory_for_each_other_are_repeated_alone(cnn, monkeypatch):
    jobs, run, home = [job(cnn, k) for k in range(4)], local_sgd.run, threading.get_ident()
    expected = OneByOne(cnn).run(jobs)

    def full(task, one):
        if threading.get_ident() != home and one.device in (1, 2):
            torch.empty(1 << 50)
        return run(task, one)

    monkeypatch.setattr(local_sgd, "run", full)
    executor = OneByOne(cnn, 2)
    assert same(executor.run(jobs), expected)
    assert executor.fallbacks.lines() == [
        "one job at a time instead of 2: too large for the memory (2 jobs)"
    ]


def test_what_a_method_collects_comes_home(cnn):
    jobs = [job(cnn, k, collect=lambda w: w[:5] ** 2) for k in range(4)]
    assert same(OneByOne(cnn, 2).run(jobs), OneByOne(cnn).run(jobs))


def test_the_longest_jobs_come_first_and_results_keep_their_order(cnn, monkeypatch):
    jobs = [job(cnn, k, steps=s) for k, s in ((0, 1), (1, 9), (3, 5))]
    order, run = [], local_sgd.run
    monkeypatch.setattr(
        local_sgd, "run", lambda task, one: order.append(one.device) or run(task, one)
    )
    found = OneByOne(cnn).run(jobs)
    assert order == [1, 3, 0]
    assert same(found, [run(cnn, one) for one in jobs])


def test_a_single_call_needs_no_thread():
    home = threading.get_ident()
    assert map_in_threads(lambda item: threading.get_ident(), [1], 2) == [home]
    assert map_in_threads(lambda item: threading.get_ident(), [1, 2], 1) == [home] * 2
    assert home not in map_in_threads(lambda item: threading.get_ident(), [1, 2], 2)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("executor", [Batched, OneByOne])
def test_two_torch_threads_move_no_byte(executor, threads):
    """A product of a single large model has other last bits: each operation has one thread."""
    task = task_of(MLP, (1, 28, 28), sizes=(64, 40, 30), batch=128)
    jobs, before = [job(task, k, steps=4) for k in range(3)], torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = executor(task).run(jobs)
        torch.set_num_threads(2)
        trainer = Trainer(task, executor(task, threads))
        promises = trainer.submit(jobs)
        assert same([one.result() for one in promises], expected)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
