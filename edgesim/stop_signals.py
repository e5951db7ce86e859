"""SIGINT, SIGTERM and SIGHUP end a command at once, whatever it does, with one sentence.

Every file of a run or a sweep is written so that a kill at any instant loses a round at most, so a
signal needs no unwinding: no library is asked to let an exception through. A thread waits for the
signals, because Python calls a signal handler only between two steps of the main thread, which may
be minutes apart while a solver or torch computes.

This module imports little: it is in charge before the libraries load.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # exit codes 130, 143 and 129
_NEW_LINE = "\x1b[?25h\n"  # with the cursor shown, which a progress bar hides

_cleanups: list[Callable[[], object]] = []
_ending = threading.Event()  # a signal ends the command, in its own thread
_starting = threading.Lock()  # held while a process starts
_LONGEST_START_S = 2.0


def install(sentence: str) -> None:
    """Take charge of the signals in this process.

    A signal that is ignored already stays ignored: ``nohup`` ignores SIGHUP, and a script that
    starts ``edgesim ... &`` without job control ignores SIGINT, so that Ctrl-C for the script does
    not end its background jobs.

    Args:
        sentence: what is printed, without the full stop; it begins with "interrupted".
    """
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    threading.Thread(
        target=_wait, args=(receiver, frozenset(numbers), sentence), daemon=True
    ).start()
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, _leave_to_the_thread)


def ignore() -> None:
    """Let the interpreter end: the work is done, and it would restore what the system does."""
    for name in NAMES:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


@contextmanager
def cleanup_on_stop(action: Callable[[], object]) -> Iterator[None]:
    """Call an action before a signal ends the command meanwhile."""
    _cleanups.append(action)
    try:
        yield
    finally:
        if _ending.is_set():
            # The action takes away what the block works on: its errors are not the user's, and the
            # exit code is that of the signal.
            threading.Event().wait()
        _cleanups.remove(action)


@contextmanager
def process_starts() -> Iterator[None]:
    """A signal ends the command only after this block, within which a process starts.

    A spawned process reads from a pipe what it is to do. If the command ended before it has written
    that, the process would print a traceback; nor is it among the children, which are ended, until
    it has been given all.
    """
    with _starting:
        yield


def _leave_to_the_thread(number: int, frame: FrameType | None) -> None:
    """A handler must be set, so that the system wakes the thread."""


def _wait(receiver: int, numbers: frozenset[int], sentence: str) -> None:
    while True:
        for number in os.read(receiver, 1):
            if number in numbers:  # others may have handlers of their own
                _end(number, sentence)


def _end(number: int, sentence: str) -> None:
    """Print the sentence, end the children, and exit."""
    _ending.set()
    try:
        with suppress(OSError):
            os.write(2, _text(number, sentence).encode("utf-8", "backslashreplace"))
        _starting.acquire(timeout=_LONGEST_START_S)  # for good: no other process starts
        if multiprocessing := sys.modules.get("multiprocessing"):
            for child in multiprocessing.active_children():
                with suppress(Exception):  # it may be on its way up or down
                    child.kill()
        for action in list(_cleanups):
            with suppress(Exception):
                action()
    finally:
        os._exit(128 + number)


def _text(number: int, sentence: str) -> str:
    """On a terminal on a line of its own, below a progress bar."""
    name = signal.Signals(number).name
    if name != "SIGINT":
        sentence = sentence.replace("interrupted", f"ended by {name}", 1)
    return f"{_NEW_LINE if os.isatty(2) else ''}{sentence}.\n"
