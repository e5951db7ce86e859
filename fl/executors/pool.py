"""A pass in several processes, byte for byte the same as in one.

Jobs hold functions, which cannot be sent to another process. So processes are forked for the pass: they have all that
this one has, data included, without a copy. This process is one of the workers. Who is free draws the next piece of the
pass, the heaviest first; what a forked process has trained it writes into a file in memory. If one dies or fails, the
pieces that it leaves undone are trained here, and the notes say so.
"""

from __future__ import annotations

import os
import pickle
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

import torch

from edgesim.contracts import Job, Trained
from fl.executors.notes import Notes
from fl.executors.processes import cores, ending, fork, no_fork, one_thread, stopped, undisturbed, waited
from fl.executors.work import flops_of
from fl.task import Task

TICKET = struct.Struct("=I")
MOST_PIECES = 1024  # tickets that fit into the smallest pipe
Results = dict[int, list[Trained]]  # number of a piece -> what became of its jobs


class Pool:
    """Divides a pass among processes of one thread each; each trains its pieces with ``inner``.

    Args:
        workers: processes, this one included; None: one per core that this process may use.
        least_s: a pass that takes about less than so many seconds is not worth forked processes.
        pieces: pieces per worker into which a pass is cut; None: every job is one.
        short: trains the passes that are not worth them; None: ``inner``, in this process alone.
    """

    def __init__(
        self,
        task: Task,
        inner: Any,
        workers: int | None = None,
        least_s: float = 0.0,
        pieces: int | None = None,
        short: Any = None,
    ) -> None:
        self.task, self.inner, self.short = task, inner, short or inner
        self.workers = cores() if workers is None else workers
        self.least_s, self.pieces = least_s, pieces
        self.name = f"{inner.name}, {self.workers} processes"
        self.notes: Notes = inner.notes

    def run(self, jobs: Sequence[Job]) -> list[Trained]:
        with one_thread():
            return self._run(jobs)

    def end(self) -> None:
        """Ends the process that stays for short passes."""
        self.short.end()

    def _run(self, jobs: Sequence[Job]) -> list[Trained]:
        if min(self.workers, len(jobs)) < 2:
            return self.inner.run(jobs)
        if self.inner.pace.seconds(self.task, jobs) < self.least_s:
            return self.short.run(jobs)
        if (obstacle := no_fork(self.task)) is not None:
            self.notes.add(f"one process instead of {self.workers}: {obstacle}", len(jobs))
            return self.inner.run(jobs)
        pieces = self._cut(jobs)
        done = self._spread(pieces)
        done |= {number: self.inner.run(piece) for number, piece in enumerate(pieces) if number not in done}
        results = {id(job): one for p, piece in enumerate(pieces) for job, one in zip(piece, done[p], strict=True)}
        return [results[id(job)] for job in jobs]

    def _cut(self, jobs: Sequence[Job]) -> list[list[Job]]:
        """Pieces of the pass, the heaviest job first."""
        heavy = sorted(jobs, key=lambda job: -flops_of(self.task, job))
        wanted = len(jobs) if self.pieces is None else self.pieces * self.workers
        size = -(-len(jobs) // min(wanted, MOST_PIECES))
        return [heavy[i : i + size] for i in range(0, len(heavy), size)]

    def _spread(self, pieces: Sequence[list[Job]]) -> Results:
        """Trains the pieces; what a process that died or failed has drawn is missing."""
        with tickets(len(pieces)) as queue, helpers() as workers:
            with undisturbed():
                for _ in range(min(self.workers, len(pieces)) - 1):
                    workers.append(started(queue, lambda file: self._serve(queue, pieces, file)))
            done = {number: self.inner.run(pieces[number]) for number in drawn(queue)}
            troubles = [self._collect(worker, done) for worker in workers]
        undone = sum(len(piece) for number, piece in enumerate(pieces) if number not in done)
        for trouble in {trouble for trouble in troubles if trouble and undone}:
            self.notes.add(f"{trouble}; what it had begun was trained again", undone)
        return done

    def _serve(self, queue: int, pieces: Sequence[list[Job]], file: IO[bytes]) -> None:
        """What a forked process does: trains pieces and writes them down, as long as somebody waits for them."""
        parent = os.getppid()
        self.notes.take()
        for number in drawn(queue):
            if os.getppid() != parent:
                return
            try:
                answer = [packed(one) for one in self.inner.run(pieces[number])]
            except Exception as error:
                answer = f"{type(error).__name__}: {error}".splitlines()[0]
            pickle.dump((number, answer, self.notes.take()), file, protocol=5)
            file.flush()

    def _collect(self, worker: Worker, done: Results) -> str | None:
        """Adds what a process has trained to ``done``; returns what went wrong with it."""
        code = worker.wait()
        trouble = None if code == 0 else f"a process ended by {ending(code)}"
        worker.file.seek(0)
        with suppress(EOFError, pickle.UnpicklingError):  # the end, or what a killed process could not finish
            while True:
                number, answer, notes = pickle.load(worker.file)
                self.notes.merge(notes)
                if isinstance(answer, str):
                    trouble = f"a process failed ({answer})"
                else:
                    done[number] = [unpacked(one) for one in answer]
        return trouble


@dataclass
class Worker:
    """A forked process, and the file in memory that it writes to."""

    pid: int
    file: IO[bytes]
    waited: bool = False

    def wait(self) -> int:
        """Its exit code: 0, or below 0 the signal that ended it."""
        code = waited(self.pid)
        self.waited = True
        return code


# --- processes -----------------------------------------------------------------------------------------------------


def started(queue: int, work: Callable[[IO[bytes]], None]) -> Worker:
    """A process that does ``work`` with a file in memory."""
    file = memory_file()
    return Worker(fork({queue, file.fileno()}, lambda: work(file)), file)


@contextmanager
def helpers() -> Iterator[list[Worker]]:
    """The forked processes of a pass. Whatever happens, none outlives it."""
    workers: list[Worker] = []
    try:
        yield workers
    finally:
        for worker in workers:
            if not worker.waited:
                stopped(worker.pid)
            worker.file.close()


@contextmanager
def tickets(count: int) -> Iterator[int]:
    """A pipe with the numbers below ``count``: whoever is free draws the next, without a lock that could stay held."""
    queue, end = os.pipe()
    try:
        os.write(end, b"".join(TICKET.pack(number) for number in range(count)))
        os.close(end)
        yield queue
    finally:
        os.close(queue)


def drawn(queue: int) -> Iterator[int]:
    """The numbers that this process draws, until none is left."""
    while ticket := os.read(queue, TICKET.size):
        yield TICKET.unpack(ticket)[0]


def memory_file() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("trained"), "w+b")
    return tempfile.TemporaryFile()


# --- what travels --------------------------------------------------------------------------------------------------


def packed(one: Trained) -> tuple[Any, ...]:
    collected = None if one.collected is None else one.collected.numpy()
    return one.w.numpy(), one.mask.numpy(), one.loss, one.accuracy, collected


def unpacked(parts: tuple[Any, ...]) -> Trained:
    """Tensors in memory of torch's own: where it begins can decide the last bits of what is computed from them."""
    w, mask, loss, accuracy, collected = parts
    collected = None if collected is None else torch.tensor(collected)
    return Trained(torch.tensor(w), torch.tensor(mask), loss, accuracy, collected)
