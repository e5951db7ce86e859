"""Frequency-selective fading: Clarke's waves, each with a delay of its own.

The scattered part at the time t and the frequency f is a(t, f) = M^-1/2 sum_m exp(j (2 pi f_D t
cos alpha_m + phi_m - 2 pi f t_m)) with delays t_m exponential with the mean tau, the delay spread.
Its correlation is J0(2 pi f_D dt) / (1 + j 2 pi df tau) exactly, for every M, and it has no period
in f. (Taps at equal distances repeat every 1 / distance.) The direct path has no delay.

The band is looked at in equal parts of at most four resource blocks, each at its centre.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from edgesim.network.fading.processes import ClarkeFading, rician_power
from fl.contracts import Array

WAVES = 24
BLOCKS_OF_A_PART, BLOCK_HZ = 4, 360e3  # 12 subcarriers of 30 kHz, where there is no grid


@dataclass(frozen=True, eq=False)
class SelectiveFading(ClarkeFading):
    """Clarke's fading in several parts of the band.

    Args:
        delay_spread_s: tau [K], or one for all, s.
        bandwidth_hz: of the band, Hz.
        parts: R, in which the band is looked at.
    """

    delay_spread_s: Any = 0.0
    bandwidth_hz: float = 0.0
    parts: int = 1

    def over(self, bandwidth_hz: float) -> SelectiveFading:
        """The same fading over a band with the same middle, in parts no wider than these, Hz."""
        parts = max(math.ceil(self.parts * bandwidth_hz / self.bandwidth_hz - 1e-9), 1)
        return replace(self, bandwidth_hz=bandwidth_hz, parts=parts)

    @cached_property
    def _waves(self) -> tuple[Array, Array]:
        """cos alpha and phi [K, M + 1], the direct path last."""
        angle, phase = np.split(2.0 * math.pi * self._drawn[:, : 2 * WAVES + 2], 2, axis=1)
        return np.cos(angle), phase

    @cached_property
    def _drawn(self) -> Array:
        """Uniform numbers of each device: angles, phases and delays [K, 3 M + 2]."""
        return self.streams.stream("selective").random((self.devices, 3 * WAVES + 2))

    @cached_property
    def _turns(self) -> tuple[Array, Array]:
        """By what the waves turn up to the first part, and from part to part [K, M], complex."""
        spread_s = np.broadcast_to(self.delay_spread_s, self.devices)[:, None]
        delay_s = -spread_s * np.log1p(-self._drawn[:, 2 * WAVES + 2 :])
        width_hz = self.bandwidth_hz / self.parts
        first_hz = 0.5 * (width_hz - self.bandwidth_hz)
        turn = -2.0j * math.pi * delay_s
        return np.exp(turn * first_hz), np.exp(turn * width_hz)

    def scattered(self, time_s: float) -> Array:
        """a(t, f) in the middle of each part [K, R], complex, of power 1."""
        first, step = self._turns
        waves = self._rotated(time_s)[:, :WAVES] * first
        parts = np.empty((self.devices, self.parts), dtype=complex)
        for r in range(self.parts):
            waves = waves if r == 0 else waves * step
            parts[:, r] = waves.sum(axis=1)
        return parts / math.sqrt(WAVES)

    def powers(self, n: int, k_factor: Any = None, devices: Any = slice(None)) -> Array:
        """|h|^2 of each part in step n [..., R], mean 1.

        Args:
            n: number of the step.
            k_factor: those of this instant [K]; None: those of the whole run.
            devices: numbers, an array or one.
        """
        k_factor = self.k_factor if k_factor is None else k_factor
        k_factor = np.broadcast_to(k_factor, self.devices)[devices]
        direct, scattered = (each[devices] for each in self._at_step(n))
        return rician_power(k_factor[..., None], direct, scattered)

    @cached_property
    def _at_step(self) -> Callable[[int], tuple[Array, Array]]:
        """Direct path [K, 1] and scattered part [K, R] in a step, which every device asks for."""

        def parts(n: int) -> tuple[Array, Array]:
            time_s = n * self.step_s
            return self._rotated(time_s)[:, WAVES:], self.scattered(time_s)

        return lru_cache(maxsize=2)(parts)

    def power(self, n: int, k_factor: Any = None) -> Array:
        """The mean of `powers` over the band [K]."""
        return self.powers(n, k_factor).mean(axis=1)

    def amplitudes(self, n: int, delay_s: float = 0.0, rician: bool = False) -> tuple[Array, Array]:
        """Those of `ClarkeFading` have no frequency: use `powers`."""
        raise NotImplementedError("a fade of the whole band has an amplitude in each part")

    def blocks_in(self, seconds: Array, devices: Any = slice(None)) -> Array:
        """Independent powers whose mean varies as much as that over the band and so many seconds.

        The correlation is a product of one in time and one in frequency, and so is the variance.
        """
        in_time = np.maximum(2.0 * seconds * self.doppler_hz, 1.0)
        spread_s = np.broadcast_to(self.delay_spread_s, self.devices)[devices]
        return np.floor(in_time * fades_in_band(self.bandwidth_hz, spread_s))


def fades_in_band(bandwidth_hz: float, delay_spread_s: Any) -> Any:
    """Independent powers whose mean varies as much as that over a band.

    The mean over B of a power with the squared correlation 1 / (1 + (2 pi df tau)^2) has the part
    2 / x^2 (x atan x - ln(1 + x^2) / 2) of its variance, x = 2 pi B tau.
    """
    # below 1e-3 the difference of the two terms is rounding
    x = np.maximum(2.0 * math.pi * bandwidth_hz * np.asarray(delay_spread_s), 1e-3)
    found = 0.5 * x**2 / (x * np.arctan(x) - 0.5 * np.log1p(x**2))
    return np.where(x > 1e-3, found, 1.0)


def effective_snr(snr: Any, relative: Array) -> Array:
    """The ratio with which a flat channel would carry as much, shape of ``snr``.

    By mutual information: 2^mean(log2(1 + g_r)) - 1 over the parts r.

    Args:
        snr: g, mean over the parts, linear, any shape.
        relative: power of each part over the mean [..., R].
    """
    bits: Array = np.log1p(np.asarray(snr)[..., None] * relative).mean(axis=-1)
    return np.expm1(bits)


def parts_of(bandwidth_hz: float, resource_blocks: float | None) -> int:
    """R: in how many parts a band is looked at.

    Args:
        bandwidth_hz: of the band, Hz.
        resource_blocks: of its grid in it; None: there is none, and blocks have 360 kHz.
    """
    blocks = bandwidth_hz / BLOCK_HZ if resource_blocks is None else resource_blocks
    return max(math.ceil(blocks / BLOCKS_OF_A_PART - 1e-9), 1)
