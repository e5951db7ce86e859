"""Interference as the sectors have measured it in the last round."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fl.contracts import Array

NAME = "measured_interference"  # in a checkpoint


class MeasuredInterference:
    """Mean density at each sector over the time in which somebody sends to it.

    Args:
        sectors: S.
    """

    def __init__(self, sectors: int) -> None:
        self._before = np.full(sectors, np.nan)  # of the round before a checkpoint
        self._sum, self._time_s = np.zeros(sectors), np.zeros(sectors)
        self._density, self._served = np.zeros(sectors), np.zeros(sectors, dtype=bool)
        self._since_s = 0.0

    def begin_round(self, now_s: float) -> None:
        """Measure anew from now on."""
        self._before[:] = np.nan
        self._sum[:] = self._time_s[:] = 0.0
        self._since_s = now_s

    def change(self, density: Array, served: Array, now_s: float) -> None:
        """The interference is another from now on.

        Args:
            density: at each sector [S], W/Hz.
            served: whether somebody sends to it, bool [S].
            now_s: simulated time, s.
        """
        self._sum, self._time_s = self._until(now_s)
        self._density, self._served, self._since_s = density, served, now_s

    def _until(self, now_s: float) -> tuple[Array, Array]:
        """(integral of the density, J/Hz; time in which it was met, s) of this round [S]."""
        spent_s = np.where(self._served, now_s - self._since_s, 0.0)
        return self._sum + self._density * spent_s, self._time_s + spent_s

    def mean(self, now_s: float) -> Array:
        """Since the round has begun [S], W/Hz; nan: nobody has sent there."""
        total, time_s = self._until(now_s)
        return np.divide(total, time_s, out=self._before.copy(), where=time_s > 0.0)

    def arrays(self, now_s: float) -> dict[str, Array]:
        """What a checkpoint at the end of a round must know, by name."""
        return {NAME: self.mean(now_s)}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Take the means that `arrays` gave.

        Raises:
            KeyError, ValueError: there are none, or of another number of sectors.
        """
        self._before = np.array(arrays[NAME], dtype=float).reshape(self._before.shape)
