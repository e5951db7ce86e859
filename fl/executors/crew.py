"""Work in pieces, done by several processes, byte for byte the same as by one.

What is to be done are functions, which cannot be sent to another process. So processes are forked for the work: they
have all that this one has, data included, without a copy. This process is one of them. Who is free draws the next
piece; what a forked process makes of it, it writes into a file in memory. If one dies or fails, the pieces that it
leaves undone are done here, and the notes say so.
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

from fl.executors.fallbacks import Notes
from fl.executors.processes import ending, fork, no_fork, stopped, undisturbed, waited
from fl.task import LearningTask

TICKET = struct.Struct("=I")
MOST_PIECES = 1024  # tickets that fit into the smallest pipe
Do = Callable[[int], Any]  # number of a piece -> what becomes of it
Travel = Callable[[Any], Any]  # what becomes of a piece -> what is written of it, and back


def as_it_is(made: Any) -> Any:
    return made


@dataclass(frozen=True)
class Crew:
    """Processes that divide a work: this one, and others that are forked for the time of it.

    Args:
        workers: how many, this one included.     notes: where it is said if that could not be.
        about: how such a sentence begins.        again: how it calls what was done again here.
    """

    task: LearningTask
    workers: int
    notes: Notes
    about: str = ""
    again: str = "trained"

    def hindered(self, jobs: int) -> bool:
        """Must this process work alone, as none can be forked? The notes then say so, for so many jobs."""
        obstacle = no_fork(self.task)
        if obstacle is not None:
            self._say(f"one process instead of {self.workers}: {obstacle}", jobs)
        return obstacle is not None

    def each(
        self, do: Do, sizes: Sequence[int], packed: Travel = as_it_is, unpacked: Travel = as_it_is
    ) -> list[Any]:
        """What ``do`` makes of every piece, in their order; they are drawn in that order too.

        Args:
            sizes: of every piece how many jobs it holds.
            packed, unpacked: what comes from another process goes through both; in between it is pickled.
        """
        done = self._spread(do, sizes, packed, unpacked)
        return [done[number] if number in done else do(number) for number in range(len(sizes))]

    def _spread(
        self, do: Do, sizes: Sequence[int], packed: Travel, unpacked: Travel
    ) -> dict[int, Any]:
        """What became of the pieces; what a process that died or failed has drawn is missing."""
        with tickets(len(sizes)) as queue, helpers() as workers:
            with undisturbed():
                try:
                    for _ in range(min(self.workers, len(sizes)) - 1):
                        workers.append(
                            started(queue, lambda file: self._serve(queue, do, packed, file))
                        )
                except OSError as error:
                    self._say(f"fewer than {self.workers} processes: {error.strerror}", sum(sizes))
            done = {number: do(number) for number in drawn(queue)}
            troubles = [self._collect(worker, done, unpacked) for worker in workers]
        undone = sum(size for number, size in enumerate(sizes) if number not in done)
        for trouble in {trouble for trouble in troubles if trouble and undone}:
            self._say(f"{trouble}; what it had begun was {self.again} again", undone)
        return done

    def _serve(self, queue: int, do: Do, packed: Travel, file: IO[bytes]) -> None:
        """What a forked process does: pieces, written down one by one, as long as somebody waits for them."""
        parent = os.getppid()
        self.notes.take()
        for number in drawn(queue):
            if os.getppid() != parent:
                return
            try:
                answer = packed(do(number)), None
            except Exception as error:
                answer = None, f"{type(error).__name__}: {error}".splitlines()[0]
            pickle.dump((number, *answer, self.notes.take()), file, protocol=5)
            file.flush()

    def _collect(self, worker: Worker, done: dict[int, Any], unpacked: Travel) -> str | None:
        """Adds to ``done`` what a process has made; returns what went wrong with it."""
        code = worker.wait()
        trouble = None if code == 0 else f"a process ended by {ending(code)}"
        worker.file.seek(0)
        with suppress(
            EOFError, pickle.UnpicklingError
        ):  # the end, or what a killed process could not finish
            while True:
                number, made, failure, notes = pickle.load(worker.file)
                self.notes.merge(notes)
                if failure is None:
                    done[number] = unpacked(made)
                else:
                    trouble = f"a process failed ({failure})"
        return trouble

    def _say(self, sentence: str, jobs: int) -> None:
        self.notes.add(self.about + sentence, jobs)


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


def started(queue: int, work: Callable[[IO[bytes]], None]) -> Worker:
    """A process that does ``work`` with a file in memory."""
    file = memory_file()
    return Worker(fork({queue, file.fileno()}, lambda: work(file)), file)


@contextmanager
def helpers() -> Iterator[list[Worker]]:
    """The forked processes of a work. Whatever happens, none outlives it."""
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
        return os.fdopen(os.memfd_create("made"), "w+b")
    return tempfile.TemporaryFile()
