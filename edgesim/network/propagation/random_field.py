"""Gaussian random fields over the plane: shadowing, K factor and line of sight by position.

A field is a sum of plane waves, Z(x) = sqrt(2 / N) sum_n cos(k_n x + phi_n), whose directions and
phases are uniform. With the radial wavenumber k = sqrt((1 - u)^-2 - 1) / d, u uniform, its
correlation is exactly that of Gudmundson, Electronics Letters 1991, exp(-|r| / d) (TR 38.901,
eq. (7.4-5)), for every N, and its distribution is close to normal (kurtosis 3 - 1.5 / N). The
field is a pure function of seed, name and position: devices at one place agree, a device that comes
back finds the same shadow, and a resumed run needs no state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fl.contracts import Array, Streams

WAVES = 128
CHUNK = 256  # positions that are evaluated at once: what stays in a cache


@dataclass(frozen=True, eq=False)
class RandomField:
    """A standard normal field with exponential correlation.

    Args:
        streams: random streams of the run.
        name: of the field, such as field/sf/los.
        site: number of the base station that the field belongs to.
        decorrelation_m: d, distance at which the correlation is 1 / e, m.
    """

    streams: Streams
    name: str
    site: int
    decorrelation_m: float

    @cached_property
    def _waves(self) -> tuple[Array, Array]:
        """Wave vectors [2, N], 1/m, and phases [N]."""
        uniform = self.streams.stream(self.name, device=self.site).random((3, WAVES))
        wavenumber = np.sqrt((1.0 - uniform[0]) ** -2 - 1.0) / self.decorrelation_m
        angle = 2.0 * np.pi * uniform[1]
        vectors = wavenumber * np.stack([np.cos(angle), np.sin(angle)])
        return vectors, 2.0 * np.pi * uniform[2]

    def at(self, position_m: Array) -> Array:
        """Z [K] at positions [K, 2], m."""
        vectors, phases = self._waves
        values = np.empty(len(position_m))
        for first in range(0, len(position_m), CHUNK):
            here = slice(first, first + CHUNK)
            x, y = position_m[here, 0], position_m[here, 1]
            # not a matrix product: its sums depend on how many positions there are
            argument = x[:, None] * vectors[0]
            argument += y[:, None] * vectors[1]
            argument += phases
            np.cos(argument, out=argument).sum(axis=1, out=values[here])
        return np.sqrt(2.0 / WAVES) * values
