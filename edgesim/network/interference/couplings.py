"""Which sector serves each device, and what arrives of its power at every sector."""

from __future__ import annotations

from typing import Any

import numpy as np

from fl.contracts import Array


class Couplings:
    """Power gains of K devices at S sectors, and the sector that serves each device.

    The one place where both are kept while a run lasts: links and planners read them here, and
    whoever moves a device changes them here.

    Args:
        gain: linear power gain of device k at sector s, without fading [K, S].
        serving: sector of each device, int [K].

    Raises:
        ValueError: shapes that do not fit, or a sector that does not exist.
    """

    def __init__(self, gain: Any, serving: Any) -> None:
        self.gain = np.array(gain, dtype=float)
        self.serving = np.array(serving, dtype=int)
        if self.gain.ndim != 2 or self.serving.shape != self.gain.shape[:1]:
            raise ValueError(
                f"gains {self.gain.shape} and serving sectors {self.serving.shape} do not fit; "
                "give [K, S] and [K]"
            )
        if self.serving.size and not 0 <= self.serving.min() <= self.serving.max() < self.sectors:
            raise ValueError(f"serving sectors are numbers from 0 to {self.sectors - 1}")
        self.own = np.empty(len(self))  # gains at the serving sector [K]
        self.cross = np.empty(self.gain.shape)  # gains at all others, 0 at the own [K, S]
        self._divide(np.arange(len(self)))

    def __len__(self) -> int:
        return len(self.serving)

    @property
    def sectors(self) -> int:
        """S."""
        return int(self.gain.shape[1])

    def copy(self) -> Couplings:
        """The same, to be changed apart from this one."""
        return Couplings(self.gain, self.serving)

    def move(self, device: int, sector: int) -> None:
        """Change the sector that serves a device."""
        self.serving[device] = sector
        self._divide(np.array([device]))

    def replace(self, gain: Array) -> None:
        """Change the gains [K, S] of all devices."""
        self.gain[:] = gain
        self._divide(np.arange(len(self)))

    def _divide(self, devices: Array) -> None:
        """Set what arrives of some devices, int [N], at their own sectors, and at all others."""
        own = self.serving[devices]
        self.own[devices], self.cross[devices] = self.gain[devices, own], self.gain[devices]
        self.cross[devices, own] = 0.0

    def interference(self, density_w_per_hz: Array, fading: Array | None = None) -> Array:
        """Mean interference density over the band at every sector: sum of p_k g_ks of the others.

        Args:
            density_w_per_hz: p, power of each device over the band's width, W/Hz; 0 where it is
                silent [K].
            fading: |h|^2 of the links [K, S]; None: their mean, 1.

        Returns:
            I [S], W/Hz.
        """
        if fading is not None:
            here = np.flatnonzero(density_w_per_hz)
            faded = self.cross[here] * fading[here]
            return np.einsum("k,ks->s", density_w_per_hz[here], faded)
        # Not by matrix product: its last bits would depend on the library and its threads.
        heard: Array = np.einsum("k,ks->s", density_w_per_hz, self.cross)
        return heard
