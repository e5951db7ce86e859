"""Rate laws R(b) ~ b eta(c / b): the spectral efficiency of link adaptation, made concave.

A share b of the band, in which noise is a density, has the signal-to-noise ratio g = c / b. What
link adaptation makes of g is no concave function (a staircase of modulation and coding schemes, or
nothing below a least g). Its least concave majorant eta through the origin is achieved exactly, by
giving one part of the band the power of one corner and the rest that of the next. Then R is concave
and increasing, and has kinks: R' = eta(g) - g eta'(g) is an interval there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from solvers.arrays import Array
from solvers.rates import share_for_factor

MOST_SNR = 1e300
ABOUT = 1.0 + 1e-12  # times the largest efficiency: reached but for rounding


class Segments(NamedTuple):
    """The pieces of a piecewise linear eta, in the order of rising shares b.

    On a piece R = u (a b + s c). The one at index 0 has no length and stands for no share.

    Args:
        first: b / c where each begins [I + 1].
        last: b / c where each ends [I + 1].
        per_root: a^-1/2 [I + 1].
        carried: R / (u c) where each but the first two begins [I - 1].
        full: R / (u c) at the end of the last.
        most: the largest eta, that of the narrowest shares.
        least: eta where the last ends.
    """

    first: Array
    last: Array
    per_root: Array
    carried: Array
    full: float
    most: float
    least: float


def segments(snr: Array, bits: Array, intercept: Array) -> Segments:
    """The pieces that end at ratios g [I], falling, where eta is ``bits`` [I], with a [I]."""
    with np.errstate(divide="ignore"):
        width = 1.0 / snr
    carried = bits * width
    return Segments(
        np.concatenate([[0.0, 0.0], width[:-1]]),
        np.concatenate([[0.0], width]),
        np.concatenate([[1.0], intercept**-0.5]),
        carried[:-1],
        float(carried[-1]),
        float(bits[0]),
        float(bits[-1]),
    )


@dataclass(frozen=True, eq=False)
class HullLaw:
    """The piecewise linear majorant of modulation and coding schemes.

    Args:
        snr: least signal-to-noise ratio of each scheme, linear, increasing [I].
        bits: its spectral efficiency, bit/s/Hz [I].

    Raises:
        ValueError: the points are not increasing and positive.

    Attributes:
        lines: slope and intercept of eta on every segment [I + 1]; the last is flat.
        segments: the same in the order of rising shares.
    """

    snr: Array
    bits: Array
    lines: tuple[Array, Array] = field(init=False, repr=False)
    segments: Segments = field(init=False, repr=False)
    _points: Array = field(init=False, repr=False)  # the corners from the origin on [2, I + 1]

    def __post_init__(self) -> None:
        snr = np.asarray(self.snr, dtype=float)
        bits = np.asarray(self.bits, dtype=float)
        if snr.ndim != 1 or snr.shape != bits.shape or not len(snr) or snr[0] <= 0 or bits[0] <= 0:
            raise ValueError("snr and bits of a hull are two lists of one length, above 0.")
        if (np.diff(snr) <= 0).any():
            raise ValueError("snr of a hull must increase from scheme to scheme.")
        kept = [0]
        corners = list(zip([0.0, *snr.tolist()], [0.0, *bits.tolist()], strict=True))
        for i in range(1, len(corners)):
            if corners[i][1] <= corners[kept[-1]][1]:
                continue  # no more bits for more power
            while len(kept) > 1 and _slope(corners, kept[-2], kept[-1]) <= _slope(
                corners, kept[-1], i
            ):
                kept.pop()
            kept.append(i)
        points = np.array([[corners[i][axis] for i in kept] for axis in (0, 1)])
        slope = np.append(np.diff(points[1]) / np.diff(points[0]), 0.0)
        intercept = np.append(0.0, points[1, 1:] - slope[1:] * points[0, 1:])
        vars(self).update(snr=points[0, 1:], bits=points[1, 1:])
        vars(self).update(lines=(slope, intercept), _points=points)
        # a narrow share has the largest ratio; beyond the first corner more band brings nothing
        pieces = segments(self.snr[::-1], self.bits[::-1], intercept[:0:-1])
        vars(self).update(segments=pieces)

    @property
    def least(self) -> float:
        """The first corner."""
        return float(self.snr[0])

    def efficiency(self, snr: Array) -> Array:
        bits: Array = np.interp(snr, *self._points)
        return bits

    def snr_for_bits(self, bits: Array) -> Array:
        g, e = self._points
        return np.where(bits <= e[-1] * ABOUT, np.interp(bits, e, g), np.inf)

    def tangents(self, snr: Array) -> tuple[Array, Array]:
        _, intercept = self.lines
        above = np.searchsorted(self.snr, snr, side="right")
        below = np.searchsorted(self.snr, snr, side="left")
        return intercept[above], intercept[below]

    def snr_for_ratio(self, ratio: Array) -> Array:
        slope, intercept = self.lines
        corner = self.bits / self.snr  # falling
        place = len(corner) - np.searchsorted(corner[::-1], ratio, side="left")
        with np.errstate(divide="ignore", invalid="ignore"):
            snr = intercept[place] / (ratio - slope[place])
        # on the first segment every g has the ratio: the largest is its corner
        whole = (place == 0) & (ratio <= corner[0] * (1.0 + 1e-15))
        return np.where(whole, self.snr[0], np.where(place == 0, 0.0, snr))


def _slope(corners: list[tuple[float, float]], i: int, j: int) -> float:
    return (corners[j][1] - corners[i][1]) / (corners[j][0] - corners[i][0])


@dataclass(frozen=True)
class CappedLaw:
    """alpha log2(1 + g), no more than at ``cap``, and nothing below ``least`` (TR 36.942, A.2).

    With cap = g_psd and alpha = 1 it is uplink power control: a narrow share is sent with the
    power density that the control asks for, a wide one with all power (TS 38.213, clause 7.1.1).
    A device with less than ``least`` uses a part of its share: eta is linear up to there.

    Args:
        alpha: attenuation, bit/s/Hz per log2.
        cap: largest g that is of use, linear; inf: none.
        least: least g with any rate, linear; 0: none.
    """

    alpha: float = 1.0
    cap: float = np.inf
    least: float = 0.0

    def __post_init__(self) -> None:
        if not (self.alpha > 0 and 0 <= self.least < self.cap):
            raise ValueError("a capped law needs alpha > 0 and 0 <= least < cap.")

    def efficiency(self, snr: Array) -> Array:
        snr = np.asarray(snr, dtype=float)
        bits: Array = self.alpha * np.log1p(np.minimum(snr, self.cap)) / np.log(2.0)
        if not self.least:
            return bits
        return np.where(snr < self.least, snr * (self._least_bits / self.least), bits)

    @property
    def _least_bits(self) -> float:
        return self.alpha * float(np.log2(1.0 + self.least))

    def snr_for_bits(self, bits: Array) -> Array:
        bits = np.asarray(bits, dtype=float)
        with np.errstate(over="ignore"):
            snr = np.expm1(bits * (np.log(2.0) / self.alpha))
        if self.least:
            snr = np.where(bits < self._least_bits, bits * (self.least / self._least_bits), snr)
        return np.where(snr <= self.cap * ABOUT, np.minimum(snr, self.cap), np.inf)

    def tangents(self, snr: Array) -> tuple[Array, Array]:
        inside = np.minimum(np.asarray(snr, dtype=float), min(self.cap, MOST_SNR))
        bent = self.alpha * (np.log1p(inside) - inside / (1.0 + inside)) / np.log(2.0)
        flat = float(self.efficiency(np.asarray(self.cap))) if self.cap < np.inf else np.inf
        left = np.where(snr >= self.cap, flat, np.where(snr < self.least, 0.0, bent))
        right = np.where(snr > self.cap, flat, np.where(snr <= self.least, 0.0, bent))
        return left, right

    def snr_for_ratio(self, ratio: Array) -> Array:
        ratio = np.asarray(ratio, dtype=float)
        # log(1 + x) = t x
        t = ratio * np.log(2.0) / self.alpha
        one = np.ones_like(t)
        with np.errstate(divide="ignore"):
            snr = 1.0 / share_for_factor(t / np.log(2.0), one)
            if self.cap < np.inf:
                top = float(self.efficiency(np.asarray(self.cap)))
                snr = np.where(ratio <= top / self.cap, top / ratio, snr)
        if not self.least:
            return np.where(t < 1.0, snr, 0.0)
        start = self._least_bits / self.least
        snr = np.where(ratio >= start * (1.0 - 1e-15), self.least, snr)
        return np.where(ratio <= start * (1.0 + 1e-15), snr, 0.0)
