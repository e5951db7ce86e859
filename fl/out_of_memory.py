"""Recognise out-of-memory errors."""

from __future__ import annotations

MESSAGES = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "ALLOC_FAILED",
    "bad_alloc",
)  # parts of what torch says on a CPU, where it raises a RuntimeError


def is_out_of_memory(error: BaseException) -> bool:
    """Does an error say that memory could not be had?"""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(part in str(error) for part in MESSAGES)
