"""One named random stream per (purpose, device, round).

Prefix stability: a vector of K values drawn at once from a (purpose, round) stream keeps its first
K values when a device is added at the end, as long as the draw is one of ``random``,
``standard_normal`` or ``standard_exponential`` with a size (row-major for (K, n)): these consume
the generator value by value.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

WORDS = np.dtype("<u8")  # a key is two of them


@dataclass(frozen=True)
class Seeds:
    """The source of all randomness of a run.

    A stream is a Philox generator keyed by a hash of its name, so that the same name gives the same
    numbers whatever else was drawn before, and a resumed run needs no generator state.

    Example:
        >>> a = Seeds(0).stream("fading", round=3).random(2)
        >>> b = Seeds(0).stream("fading", round=3).random(4)
        >>> bool((a == b[:2]).all())
        True
    """

    seed: int

    def stream(
        self, purpose: str, device: int | None = None, round: int | None = None
    ) -> np.random.Generator:
        """A fresh generator at the beginning of the stream of that name."""
        key: Any = Key(self._digest(purpose, device, round))
        return np.random.Generator(np.random.Philox(key))

    def _digest(self, purpose: str, device: int | None, round: int | None) -> bytes:
        """The hash of a name, 16 bytes: the key of its generator."""
        name = f"({self.seed}, {purpose!r}, {device}, {round})"
        return hashlib.blake2b(name.encode(), digest_size=16).digest()


class Key(ISeedSequence):
    """The key of a Philox generator.

    ``Philox(key=...)`` gives the same numbers, but first asks the system for randomness.
    """

    def __init__(self, digest: bytes) -> None:
        self._words = np.frombuffer(digest, WORDS)

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> np.ndarray:
        return self._words
