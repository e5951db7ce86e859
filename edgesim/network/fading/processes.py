"""Small-scale fading over time: independent blocks, and Clarke's sum of waves.

The power of a device at an instant is a pure function of (seed, device, instant): a resumed run
needs no state, and no device's fading depends on who else is in the cell. It is held for a step of
time, and the steps begin at multiples of their length from the start of the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from edgesim.network.fading.power_distribution import RAYLEIGH
from edgesim.network.propagation.tr38901_path_loss import LIGHT_M_S
from fl.contracts import Array, Streams

COHERENCE_RULE = 9.0 / (16.0 * math.pi)  # T_c f_D: Rappaport, Wireless Communications, eq. (5.40.b)
WAVES = 16  # of Clarke's model
STEP_RULE = 0.05  # length of a step times f_D, after which the correlation is J0(0.314) = 0.976
STALE_RULE = 0.1  # J0 is below 0.9 after this over f_D


def doppler_hz(speed_m_per_s: float, carrier_hz: float) -> float:
    """Largest Doppler shift f_D = v f / c, Hz."""
    return speed_m_per_s * carrier_hz / LIGHT_M_S


@dataclass(frozen=True, eq=False)
class BlockFading:
    """Powers that are redrawn for every block: Rayleigh, or Rician where there is a direct path.

    Args:
        streams: random streams of the run.
        devices: K.
        step_s: T_c, length of a block, s.
        k_factor: K factors, linear [K], or 0 for all.
    """

    streams: Streams
    devices: int
    step_s: float
    k_factor: Any = RAYLEIGH

    @property
    def holds_s(self) -> float:
        """Time for which a power that is known stays true, s."""
        return self.step_s

    @property
    def doppler_hz(self) -> float:
        """f_D with this coherence time, Hz."""
        return COHERENCE_RULE / self.step_s

    def blocks_in(self, seconds: Array, devices: Any = slice(None)) -> Array:
        """Independent powers that a device sees for sure in so many seconds, same shape."""
        return np.floor(seconds / self.step_s)

    def power(self, n: int, k_factor: Any = None) -> Array:
        """|h|^2 in step n [K], mean 1.

        Args:
            n: number of the step.
            k_factor: those of this instant [K]; None: those of the whole run. The draws are
                the same whatever they are, also where none is more than 0.
        """
        if k_factor is None and not np.any(self.k_factor):
            return self.streams.stream("fading", round=n).standard_exponential(self.devices)
        k_factor = self.k_factor if k_factor is None else k_factor
        return rician_power(k_factor, *self.amplitudes(n, rician=True))

    def amplitudes(self, n: int, delay_s: float = 0.0, rician: bool = False) -> tuple[Array, Array]:
        """Direct path and scattered part in step n, each of power 1 [K], complex.

        Args:
            n: number of the step.
            delay_s: not read: a block says nothing of the one before.
            rician: the draw of `power` with K factors that are given.
        """
        direct = np.ones(self.devices, dtype=complex)
        if not rician and not np.any(self.k_factor):
            return direct, np.sqrt(self.power(n)).astype(complex)
        normal = self.streams.stream("fading", round=n).standard_normal((self.devices, 2))
        normal /= math.sqrt(2.0)
        return direct, normal.view(complex)[:, 0]


@dataclass(frozen=True, eq=False)
class ClarkeFading:
    """A sum of waves from all sides: Clarke, Bell System Technical Journal 1968.

    The scattered part is a(t) = M^-1/2 sum_m exp(j (2 pi f_D t cos alpha_m + phi_m)), with angles
    and phases uniform and drawn once per device. Its correlation is J0(2 pi f_D tau) exactly, and
    E|a|^4 = 2 - 1 / M. (An autoregressive recursion would need a state, and has another spectrum.)

    Args:
        streams: random streams of the run.
        devices: K.
        doppler_hz: f_D, Hz.
        k_factor: K factors, linear [K], or 0 for all.
    """

    streams: Streams
    devices: int
    doppler_hz: float
    k_factor: Any = RAYLEIGH

    @property
    def step_s(self) -> float:
        """Time for which a power is held, s."""
        return STEP_RULE / self.doppler_hz

    @property
    def holds_s(self) -> float:
        """Time for which a power that is known stays true, s."""
        return STALE_RULE / self.doppler_hz

    def blocks_in(self, seconds: Array, devices: Any = slice(None)) -> Array:
        """Independent powers whose mean varies at least as much as that over so many seconds."""
        return np.floor(2.0 * seconds * self.doppler_hz)

    @cached_property
    def _waves(self) -> tuple[Array, Array]:
        """cos alpha and phi [K, M + 1], the direct path last."""
        drawn = self.streams.stream("clarke").random((self.devices, 2 * WAVES + 2))
        angle, phase = np.split(2.0 * math.pi * drawn, 2, axis=1)
        return np.cos(angle), phase

    def _rotated(self, time_s: float) -> Array:
        """Every wave of every device [K, M + 1], complex."""
        cosine, phase = self._waves
        return np.exp(1j * (2.0 * math.pi * self.doppler_hz * time_s * cosine + phase))

    def power(self, n: int, k_factor: Any = None) -> Array:
        """|h|^2 in step n [K], mean 1; with other K factors of this instant if given."""
        k_factor = self.k_factor if k_factor is None else k_factor
        return rician_power(k_factor, *self.amplitudes(n))

    def amplitudes(self, n: int, delay_s: float = 0.0, rician: bool = False) -> tuple[Array, Array]:
        """Direct path and scattered part of power 1 [K], complex, before the start of step n."""
        waves = self._rotated(n * self.step_s - delay_s)
        return waves[:, WAVES], waves[:, :WAVES].sum(axis=1) / math.sqrt(WAVES)


def rician_power(k_factor: Any, direct: Any, scattered: Array) -> Array:
    """|sqrt(K / (K + 1)) direct + sqrt(1 / (K + 1)) scattered|^2, of amplitudes of power 1."""
    k_factor = np.asarray(k_factor, dtype=float)
    parts = np.sqrt(k_factor / (k_factor + 1.0)) * direct + scattered / np.sqrt(k_factor + 1.0)
    return np.abs(parts) ** 2


Fading = BlockFading | ClarkeFading
