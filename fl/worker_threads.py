"""Work divided among threads: torch computes outside of Python's lock, so that they run at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], threads: int
) -> list[Result]:
    """``[function(item) for item in items]``, computed by several threads.

    An exception, Ctrl-C included, is raised once the calls under way have ended; the others are
    not begun.
    """
    threads = min(threads, len(items))
    if threads < 2:
        return [function(item) for item in items]
    # torch and OpenMP keep the number of threads per thread: each has to set its own.
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            return list(pool.map(function, items))
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Operations take one thread each: with more, large products have other last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
