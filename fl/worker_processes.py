"""What processes that are started as workers inherit: their environment, and blocked signals."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.resource_tracker import ensure_running

QUIET_TRACKER = "ignore:resource_tracker"  # an option of Python for processes that are started
# Libraries compute with one thread, and the working folder is no place of modules: a file select.py
# there would hide that of Python until a process has been given the path of this one.
ENVIRONMENT = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONSAFEPATH"), "1"
)


@contextmanager
def worker_environment() -> Iterator[None]:
    """Processes that are started meanwhile inherit `ENVIRONMENT`."""
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@contextmanager
def terminal_signals_blocked() -> Iterator[None]:
    """Threads and processes that are started meanwhile never get SIGINT and SIGHUP.

    A terminal sends them to every process of a command, which ends its workers by itself; a worker
    that still loads its libraries would print a traceback, and a tracker that SIGHUP ends before
    the command would be started anew, with a warning.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not Unix
        yield
        return
    # A command that a signal ends leaves semaphores to the tracker, which removes them.
    if QUIET_TRACKER not in sys.warnoptions:
        sys.warnoptions.append(QUIET_TRACKER)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        ensure_running()  # the first process would start the tracker, which unblocks SIGINT
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
