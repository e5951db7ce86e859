"""Fading of the links over which devices disturb other sectors: independent blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from edgesim.network.fading.processes import rician_power
from fl.contracts import Array, Streams
from fl.repeated_call import RepeatedCall


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
    _last: RepeatedCall[Array] = field(default_factory=RepeatedCall, init=False, repr=False)

    def powers(self, n: int, k_factor: Array | None = None) -> Array:
        """|h|^2 in block n [K, S], mean 1; every event in a block asks for them.

        Args:
            n: number of the block.
            k_factor: those of this instant [K, S]; None: those of the whole run. The draws are
                the same whatever they are, also where none is more than 0.
        """
        rician = k_factor is not None or bool(np.any(self.k_factor))
        k_factor = self.k_factor if k_factor is None else k_factor
        return self._last((n, rician, k_factor), lambda: self._drawn(n, rician, k_factor))

    def _drawn(self, n: int, rician: bool, k_factor: Array) -> Array:
        devices, sectors = k_factor.shape
        powers = np.empty((sectors, devices))
        for s in range(sectors):
            stream = self.streams.stream("fading-cross", device=s, round=n)
            if not rician:
                powers[s] = stream.standard_exponential(devices)
                continue
            normal = stream.standard_normal((devices, 2)) / math.sqrt(2.0)
            scattered = normal[:, 0] + 1j * normal[:, 1]
            powers[s] = rician_power(k_factor[:, s], 1.0, scattered)
        return powers.T
