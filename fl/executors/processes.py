"""Processes that are forked from this one: they have all that it has, data included, without a copy."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import torch

from fl.task import LearningTask

STOPPING = (signal.SIGINT, signal.SIGTERM)


def fork(kept: set[int], work: Callable[[], None]) -> int:
    """A process that does ``work`` and nothing else, its number; of all open files it keeps those in ``kept``."""
    pid = os.fork()
    if pid == 0:
        work_alone(kept, work)
    return pid


def work_alone(kept: set[int], work: Callable[[], None]) -> NoReturn:
    """The life of a forked process. It holds no file of its parent's open: a lock ends with the parent, not with it."""
    code = 1
    try:
        for number in STOPPING:
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        close_all_but({0, 1, 2} | kept)
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (open until the process ends)
        work()
        code = 0
    finally:
        os._exit(code)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C waits until every process that is forked meanwhile is known."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def close_all_but(kept: set[int]) -> None:
    for low, high in zip(sorted(kept), [*sorted(kept)[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
        os.closerange(low + 1, high)


def stopped(pid: int) -> None:
    """Ends a process of this one, unless it has ended: once somebody has waited for it, its number may be another's."""
    if peeked(pid, os.WNOHANG) is None:
        with suppress(ProcessLookupError):  # where ended children are not kept
            os.kill(pid, signal.SIGKILL)
    waited(pid)


def peeked(pid: int, options: int = 0) -> int | None:
    """The exit code of a process, or below 0 the signal that ended it; it stays to be waited for. None: it lives.

    0 where somebody else has waited for it, as in programs that ignore SIGCHLD.
    """
    try:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | options)
    except ChildProcessError:
        return 0
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def waited(pid: int) -> int:
    """Waits for the end of a process: its exit code, or below 0 the signal that ended it; 0 where somebody else did."""
    with suppress(ChildProcessError):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return 0


def ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread per process: a forked process has none of the others, and more would change the last bits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def no_fork(task: LearningTask) -> str | None:
    """Why this process cannot be forked; None where it can."""
    if task.device != "cpu":
        return f"{task.device} cannot be shared with a forked process"
    if not hasattr(os, "fork") or sys.platform == "darwin":
        return "this system cannot fork a process that computes"
    return None


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
