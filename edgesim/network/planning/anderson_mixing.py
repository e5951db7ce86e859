"""Anderson mixing, which settles turns of a plan that swing."""

from __future__ import annotations

import numpy as np

from fl.contracts import Array

# Turns that are combined; part of a change that is made; what counts as a direction of its own; and
# the largest factor of a turn.
DEPTH, PART, RANK, LARGEST = 5, 0.5, 1e-6, 4.0


class AndersonMixing:
    """Values of the next turn of an iteration, of the turns that it was asked for.

    Walker and Ni, SIAM J. Numer. Anal. 49 (2011), Algorithm AA, on logarithms: with x what a turn
    began with and f = F(x) - x, the next begins with x + beta f - (dX + beta dF) w, where w makes
    |f - dF w| least. Averages alone settle a swing of two sectors, but that of three hardly.
    """

    def __init__(self) -> None:
        self._turns: list[tuple[Array, Array]] = []

    def __call__(self, asked: Array, got: Array) -> Array:
        """What the next turn begins with [K].

        Args:
            asked: positive values that this turn began with [K].
            got: those that follow from it [K].
        """
        alive = (asked > 0.0) & (got > 0.0)
        x = np.log(np.where(alive, asked, 1.0))
        f = np.log(np.where(alive, got, 1.0)) - x
        self._turns = [*self._turns[-DEPTH:], (x, f)]
        dx, df = (np.diff(np.array(each), axis=0).T for each in zip(*self._turns, strict=True))
        step = PART * f
        if df.size:
            step = step - (dx + PART * df) @ np.linalg.lstsq(df, f, rcond=RANK)[0]
        most = np.log(LARGEST)
        return np.where(alive, np.exp(x + np.clip(step, -most, most)), got)
