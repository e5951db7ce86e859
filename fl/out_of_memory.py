"""How a full memory is told."""

from __future__ import annotations

NO_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "ALLOC_FAILED",
    "bad_alloc",
)  # torch says


def is_full(error: BaseException) -> bool:
    """Did something get no memory? On a CPU torch says so in words only."""
    known = (
        isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    )  # torch's own
    return known or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY)
    )
