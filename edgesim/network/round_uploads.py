"""The uploads of one round: how long each can send, its planned gain, and what that promises."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgesim.network.device import Fleet
from edgesim.network.grants import Grants
from edgesim.network.planned_gains import PlannedGains
from fl.contracts import Array, Demand, UploadForecast, View

SMALLEST_SHARE = 1e-12  # of which a signal-to-noise ratio is taken


@dataclass(frozen=True, eq=False)
class RoundUploads:
    """The uploads of the devices of a demand that are served.

    Args:
        rule: which gains are planned with.
        fleet: all devices.
        demand: of S devices.
        view: what the server knows when the round starts.
        served: positions of the devices in the demand, int [K].
        download_s: time until the model is there [S], s.
        budget_s: T_th, s.
        eps: probability of being late that each is planned for.
    """

    rule: PlannedGains
    fleet: Fleet
    demand: Demand
    view: View
    served: Array
    download_s: Array
    budget_s: float
    eps: float

    @property
    def devices(self) -> Array:
        """Their numbers [K]."""
        return np.asarray(self.demand.devices, dtype=int)[self.served]

    def gains(self, share: Array | float, rho: Array, cpu_hz: Array) -> Array:
        """Gains [K] with which uploads over these shares, ratios and clocks [K] are planned."""
        most_w, now_s = self.fleet.tx_power_w[self.devices], self.view.now_s
        share = np.maximum(share, SMALLEST_SHARE)
        power_w = self.rule.channel.sent_w(share, most_w, now_s, self.devices)
        return self.rule.uploads(
            self.view.now_s,
            self.devices,
            self._snr_per_gain(power_w, share),
            self._window_s(rho, cpu_hz),
            self.eps,
        )

    def forecast(self, grants: Grants, gain: Array, price: Array) -> UploadForecast:
        """What is promised of uploads with these grants.

        Args:
            grants: of the devices [K].
            gain: that they were planned with [K].
            price: derivative of the objective by the logarithm of each planned rate [K].
        """
        channel, kept = self.rule.channel, 1.0 - grants.rho
        bits = self.demand.bits_fixed[self.served] + kept * self.demand.bits_prunable[self.served]
        window_s, used_hz = self._window_s(grants.rho, grants.cpu_hz), grants.share
        used_hz = used_hz * channel.bandwidth_hz * channel.resource_share
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = np.where(window_s > 0.0, bits / (window_s * used_hz), np.inf)
        needed = np.where(bits > 0.0, needed, np.where(window_s < 0.0, np.inf, 0.0))
        # The last bit of a plan that just meets the threshold is in time.
        needed = needed * (1.0 - 1e-9)
        # Who needs no band sends with no power under power control: any ratio is enough for it.
        most_w = self.fleet.tx_power_w[self.devices]
        power_w = np.where(grants.power_w > 0.0, grants.power_w, most_w)
        late, slopes = self.rule.late_probability(
            self.view.now_s,
            self.devices,
            self._snr_per_gain(power_w, grants.share),
            window_s,
            needed,
            price,
            self.eps,
        )
        rate_bps = channel.rate_bps(grants.share, grants.power_w, gain)
        return UploadForecast(rate_bps, late, slopes)

    def _snr_per_gain(self, power_w: Array, share: Array | float) -> Array:
        """Signal-to-noise ratio of a gain of 1 over the band in use [K]."""
        channel = self.rule.channel
        if channel.noise_w is not None:
            return power_w / channel.band_noise_w
        return power_w / (channel.band_noise_w * np.maximum(share, SMALLEST_SHARE))

    def _window_s(self, rho: Array, cpu_hz: Array) -> Array:
        """Time that is left for sending [K], s; negative where there is none."""
        everybody = np.asarray(self.demand.devices, dtype=int)
        fixed, prunable = (
            np.broadcast_to(self.fleet.cycles(everybody, work), everybody.shape)[self.served]
            for work in (self.demand.work_fixed, self.demand.work_prunable)
        )
        busy_s = (fixed + (1.0 - rho) * prunable) / cpu_hz
        return self.budget_s - self.download_s[self.served] - busy_s
