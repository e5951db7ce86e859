"""One named random stream per (purpose, device, round).

Prefix stability: a vector of K values drawn at once from a (purpose, round) stream keeps its first K values when a
device is added at the end, as long as the draw is one of ``random``, ``standard_normal`` or ``standard_exponential``
with a size (row-major for (K, n)): these consume the generator value by value.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Seeds:
    """The source of all randomness of a run. Nothing is ever drawn from a shared generator.

    A stream is a Philox generator keyed by a hash of its name, so that the same name gives the same numbers whatever
    else was drawn before, and a resumed run needs no generator state.

    Example:
        >>> a, b = Seeds(0).stream("fading", round=3).random(2), Seeds(0).stream("fading", round=3).random(4)
        >>> bool((a == b[:2]).all())
        True
    """

    seed: int

    def stream(self, purpose: str, device: int | None = None, round: int | None = None) -> np.random.Generator:
        """A fresh generator at the beginning of the stream of that name."""
        name = (int(self.seed), purpose, *(None if part is None else int(part) for part in (device, round)))
        key = hashlib.blake2b(repr(name).encode(), digest_size=16).digest()
        return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
