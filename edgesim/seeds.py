"""One named random stream per (purpose, device, round).

Prefix stability: a vector of K values drawn at once from a (purpose, round) stream keeps its first K values when a
device is added at the end, as long as the draw is one of ``random``, ``standard_normal`` or ``standard_exponential``
with a size (row-major for (K, n)): these consume the generator value by value.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from struct import Struct
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

WORDS = Struct("<QQ")  # a key: two words
BEGINNING = {
    "bit_generator": "Philox",
    "buffer": (0, 0, 0, 0),
    "buffer_pos": 4,
    "has_uint32": 0,
    "uinteger": 0,
}


@dataclass(frozen=True)
class Seeds:
    """The source of all randomness of a run. What is drawn never depends on what was drawn before.

    A stream is a Philox generator keyed by a hash of its name, so that the same name gives the same numbers whatever
    else was drawn before, and a resumed run needs no generator state.

    Example:
        >>> a, b = Seeds(0).stream("fading", round=3).random(2), Seeds(0).stream("fading", round=3).random(4)
        >>> bool((a == b[:2]).all())
        True
    """

    seed: int

    def stream(
        self, purpose: str, device: int | None = None, round: int | None = None
    ) -> np.random.Generator:
        """A fresh generator at the beginning of the stream of that name."""
        return np.random.Generator(np.random.Philox(Key(self._digest(purpose, device, round))))

    def brief(
        self, purpose: str, device: int | None = None, round: int | None = None
    ) -> np.random.Generator:
        """The same stream at half the cost, in a generator that all calls share: good until the next one."""
        generator, beginning = self._shared
        beginning["state"]["key"] = WORDS.unpack(self._digest(purpose, device, round))
        generator.bit_generator.state = beginning
        return generator

    @cached_property
    def _shared(self) -> tuple[np.random.Generator, dict[str, Any]]:
        """A generator, and the state of one at the beginning of its stream, but for the key."""
        generator = np.random.Generator(np.random.Philox(Key(bytes(WORDS.size))))
        return generator, BEGINNING | {"state": {"counter": (0, 0, 0, 0)}}

    def _digest(self, purpose: str, device: int | None, round: int | None) -> bytes:
        """The hash of a name, 16 bytes: the key of its generator."""
        device, round = (
            None if device is None else int(device),
            None if round is None else int(round),
        )
        name = f"({int(self.seed)}, {purpose!r}, {device}, {round})"
        return hashlib.blake2b(name.encode(), digest_size=WORDS.size).digest()


class Key(ISeedSequence):
    """The key of a Philox generator: as ``Philox(key=...)``, which asks the system for randomness that goes unused."""

    def __init__(self, digest: bytes) -> None:
        self._words = np.frombuffer(digest, dtype="<u8").astype(np.uint64, copy=False)

    def generate_state(self, n_words: int, dtype: type = np.uint64) -> np.ndarray:
        return self._words
