"""The radio channel: block fading, and the rate of Liu, eq. (9).

The gain of device k at time t is a pure function of (seed, k, coherence block of t), so that a
resumed run needs no channel state and no device's fading depends on who else is in the cell.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgesim.network.device import Fleet
from edgesim.network.propagation.path_loss import path_gains
from edgesim.scenario.network_schema import NetworkSection
from fl.contracts import Array, Streams


class Channel:
    """The gains of K devices towards one base station, and the rate of a share of the band.

    Args:
        bandwidth_hz: B, the cell's band, Hz.
        path_gain: path loss x shadowing [K], linear.
        noise_w: sigma^2, noise power whatever the share (Liu, eq. (9)), W; or
        noise_w_per_hz: N0, noise density over the used band, W/Hz. Exactly one of the two.
        coherence_s: length of a Rayleigh fading block, s; inf: no fading.
        streams: random streams of the run, needed with fading.

    Raises:
        ValueError: both or neither of the noises, or a coherence time that is not positive.
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
                "fading needs a positive coherence time and random streams; "
                f"coherence_s is {coherence_s}"
            )
        self.bandwidth_hz = float(bandwidth_hz)
        self.path_gain = np.asarray(path_gain, dtype=float)
        self.noise_w, self.noise_w_per_hz = noise_w, noise_w_per_hz
        self.coherence_s, self._streams = float(coherence_s), streams
        self._block: int | None = None  # the coherence block that _gain belongs to
        self._gain = self.path_gain

    @property
    def band_noise_w(self) -> float:
        """Noise power over the whole band, W."""
        if self.noise_w_per_hz is None:
            return float(self.noise_w or 0.0)
        return self.noise_w_per_hz * self.bandwidth_hz

    @property
    def static(self) -> bool:
        """True without fading."""
        return math.isinf(self.coherence_s)

    def block(self, time_s: float) -> int:
        """Number n of the coherence block with n c <= t < (n + 1) c."""
        # Division rounds, and could put an edge into the block before it: multiply instead.
        n = math.floor(time_s / self.coherence_s)
        if (n + 1) * self.coherence_s <= time_s:
            return n + 1
        return n - 1 if n * self.coherence_s > time_s else n

    def blocks(self, time_s: Array) -> Array:
        """`block` of many times, as floats of the same shape."""
        n = np.floor(time_s / self.coherence_s)
        late, early = (n + 1) * self.coherence_s <= time_s, n * self.coherence_s > time_s
        return np.where(late, n + 1, np.where(early, n - 1, n))

    def next_change_s(self, time_s: float) -> float:
        """When the gains change next, s, always later than ``time_s``; inf without fading."""
        if self.static:
            return math.inf
        return max((self.block(time_s) + 1) * self.coherence_s, math.nextafter(time_s, math.inf))

    def gains(self, time_s: float) -> Array:
        """h of all devices [K] at ``time_s``, linear: path loss x shadowing x |Rayleigh|^2.

        |Rayleigh|^2 is exponential with mean 1.
        """
        if self._streams is not None and not self.static:
            n = self.block(time_s)
            if self._block != n:
                stream = self._streams.stream("fading", round=n)
                fading = stream.standard_exponential(len(self.path_gain))
                self._block, self._gain = n, self.path_gain * fading
        return self._gain

    def rate_bps(
        self, share: Any, power_w: Any, gain: Any, bandwidth_hz: float | None = None
    ) -> Any:
        """Uplink rate b B log2(1 + h p / sigma^2): Liu, eq. (9).

        With a noise density the noise grows with the used band: b B log2(1 + h p / (N0 b B)).

        Args:
            share: b, fraction of the band in [0, 1], any shape.
            power_w: p, transmit power, W, same shape.
            gain: h, channel power gain, linear, same shape.
            bandwidth_hz: B of another band than the cell's, Hz.

        Returns:
            Rate, bit/s, same shape; 0 where share or gain is 0.
        """
        used_hz = share * (self.bandwidth_hz if bandwidth_hz is None else bandwidth_hz)
        noise_w: Any = self.noise_w
        if self.noise_w_per_hz is not None:
            noise_w = self.noise_w_per_hz * np.where(used_hz > 0.0, used_hz, 1.0)
        return used_hz * np.log1p(gain * power_w / noise_w) / math.log(2)


def make_channel(network: NetworkSection, fleet: Fleet, streams: Streams) -> Channel:
    """The channel of a scenario's ``network`` section."""
    fading = network.channel.fading
    return Channel(
        bandwidth_hz=network.bandwidth_hz,
        path_gain=path_gains(network.channel, fleet, streams),
        noise_w=network.noise.power_w,
        noise_w_per_hz=network.noise.density_w_per_hz,
        coherence_s=math.inf if fading.coherence_s is None else fading.coherence_s,
        streams=streams,
    )
