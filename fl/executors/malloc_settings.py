"""Settings of the C library's allocator: memory that one training step frees stays for the next.

The GNU C library gives large pieces back to the system at once. The same pages, cleared and mapped
anew, took 14 % of the time of `liu-cnn` at batch 20. No result depends on it.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # names of the settings in malloc.h
KEPT_BYTES = 1 << 30  # freed memory that stays at most
AHEAD_BYTES = 64 << 20  # asked of the system at a time
LARGEST_BYTES = 32 << 20  # of a piece that stays; glibc takes no larger number


def keep_freed_memory() -> None:
    """Applies the settings to this process; another C library than GNU's is left as it is."""
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MMAP_THRESHOLD, LARGEST_BYTES)
        mallopt(TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(TOP_PAD, AHEAD_BYTES)
