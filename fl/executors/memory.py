"""Memory that one training step frees and the next one asks for again stays with the process.

The C library gives large pieces back to the system at once; the same pages, cleared and mapped anew in every step, cost
a tenth of the time of a step of `liu-cnn` at batch 128. No result depends on it.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # malloc.h of the GNU C library
KEPT, AHEAD, LARGEST = (
    1 << 30,
    64 << 20,
    32 << 20,
)  # bytes: kept at most, asked for at a time, the largest such piece


def keep_freed_memory() -> None:
    """Asks the C library to do so; another library than the GNU one is left as it is."""
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option, size in ((MMAP_THRESHOLD, LARGEST), (TRIM_THRESHOLD, KEPT), (TOP_PAD, AHEAD)):
            mallopt(option, size)
