"""How much memory this process has needed."""

from __future__ import annotations

import sys


def peak_bytes() -> int | None:
    """The most memory that this process held at a time, plus the most that an ended helper of it held; None: unknown.

    What a helper shares with this process is counted twice.
    """
    try:
        import resource
    except ImportError:  # not Unix
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * sum(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
