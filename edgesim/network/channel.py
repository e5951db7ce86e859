"""The radio channel: path loss, shadowing, fading, and the rate of Liu, eq. (9).

The gain of device k at time t is a pure function of (seed, k, coherence block of t), so that a resumed run needs no
channel state and no device's fading depends on who else is in the cell.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgesim.network.device import Fleet, draw
from fl.contracts import Array, Streams


class Channel:
    """The gains of K devices towards one cell, and what a share of the band is worth.

    Args:
        bandwidth_hz: the cell's band B, Hz.     path_gain: path loss x shadowing [K], linear.
        noise_w: noise power sigma^2, whatever the share (Liu, eq. (9)), W; or
        noise_w_per_hz: noise density N0 over the used band, W/Hz. Exactly one of the two.
        coherence_s: length of a Rayleigh fading block, s; inf: no fading.     streams: needed with fading.
    """

    def __init__(
        self,
        bandwidth_hz: float,
        path_gain: Any,
        noise_w: float | None = None,
        noise_w_per_hz: float | None = None,
        coherence_s: float = math.inf,
        streams: Streams | None = None,
    ) -> None:
        if (noise_w is None) == (noise_w_per_hz is None):
            raise ValueError(
                "a channel needs a noise power or a noise density, exactly one of the two"
            )
        if coherence_s <= 0 or (math.isfinite(coherence_s) and streams is None):
            raise ValueError(
                f"fading needs a positive coherence time and random streams; coherence_s is {coherence_s}"
            )
        self.bandwidth_hz = float(bandwidth_hz)
        self.path_gain = np.asarray(path_gain, dtype=float)
        self.noise_w, self.noise_w_per_hz = noise_w, noise_w_per_hz
        self.coherence_s, self._streams = float(coherence_s), streams
        self._block, self._gain = None, self.path_gain

    @property
    def static(self) -> bool:
        return math.isinf(self.coherence_s)

    def block(self, time_s: float) -> int:
        """Number n of the coherence block with n c <= t < (n + 1) c, edges by multiplication."""
        n = math.floor(time_s / self.coherence_s)
        if (n + 1) * self.coherence_s <= time_s:
            return n + 1
        return n - 1 if n * self.coherence_s > time_s else n

    def blocks(self, time_s: Array) -> Array:
        """`block` of many times, as floats."""
        n = np.floor(time_s / self.coherence_s)
        late, early = (n + 1) * self.coherence_s <= time_s, n * self.coherence_s > time_s
        return np.where(late, n + 1, np.where(early, n - 1, n))

    def next_change_s(self, time_s: float) -> float:
        """When the gains change next, always later than ``time_s``; inf for a static channel."""
        if self.static:
            return math.inf
        return max((self.block(time_s) + 1) * self.coherence_s, math.nextafter(time_s, math.inf))

    def gains(self, time_s: float) -> Array:
        """h_k of all devices [K] at ``time_s``, linear: path loss x shadowing x |Rayleigh|^2 (exponential, mean 1)."""
        if not self.static and self._block != (n := self.block(time_s)):
            fading = self._streams.stream("fading", round=n).standard_exponential(
                len(self.path_gain)
            )
            self._block, self._gain = n, self.path_gain * fading
        return self._gain

    def rate_bps(
        self, share: Any, power_w: Any, gain: Any, bandwidth_hz: float | None = None
    ) -> Any:
        """Rate of the share b of a band (the cell's, unless given), bit/s.

        b B log2(1 + h p / sigma^2), Liu, eq. (9); with a density b B log2(1 + h p / (N0 b B)). Zero share or gain: 0.
        """
        used_hz = share * (self.bandwidth_hz if bandwidth_hz is None else bandwidth_hz)
        noise_w = self.noise_w
        if noise_w is None:
            noise_w = self.noise_w_per_hz * np.where(used_hz > 0.0, used_hz, 1.0)
        return used_hz * np.log1p(gain * power_w / noise_w) / math.log(2)


def linear(decibel: Any) -> Any:
    """A ratio in dB as a plain factor; inf beyond what a double holds."""
    with np.errstate(over="ignore", under="ignore"):
        return 10.0 ** (np.asarray(decibel, dtype=float) / 10.0)


def log_distance_db(
    distance_m: Any, reference_loss_db: Any, reference_distance_m: float, exponent: Any
) -> Any:
    """Path loss PL(d0) + 10 n log10(d / d0), dB (Rappaport, Wireless Communications, 2002, eq. (4.69a))."""
    return reference_loss_db + 10.0 * exponent * np.log10(
        np.asarray(distance_m, dtype=float) / reference_distance_m
    )


def path_gains(spec: Any, fleet: Fleet, streams: Streams) -> Array:
    """Path loss x shadowing of a scenario's ``network.channel`` for all devices [K], linear; drawn once per run."""
    loss = spec.path_loss
    if loss.model == "constant":
        loss_db = draw(loss.loss_db, len(fleet), streams.stream("path-loss"))
    else:
        loss_db = log_distance_db(
            fleet.distance_m, loss.reference_loss_db, loss.reference_distance_m, loss.exponent
        )
    shadowing_db = (spec.shadowing_db or 0.0) * streams.stream("shadowing").standard_normal(
        len(fleet)
    )
    return linear(-(loss_db + shadowing_db))


def channel(network: Any, fleet: Fleet, streams: Streams) -> Channel:
    """The channel of a scenario's ``network`` section."""
    fading = network.channel.fading
    return Channel(
        bandwidth_hz=network.bandwidth_hz,
        path_gain=path_gains(network.channel, fleet, streams),
        noise_w=network.noise.power_w,
        noise_w_per_hz=network.noise.density_w_per_hz,
        coherence_s=math.inf if fading.kind == "none" else fading.coherence_s,
        streams=streams,
    )
