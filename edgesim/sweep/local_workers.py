"""Processes of this machine that carry points out, one point at a time each.

Every process is started anew (spawned), holds one end of a pipe, and ends when this command does. One that dies is
noticed, and who asked for its point decides what becomes of it; another takes its place with the next point.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context
from typing import Any

from edgesim.sweep.point_task import Ended, Task, carry_out

STARTED, ROUND, ENDED, DIED = "started", "round", "ended", "died"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
Event = tuple[str, str, Any]  # kind, id of the point, what is told of it


@dataclass
class Worker:
    process: Any
    pipe: connection.Connection
    task: Task | None = None


class Local:
    """So many processes; each is started when there is work for it."""

    name = "local"

    def __init__(self, workers: int) -> None:
        self.size = workers
        self._workers: list[Worker] = []

    def capacity(self) -> int:
        return self.size

    def start(self, task: Task) -> None:
        """Hand a point to a process that has none."""
        worker = next((one for one in self._workers if one.task is None), None) or self._hired()
        worker.task = task
        with suppress(OSError):  # it has died meanwhile, which `events` will say
            worker.pipe.send(task)

    def events(self, timeout_s: float) -> Iterator[Event]:
        """What the processes say within that time."""
        busy = {worker.pipe: worker for worker in self._workers if worker.task is not None}
        for pipe in connection.wait(list(busy), timeout_s):
            worker = busy[pipe]
            try:
                kind, told = pipe.recv()
            except (EOFError, OSError):
                yield DIED, worker.task.id, self._buried(worker)
                continue
            task = worker.task
            if kind == ENDED:
                worker.task = None
            yield kind, task.id, told

    def close(self) -> None:
        """End all processes, whatever they do; a point in progress loses its round."""
        for worker in self._workers:
            if worker.task is not None:
                worker.process.kill()
            worker.pipe.close()  # who waits for work reads the end, and leaves
        for worker in self._workers:
            worker.process.join()
        self._workers = []

    def pids(self) -> list[int]:
        return [worker.process.pid for worker in self._workers]

    def _hired(self) -> Worker:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs,), daemon=False)
        with one_thread_each():
            process.start()
        theirs.close()
        worker = Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _buried(self, worker: Worker) -> str:
        """How a process ended that is gone."""
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        code = worker.process.exitcode
        return f"its process ended by {f'signal {-code}' if code and code < 0 else f'exit code {code}'}"


@contextmanager
def one_thread_each() -> Iterator[None]:
    """What processes started meanwhile inherit: libraries that compute with one thread."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def serve(pipe: connection.Connection) -> None:
    """The life of a worker: points come in, rounds and results go out. Ctrl-C is the command's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    with suppress(EOFError, OSError):  # nobody listens any more
        while True:
            task = pipe.recv()
            pipe.send((STARTED, None))
            answer: Ended = carry_out(task, lambda event: pipe.send((ROUND, event)))
            pipe.send((ENDED, answer))


def end_with_parent() -> None:
    """Where the system can (Linux), the command's death ends this process at once; else its next message does."""
    if sys.platform == "linux":
        import ctypes

        set_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
