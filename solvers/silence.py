"""Nothing on the standard output while C code runs that prints there whatever it is asked.

HiGHS as scipy 1.17 has it prints a line of its debugging from time to time (ERGO-Code/HiGHS, issue 2783).
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

OUTPUT = 1  # the file descriptor


@contextmanager
def silence() -> Iterator[None]:
    """What the process writes to its standard output meanwhile is lost; what was written before is not."""
    _flush()
    try:
        kept = os.dup(OUTPUT)
    except OSError:  # there is none
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, OUTPUT)
        yield
    finally:
        _flush()
        os.dup2(kept, OUTPUT)
        os.close(kept)
        os.close(nowhere)


def _flush() -> None:
    """Write out what Python and the C library still hold."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
