"""Noise and rate of a share of the band at a given gain: Liu, eq. (9)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from solvers.rates import EfficiencyLaw

SMALLEST_SHARE = 1e-12  # of which a signal-to-noise ratio is taken


class BandRate:
    """Noise and rates over shares of a band.

    Args:
        bandwidth_hz: B, the cell's band, Hz.
        noise_w: sigma^2, noise power whatever the share (Liu, eq. (9)), W; or
        noise_w_per_hz: N0, noise density over the used band, W/Hz. Exactly one of the two.
        resource_share: part of B log2(1 + SNR) that carries data.
        law: spectral efficiency instead of log2(1 + SNR); needs a noise density.
        downlink_law: that of a downlink over the same links; None: the same.

    Raises:
        ValueError: both or neither of the noises, or a law without a density.
    """

    def __init__(
        self,
        bandwidth_hz: float,
        noise_w: float | None = None,
        noise_w_per_hz: float | None = None,
        resource_share: float = 1.0,
        law: EfficiencyLaw | None = None,
        downlink_law: EfficiencyLaw | None = None,
    ) -> None:
        if (noise_w is None) == (noise_w_per_hz is None):
            raise ValueError(
                "a channel needs a noise power or a noise density, exactly one of the two"
            )
        if law is not None and noise_w_per_hz is None:
            raise ValueError("a law of spectral efficiency needs a noise density")
        self.bandwidth_hz, self.resource_share = float(bandwidth_hz), float(resource_share)
        self.noise_w, self.noise_w_per_hz = noise_w, noise_w_per_hz
        self.law, self.downlink_law = law, law if downlink_law is None else downlink_law

    @property
    def band_noise_w(self) -> float:
        """Noise power over the whole band, W."""
        return float(self.noise_over_w(self.bandwidth_hz))

    def noise_over_w(self, used_hz: Any) -> Any:
        """Noise power over bands, W, same shape; with a noise power that one whatever the band."""
        if self.noise_w_per_hz is None:
            return self.noise_w
        return self.noise_w_per_hz * np.where(used_hz > 0.0, used_hz, 1.0)

    def snr_per_gain(self, share: Any, power_w: Any) -> Any:
        """Signal-to-noise ratio of a gain of 1 over shares b of the band: p / (N0 b B)."""
        used = 1.0 if self.noise_w_per_hz is None else np.maximum(share, SMALLEST_SHARE)
        return power_w / (self.band_noise_w * used)

    def rate_bps(self, share: Any, power_w: Any, gain: Any) -> Any:
        """Uplink rate b B log2(1 + h p / sigma^2): Liu, eq. (9).

        With a noise density the noise grows with the used band: b B log2(1 + h p / (N0 b B)).

        Args:
            share: b, fraction of the band in [0, 1], any shape.
            power_w: p, transmit power, W, same shape.
            gain: h, channel power gain, linear, same shape.

        Returns:
            Rate, bit/s, same shape; 0 where share or gain is 0.
        """
        rate_bps = self._carried_bps(share * self.bandwidth_hz, power_w, gain, self.law)
        return rate_bps * self.resource_share

    def downlink_bps(
        self, power_w: float, gain: Any, bandwidth_hz: float, resource_share: float
    ) -> Any:
        """Rate of a downlink over the whole of its band, bit/s, shape of ``gain``.

        Args:
            power_w: P of the base station, W.
            gain: h, linear, any shape.
            bandwidth_hz: of the downlink, Hz.
            resource_share: part of the rate that carries data.
        """
        return self._carried_bps(bandwidth_hz, power_w, gain, self.downlink_law) * resource_share

    def _carried_bps(self, used_hz: Any, power_w: Any, gain: Any, law: EfficiencyLaw | None) -> Any:
        """What a band carries before overhead, bit/s."""
        snr = gain * power_w / self.noise_over_w(used_hz)
        if law is None:
            return used_hz * np.log1p(snr) / math.log(2)
        return used_hz * law.efficiency(snr)
