"""Work in threads: results in order, errors and Ctrl-C without waiting for the others."""

from __future__ import annotations

import threading
import time

import pytest
import torch

from fl.worker_threads import map_in_threads, raise_if_stopped

LONGEST_WAIT_S = 60.0
NEVER_STOPPED = []


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_stand_in_the_order_of_the_items(threads):
    assert map_in_threads(lambda n: n * n, range(7), threads) == [n * n for n in range(7)]


def test_every_thread_computes_with_one_torch_thread():
    seen = map_in_threads(lambda n: torch.get_num_threads(), range(4), 2)
    assert seen == [1] * 4


def long_call(started):
    """Steps of a millisecond until somebody stops it."""
    started.set()
    end_s = time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < end_s:
        raise_if_stopped()
        time.sleep(1e-3)
    NEVER_STOPPED.append(started)


def test_an_error_ends_the_calls_under_way():
    started = threading.Event()

    def work(kind):
        if kind == "fails":
            started.wait()
            raise ValueError("no such weight")
        long_call(started)

    with pytest.raises(ValueError, match="no such weight"):
        map_in_threads(work, ["fails", "long"], 2)
    assert started not in NEVER_STOPPED


def test_ctrl_c_ends_the_calls_under_way(ctrl_c):
    started = threading.Event()

    def work(number):
        if number == 1:
            started.wait()
            ctrl_c()
        long_call(started)

    with pytest.raises(KeyboardInterrupt):
        map_in_threads(work, range(4), 2)
    assert started not in NEVER_STOPPED
