"""What is known of the fading when blocks are sent: it is old, and estimated from noisy pilots.

The estimate of the scattered part a is rho a + sqrt(1 - rho^2) w with w complex normal. Clarke's
waves are known as they were `delay_s` ago; block fading has the correlation J0(2 pi f_D tau) with
it. n pilots at the ratio g give rho_e^2 = n g / (1 + n g). The direct path is known. The scheme of
the largest goodput at the estimate is sent, and its blocks are lost as the true ratio says. Plans
for a mean or a quantile count with that goodput, over the fading and its estimates together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy  # its parts are loaded on first use

from edgesim.network.adaptation.block_errors import RepeatedSchemes
from edgesim.network.fading.processes import ClarkeFading, Fading, rician_power
from fl.contracts import Array, Streams

POINTS = 1 << 14  # of the distribution of what a block carries


def delay_correlation(doppler_hz: float, delay_s: float) -> float:
    """J0(2 pi f_D tau): Clarke, Bell System Technical Journal 1968."""
    return float(scipy.special.j0(2.0 * math.pi * doppler_hz * delay_s))


def pilot_correlation(snr: Any, pilots: float) -> Array:
    """sqrt(n g / (1 + n g)) of an estimate from n pilots at the ratio g, shape of ``snr``."""
    energy = pilots * np.asarray(snr, dtype=float)
    correlation: Array = np.sqrt(energy / (1.0 + energy))
    return correlation


@dataclass(frozen=True, eq=False)
class EstimatedBlocks:
    """What blocks carry whose schemes are chosen by estimates, over the fading and the estimates.

    Args:
        schemes: and how their blocks are repeated.
        delay: correlation of the fading with itself as old as the estimate is.
        pilots: n, of each estimate.
    """

    schemes: RepeatedSchemes
    delay: float
    pilots: float

    def efficiencies(self, snr: float, k_factor: float) -> Array:
        """Goodput of equally likely blocks [POINTS] at a mean ratio, linear, bit/s/Hz."""
        scattered, noise = evenly_spread()
        rho = pilot_correlation(snr, self.pilots) * self.delay
        seen = rho * scattered + np.sqrt(1.0 - rho**2) * noise
        power, known = (rician_power(k_factor, 1.0, each) for each in (scattered, seen))
        return self.schemes.quick_goodput(snr * power, snr * known)


@lru_cache(maxsize=1)
def evenly_spread() -> tuple[Array, Array]:
    """Two independent complex normal amplitudes of power 1, as POINTS of a Kronecker sequence.

    Four coordinates with the powers of 1 / x, x^5 = x + 1, as steps (the golden ratio of four
    dimensions): their means converge faster than those of random numbers, and never change.
    """
    ratio = 1.1673039782614187
    steps = ratio ** -np.arange(1.0, 5.0)
    u = (0.5 + np.arange(1.0, POINTS + 1.0)[:, None] * steps) % 1.0
    amplitude = np.sqrt(-np.log1p(-u[:, :2])) * np.exp(2j * math.pi * u[:, 2:])
    return amplitude[:, 0], amplitude[:, 1]


@dataclass(frozen=True, eq=False)
class ChannelEstimate:
    """Estimates of the fading of all devices.

    Args:
        fading: as it is.
        streams: random streams of the run.
        schemes: that are chosen by the estimate, and how their blocks are repeated.
        delay_s: age of the estimate, s.
        pilots: n, of each estimate.
    """

    fading: Fading
    streams: Streams
    schemes: RepeatedSchemes
    delay_s: float
    pilots: float

    @cached_property
    def _parts(self) -> Callable[[int, bool], tuple[Array, Array, Array]]:
        """`_parts_of`, for which every device asks that sends in a block."""
        return lru_cache(maxsize=2)(self._parts_of)

    def power(self, n: int, snr: Any, devices: Any, k_factor: Any = None) -> Any:
        """|h|^2 as it is known in step n, mean 1, shape of ``devices``.

        Args:
            n: number of the step.
            snr: mean signal-to-noise ratio of the pilots, shape of ``devices``.
            devices: numbers, an array or one.
            k_factor: K factors of this instant, shape of ``devices``; None: of the whole run.
        """
        direct, scattered, noise = self._parts(n, k_factor is not None)
        if k_factor is None:
            everybody = np.broadcast_to(self.fading.k_factor, self.fading.devices)
            k_factor = everybody[devices]
        rho = pilot_correlation(snr, self.pilots) * self._delay
        known = rho * scattered[devices] + np.sqrt(1.0 - rho**2) * noise[devices]
        return rician_power(k_factor, direct[devices], known)

    def efficiency(self, snr: Any, known_snr: Any) -> Array:
        """Goodput at the ratio ``snr``, bit/s/Hz, of the scheme chosen at ``known_snr``."""
        return self.schemes.goodput(snr, known_snr)

    @cached_property
    def blocks(self) -> EstimatedBlocks:
        """The distribution that plans count with."""
        delay = delay_correlation(self.fading.doppler_hz, self.delay_s)
        return EstimatedBlocks(self.schemes, delay, self.pilots)

    @property
    def _delay(self) -> float:
        """Correlation of the delay, where it is not played itself."""
        if isinstance(self.fading, ClarkeFading):
            return 1.0
        return delay_correlation(self.fading.doppler_hz, self.delay_s)

    def _parts_of(self, n: int, rician: bool) -> tuple[Array, Array, Array]:
        """Direct path, scattered part and noise of all devices [K], complex."""
        normal = self.streams.stream("csi", round=n).standard_normal((self.fading.devices, 2))
        noise = (normal[:, 0] + 1j * normal[:, 1]) / math.sqrt(2.0)
        return *self.fading.amplitudes(n, self.delay_s, rician), noise
