"""Fading of the links over which devices disturb other sectors: independent blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from edgesim.network.fading.processes import rician_power
from fl.contracts import Array, Streams


@dataclass(frozen=True, eq=False)
class CrossLinkFading:
    """Powers of the links of K devices to S sectors, redrawn for every block.

    Each sector has a stream of its own: a further sector or device changes nobody's draws.

    Args:
        streams: random streams of the run.
        k_factor: K factors, linear, 0 without a direct path [K, S].
    """

    streams: Streams
    k_factor: Array

    @cached_property
    def powers(self) -> Callable[[int], Array]:
        """|h|^2 in block n [K, S], mean 1; every event in a block asks for them."""
        return lru_cache(maxsize=2)(self._drawn)

    def _drawn(self, n: int) -> Array:
        devices, sectors = self.k_factor.shape
        rician = bool(np.any(self.k_factor))
        powers = np.empty((sectors, devices))
        for s in range(sectors):
            stream = self.streams.stream("fading-cross", device=s, round=n)
            if not rician:
                powers[s] = stream.standard_exponential(devices)
                continue
            normal = stream.standard_normal((devices, 2)) / math.sqrt(2.0)
            scattered = normal[:, 0] + 1j * normal[:, 1]
            powers[s] = rician_power(self.k_factor[:, s], 1.0, scattered)
        return powers.T
