"""Short passes in two processes, byte for byte the same as in one.

A pass of a few milliseconds is over before a process is forked for it. So one is forked at the first such pass, and
stays: it waits for orders, asleep, and trains half of every pass that holds no functions (`orders`), which could not be
sent to it. Both write to memory that they share. An order that it has not begun when this process is done with its own
half is taken back, so that nobody waits for a process that other programs keep from its core. If it dies or fails, its
half is trained here, the notes say so, and the next pass has another one.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import select
import signal
import struct
import weakref
from collections.abc import Sequence
from contextlib import suppress
from math import ceil, inf
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor

from fl.contracts import Job, Phase, Trained
from fl.executors.orders import read, sendable, written
from fl.executors.processes import ending, fork, no_fork, one_thread, peeked, stopped, undisturbed
from fl.task import LearningTask

TICKET = struct.Struct("=Q")  # bytes of an order
PARTNER_PAYS_S = 0.002  # seconds of a pass: sharing it costs about 0.3 ms
THEIRS = 0.45  # of a pass: the other process has to wake, and to read and answer its order
LOOKS_UP_MS = 1000  # how often a process that waits asks whether its parent is still there
LINE = 64  # bytes: results begin at a multiple of them
LEAST_ROOM = 1 << 20  # bytes


class Paired:
    """Divides short passes between this process and one that stays.

    Args:
        inner: how both train their halves.
        least_s: a pass that takes about less than so many seconds is trained in this process alone.
    """

    def __init__(self, task: LearningTask, inner: Any, least_s: float = PARTNER_PAYS_S) -> None:
        self.task, self.inner, self.least_s = task, inner, least_s
        self.name, self.notes, self.pace = f"{inner.name}, 2 processes", inner.notes, inner.pace
        self.partner: Partner | None = None

    def run(self, jobs: Sequence[Job]) -> list[Trained]:
        count = len(jobs) - ceil(THEIRS * len(jobs))
        ours, theirs = jobs[:count], jobs[count:]
        with one_thread():
            if not (self._pays(jobs) and sendable(self.task, theirs)):
                return self.inner.run(jobs)
            try:
                return self._shared(jobs, ours, theirs)
            except BaseException:
                self.end()  # whatever it is about to answer
                raise

    def _shared(
        self, jobs: Sequence[Job], ours: Sequence[Job], theirs: Sequence[Job]
    ) -> list[Trained]:
        if not self._order(theirs):
            return self.inner.run(jobs)
        done = self.inner.run(ours)
        answered = self._answered(theirs)
        return done + (self.inner.run(theirs) if answered is None else answered)

    def end(self) -> None:
        """Ends the other process; the next pass will have another. Gives back what is kept here."""
        self.inner.end()
        if self.partner is not None:
            self.partner.end()
        self.partner = None

    def _pays(self, jobs: Sequence[Job]) -> bool:
        return (
            len(jobs) > 1
            and self.pace.seconds(self.task, jobs) >= self.least_s
            and no_fork(self.task) is None
        )

    def _order(self, jobs: Sequence[Job]) -> bool:
        """Orders jobs from the other process; forks it if there is none, or none with the memory for them. Done?"""
        order = written(jobs)
        room = begin_of_results(len(order)) + len(jobs) * jobs[0].phases[0].start.nbytes
        if self.partner is not None and (
            self.partner.room < room or self.partner.parent != os.getpid()
        ):
            self.end()
        if self.partner is None:
            self.task.train  # noqa: B018 (read before it is shared)
            try:
                self.partner = Partner(self.inner, max(2 * room, LEAST_ROOM))
            except OSError as error:
                self.notes.add(f"one process instead of 2: {error.strerror}", len(jobs))
                self.least_s = inf
                return False
        self.partner.order(order, len(jobs))
        return True

    def _answered(self, jobs: Sequence[Job]) -> list[Trained] | None:
        """What became of the jobs that were ordered; None: this process is to train them."""
        try:
            answer = self.partner.answer(jobs[0].phases[0].start)
        except Lost as trouble:
            self.end()
            self.notes.add(f"{trouble}; what it had begun was trained again", len(jobs))
            return None
        if answer is None:
            return None
        models, shown, notes = answer
        self.notes.merge(notes)
        return [
            Trained(w, mask_of(job.phases[0]), loss, accuracy)
            for job, w, (loss, accuracy) in zip(jobs, models, shown, strict=True)
        ]


def mask_of(phase: Phase) -> Tensor:
    """What a phase trains, bool [P]."""
    return phase.mask if phase.submodel is None else phase.mask & phase.submodel


# --- the other process -----------------------------------------------------------------------------------------------

Answer = tuple[
    Sequence[Tensor], list[tuple[float, float]], dict[str, int]
]  # models, loss and accuracy of each, notes


class Lost(Exception):
    """What was ordered will not come: why."""


class Partner:
    """A forked process that stays.     room: bytes of the memory that both write to."""

    def __init__(self, inner: Any, room: int) -> None:
        self.room, self.parent, self.memory = room, os.getpid(), mmap.mmap(-1, room)
        queue, self._orders = os.pipe()
        answers, answer = os.pipe()
        os.set_blocking(queue, False)  # for both: whoever comes first has the order
        self._queue, self._answers = queue, Connection(answers, writable=False)
        with undisturbed():
            self.pid = fork({queue, answer}, lambda: serve(inner, self.memory, queue, answer))
            self.end = weakref.finalize(
                self, ended, self.pid, self.parent, queue, self._orders, self._answers
            )
        os.close(answer)

    def order(self, order: bytes, jobs: int) -> None:
        self.memory[: len(order)] = order
        self._begin, self._jobs = begin_of_results(len(order)), jobs
        os.write(self._orders, TICKET.pack(len(order)))

    def answer(self, like: Tensor) -> Answer | None:
        """What was ordered, with models like that one; None where it was not begun, and now will not be.

        Raises:
            Lost: the process died, or failed.
        """
        if drawn(self._queue):
            if (code := peeked(self.pid, os.WNOHANG)) is not None:
                raise Lost(f"a process ended by {ending(code)}")
            return None
        try:
            said = pickle.loads(self._answers.recv_bytes())
        except (EOFError, OSError):  # nothing, or the beginning of an answer
            raise Lost(f"a process ended by {ending(peeked(self.pid) or 0)}") from None
        if isinstance(said, str):
            raise Lost(f"a process failed ({said})")
        return torch.unbind_copy(results(self.memory, self._begin, self._jobs, like)), *said


def serve(inner: Any, memory: mmap.mmap, queue: int, answer: int) -> None:
    """What the other process does: trains what is ordered, as long as there is somebody to order it."""
    parent, orders, answers = os.getppid(), select.poll(), Connection(answer, readable=False)
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # whether Ctrl-C ends the run is its parent's to say
    with suppress(
        AttributeError, OSError
    ):  # it takes no core from its parent, which else had better work alone
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    gc.freeze()  # else a collection would copy every page of the parent's
    inner.notes.take()
    inner.parted = torch.unbind  # without a copy, as what is trained is sent at once
    orders.register(queue, select.POLLIN)
    while os.getppid() == parent:
        if not orders.poll(LOOKS_UP_MS):
            continue
        try:
            ticket = drawn(queue)
        except EOFError:
            return
        if ticket is not None:
            answers.send_bytes(pickle.dumps(trained(inner, memory, ticket)))


def trained(inner: Any, memory: mmap.mmap, length: int) -> tuple | str:
    """Trains an order of that many bytes, puts the models behind it, and returns the rest of the answer."""
    try:
        jobs = read(memoryview(memory)[:length])
        done = inner.run(jobs)
        room = results(memory, begin_of_results(length), len(jobs), jobs[0].phases[0].start)
        torch.stack([one.w for one in done], out=room)
        return [(one.loss, one.accuracy) for one in done], inner.notes.take()
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]


def drawn(queue: int) -> int | None:
    """The length of the order that waits, which then is this process's own; None: there is none.

    Raises:
        EOFError: nobody is left to order anything.
    """
    with suppress(BlockingIOError):
        ticket = os.read(queue, TICKET.size)
        if not ticket:
            raise EOFError
        return TICKET.unpack(ticket)[0]
    return None


def begin_of_results(length: int) -> int:
    """Where results begin behind an order of that many bytes."""
    return -(-length // LINE) * LINE


def results(memory: mmap.mmap, begin: int, count: int, like: Tensor) -> Tensor:
    """The memory of so many models like that one [count, P]."""
    flat = torch.frombuffer(memory, dtype=like.dtype, count=count * like.numel(), offset=begin)
    return flat.view(count, like.numel())


def ended(pid: int, parent: int, queue: int, orders: int, answers: Connection) -> None:
    """Ends a process of this one; in a fork of this one, which has the same object, does nothing."""
    if os.getpid() != parent:
        return
    stopped(pid)
    os.close(queue)
    os.close(orders)
    answers.close()
