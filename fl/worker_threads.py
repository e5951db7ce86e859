"""Work divided among threads: torch computes outside of Python's lock, so that they run at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_of_thread = threading.local()  # stop: the event that asks this thread to give up its call


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], threads: int
) -> list[Result]:
    """``[function(item) for item in items]``, computed by several threads.

    An exception, Ctrl-C included, is raised as soon as the calls under way have met
    `raise_if_stopped`, or have ended; the others are not begun.
    """
    threads = min(threads, len(items))
    if threads < 2:
        return [function(item) for item in items]
    stop = threading.Event()

    def prepare() -> None:
        import torch

        # torch and OpenMP keep the number of threads per thread: each has to set its own.
        torch.set_num_threads(1)
        _of_thread.stop = stop

    def call(item: Item) -> Result:
        # A thread may take another item between the stop and the end of the pool.
        raise_if_stopped()
        return function(item)

    with ThreadPoolExecutor(threads, initializer=prepare) as pool:
        try:
            return list(pool.map(call, items))
        except BaseException:
            stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def raise_if_stopped() -> None:
    """End the call of this thread if `map_in_threads` was interrupted: asked at every SGD step.

    Raises:
        CancelledError: nobody waits for the result any more.
    """
    stop = getattr(_of_thread, "stop", None)
    if stop is not None and stop.is_set():
        raise CancelledError


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Operations take one thread each: with more, large products have other last bits."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
