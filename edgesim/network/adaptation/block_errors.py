"""Block errors, and hybrid automatic repeat requests (HARQ) that combine what arrived.

A block at the signal-to-noise ratio g is lost with the probability P(g), a logistic curve in
decibels. Chase combining adds up the energy of what was sent: after i transmissions the block is
lost with P(i g). With at most M transmissions a block takes E[T] = sum_{i < M} P_i of them (P_0 =
1), and the goodput is SE (1 - P_M) / E[T], by renewal and reward. What is lost after M is sent
again by the layer above, which the factor 1 - P_M pays for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fl.contracts import Array

CURVE_DB = 0.10  # w of a code block of 2000 bit: link simulations of the LDPC codes of NR
AT_10_PERCENT = np.log(9.0)  # (g10 - g50) / w of a logistic curve
CHOICE_DB, REACH_DB = 0.01, 20.0  # of the table of best schemes
STEP_DB, LEAST_BITS = 0.05, 1e-6  # of the points of a goodput curve; below it counts as none


def block_error(snr_db: Any, half_db: Any, width_db: float = CURVE_DB) -> Array:
    """P(g): probability that a block is lost.

    Args:
        snr_db: g, dB, any shape.
        half_db: g50 at which half of the blocks are lost, dB, same shape.
        width_db: w of the curve 1 / (1 + exp((g - g50) / w)), dB.
    """
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp((np.asarray(snr_db) - half_db) / width_db))


@dataclass(frozen=True)
class Harq:
    """Repetitions of a block.

    Args:
        most: M, transmissions of a block at most.
        combines: the energy of all transmissions is combined (chase); else each stands alone.
        width_db: of the curve of block errors, dB.
    """

    most: int = 4
    combines: bool = True
    width_db: float = CURVE_DB

    def lost(self, snr_db: Any, half_db: Any) -> Array:
        """P_1 to P_M: probability of being lost after so many transmissions [M, ...]."""
        above_db = np.asarray(snr_db, dtype=float) - half_db
        count = np.arange(1.0, self.most + 1.0).reshape(-1, *([1] * above_db.ndim))
        if self.combines:
            return block_error(above_db + 10.0 * np.log10(count), 0.0, self.width_db)
        return block_error(above_db, 0.0, self.width_db) ** count

    def transmissions(self, lost: Array) -> tuple[Array, Array]:
        """(E[T], Var[T]) of the number of transmissions of a block, from P_1 to P_M [M, ...]."""
        before = np.concatenate([np.ones((1, *lost.shape[1:])), lost[:-1]])
        odd = 2.0 * np.arange(self.most).reshape(-1, *([1] * (lost.ndim - 1))) + 1.0
        mean, square = before.sum(axis=0), (odd * before).sum(axis=0)
        return mean, square - mean**2

    def goodput(self, snr_db: Any, half_db: Any, bits: Any) -> Array:
        """SE (1 - P_M) / E[T], bit/s/Hz, of a scheme of the efficiency SE."""
        lost = self.lost(snr_db, half_db)
        return np.asarray(bits) * (1.0 - lost[-1]) / self.transmissions(lost)[0]


@dataclass(frozen=True, eq=False)
class RepeatedSchemes:
    """The goodput of modulation and coding schemes with repetitions.

    Args:
        snr: ratio of each scheme at which a tenth of the blocks is lost, linear [I].
        bits: SE, bit/s/Hz [I].
        harq: how blocks are repeated.
    """

    snr: Array
    bits: Array
    harq: Harq

    @cached_property
    def half_db(self) -> Array:
        """g50 of each scheme, dB [I]."""
        return 10.0 * np.log10(self.snr) - AT_10_PERCENT * self.harq.width_db

    def best(self, snr_db: float) -> int:
        """The scheme of the largest goodput (not one of a given share of errors)."""
        return int(np.argmax(self.harq.goodput(snr_db, self.half_db, self.bits)))

    def goodput(self, snr: Any, known_snr: Any = None) -> Array:
        """Goodput at ratios, linear, bit/s/Hz, of the schemes that are best there.

        Args:
            snr: signal-to-noise ratios, any shape.
            known_snr: those by which schemes are chosen, same shape; None: the true ones.
        """
        with np.errstate(divide="ignore"):
            snr_db = 10.0 * np.log10(np.asarray(snr, dtype=float))
            known_db = (
                10.0 * np.log10(np.asarray(known_snr, dtype=float))
                if known_snr is not None
                else snr_db
            )
        best = self.harq.goodput(known_db[..., None], self.half_db, self.bits).argmax(axis=-1)
        return self.harq.goodput(snr_db, self.half_db[best], self.bits[best])

    @cached_property
    def _chosen(self) -> tuple[Array, Array]:
        """Ratios, dB, and the best scheme at each, int [N]."""
        start_db, end_db = self.half_db.min() - REACH_DB, self.half_db.max() + REACH_DB
        snr_db = np.arange(start_db, end_db, CHOICE_DB)
        return snr_db, self.harq.goodput(snr_db[:, None], self.half_db, self.bits).argmax(axis=1)

    def quick_goodput(self, snr: Array, known_snr: Array) -> Array:
        """`goodput` with schemes that are chosen to 0.01 dB, for many ratios."""
        with np.errstate(divide="ignore"):
            snr_db, known_db = 10.0 * np.log10(snr), 10.0 * np.log10(known_snr)
        grid_db, chosen = self._chosen
        place = np.clip((known_db - grid_db[0]) / CHOICE_DB + 0.5, 0, len(grid_db) - 1)
        best = chosen[place.astype(int)]
        return self.harq.goodput(snr_db, self.half_db[best], self.bits[best])

    def mean_transmissions(self, snr: float, known_snr: float) -> float:
        """E[T] at a ratio, of the scheme that is chosen at the one that is known, linear."""
        if not (snr > 0.0 and known_snr > 0.0):
            return np.nan
        snr_db, known_db = 10.0 * np.log10(snr), 10.0 * np.log10(known_snr)
        lost = self.harq.lost(snr_db, self.half_db[self.best(known_db)])
        return float(self.harq.transmissions(lost)[0])

    def curve(self) -> tuple[Array, Array]:
        """Ratios, linear, and the largest goodput there, bit/s/Hz [N]."""
        reach_db = 10.0 * np.log10(self.harq.most) if self.harq.combines else 0.0
        start, end = self.half_db.min() - reach_db - 1.0, self.half_db.max() + 3.0
        snr_db = np.arange(start, end, STEP_DB)
        each = self.harq.goodput(snr_db[:, None], self.half_db[None, :], self.bits)
        goodput = each.max(axis=1)
        kept = goodput > LEAST_BITS
        return 10.0 ** (snr_db[kept] / 10.0), goodput[kept]
