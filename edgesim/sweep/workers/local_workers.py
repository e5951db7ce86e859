"""Processes of this machine that carry out points, one point at a time each.

Every process is spawned, holds one end of a pipe, and ends when this command does. One that dies is
noticed; another takes its place with the next point.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from multiprocessing.context import SpawnProcess

from edgesim.stop_signals import process_starts
from edgesim.sweep.workers.point_task import DIED, ENDED, ROUND, PointTask, WorkerEvent, carry_out
from fl.worker_processes import terminal_signals_blocked, worker_environment


@dataclass
class WorkerProcess:
    """A process, this end of its pipe, and the point that it carries out."""

    process: SpawnProcess
    pipe: connection.Connection
    point_id: str | None = None


class LocalWorkers:
    """So many processes; each is started when there is work for it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._workers: list[WorkerProcess] = []

    def capacity(self) -> int:
        return self.count

    def start(self, task: PointTask) -> None:
        idle = (worker for worker in self._workers if worker.point_id is None)
        worker = next(idle, None) or self._spawn()
        worker.point_id = task.id
        with suppress(OSError):  # it has died meanwhile, which `events` will report
            worker.pipe.send(task)

    def events(self, timeout_s: float) -> Iterator[WorkerEvent]:
        busy = [worker for worker in self._workers if worker.point_id is not None]
        ready = connection.wait([worker.pipe for worker in busy], timeout_s)
        for worker in busy:
            if worker.pipe not in ready:
                continue
            point_id = str(worker.point_id)
            try:
                kind, content = worker.pipe.recv()
            except (EOFError, OSError):
                yield WorkerEvent(DIED, point_id, self._remove(worker))
                continue
            if kind == ENDED:
                worker.point_id = None
            yield WorkerEvent(kind, point_id, content)

    def close(self) -> None:
        """End all processes, whatever they do; a point in progress loses its round."""
        for worker in self._workers:
            if worker.point_id is not None:
                worker.process.kill()
            worker.pipe.close()  # an idle process reads the end of the pipe, and exits
        for worker in self._workers:
            worker.process.join()
        self._workers = []

    def _spawn(self) -> WorkerProcess:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs,), daemon=False)
        with worker_environment(), terminal_signals_blocked(), process_starts():
            process.start()
        theirs.close()
        self._workers.append(WorkerProcess(process, ours))
        return self._workers[-1]

    def _remove(self, worker: WorkerProcess) -> str:
        """How a process ended that is gone."""
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        code = worker.process.exitcode or 0
        return f"its process ended by {f'signal {-code}' if code < 0 else f'exit code {code}'}"


def work(pipe: connection.Connection) -> None:
    """The main function of a process: points come in, rounds and outcomes go out."""
    end_with_parent()
    with suppress(EOFError, OSError):  # the command has gone
        while True:
            task = pipe.recv()
            outcome = carry_out(task, lambda event: pipe.send((ROUND, event)))
            pipe.send((ENDED, outcome))


def end_with_parent() -> None:
    """Have the system (Linux) end this process with the command; else its next message does."""
    if sys.platform == "linux":
        import ctypes

        set_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
        parent = parent_process()
        if parent is not None and os.getppid() != parent.pid:  # it had gone before
            os._exit(1)
