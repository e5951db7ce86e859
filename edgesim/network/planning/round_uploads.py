"""The uploads of one round: how long each can send, its planned gain, and what that promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgesim.network.band_rate import SMALLEST_SHARE
from edgesim.network.device import Fleet
from edgesim.network.grants import Grants
from edgesim.network.planned_gains import PlannedGains
from fl.contracts import Array, Demand, UploadForecast, View

HALVINGS = 8  # of the time beyond T_th that is searched


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

    def gains(self, share: Array | float, window_s: Array, power_w: Array | None = None) -> Array:
        """Gains [K] with which uploads are planned.

        Args:
            share: of the band [K].
            window_s: time for sending [K], s.
            power_w: with which they are sent [K], W; 0 of who sends nothing; None: as much as the
                power control has them.
        """
        most_w, now_s = self.fleet.tx_power_w[self.devices], self.view.now_s
        share = np.maximum(share, SMALLEST_SHARE)
        sent_w = self.rule.channel.sent_w(share, most_w, now_s, self.devices)
        power_w = sent_w if power_w is None else np.where(power_w > 0.0, power_w, sent_w)
        return self.rule.uploads(
            self.view.now_s,
            self.devices,
            self.rule.channel.snr_per_gain(share, power_w),
            window_s,
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
        window_s, used_hz = self.window_s(grants.rho, grants.cpu_hz), grants.share
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
            channel.snr_per_gain(grants.share, power_w),
            window_s,
            needed,
            price,
            self.eps,
        )
        rate_bps = channel.rate_bps(grants.share, grants.power_w, gain)
        return UploadForecast(rate_bps, late, slopes)

    def window_s(self, rho: Array, cpu_hz: Array, extra_s: Array | float = 0.0) -> Array:
        """Time that is left for sending [K], s; negative where there is none.

        Args:
            rho: pruning ratios [K].
            cpu_hz: clocks [K], Hz.
            extra_s: by which the plan's threshold is longer than T_th, s.
        """
        everybody = np.asarray(self.demand.devices, dtype=int)
        fixed, prunable = (
            np.broadcast_to(self.fleet.cycles(everybody, work), everybody.shape)[self.served]
            for work in (self.demand.work_fixed, self.demand.work_prunable)
        )
        busy_s = (fixed + (1.0 - rho) * prunable) / cpu_hz
        return self.budget_s + extra_s - self.download_s[self.served] - busy_s


class SendingTimes:
    """The times for sending that the quantiles of one plan after the other count with.

    More time to send means more blocks of fading, so a better quantile. With that less is pruned,
    or a threshold that does not fit is stretched less: less time is left. The least threshold that
    fits is the one with which a plan needs just what it counts with, and is found by halving. In
    the end times only shrink, so that no plan counts with more time than it leaves.

    Args:
        sector: of each device [K], from 0 on; or 0, where there is one.
        sectors: I.
    """

    def __init__(self, sector: Any = 0, sectors: int = 1) -> None:
        self.sector = sector
        self.extra_s = np.zeros(sectors)  # beyond T_th that is counted with [I], s
        self.settled = False  # the threshold stays
        self._low_s, self._high_s = np.zeros(sectors), np.full(sectors, np.inf)
        self._window_s: Array | None = None
        self._turns = 0

    def next_s(
        self, uploads: RoundUploads, rho: Array, cpu_hz: Array, needed_s: Any = None
    ) -> Array:
        """Time for sending [K] that the next plan counts with, s.

        Args:
            uploads: of the round.
            rho: pruning ratios of the plan before [K].
            cpu_hz: its clocks [K], Hz.
            needed_s: what it needed beyond T_th [I], s; None: there is none before.
        """
        if needed_s is not None:
            self._choose(np.atleast_1d(needed_s))
        found_s = uploads.window_s(rho, cpu_hz, self.extra_s[self.sector])
        if self.settled and self._window_s is not None:
            found_s = np.minimum(self._window_s, found_s)
        self._window_s = found_s
        searches = self._turns <= HALVINGS + 1 and np.any(self._low_s < self._high_s)
        self.settled = needed_s is not None and not searches
        return found_s

    def _choose(self, needed_s: Array) -> None:
        # A plan that needs more than it counts with is cautious, and fits what it needs.
        self._low_s = np.where(needed_s > self.extra_s, self.extra_s, self._low_s)
        self._high_s = np.minimum(self._high_s, np.maximum(self.extra_s, needed_s))
        self._turns += 1
        halving = self._turns <= HALVINGS and self._low_s < self._high_s
        self.extra_s = np.where(halving, 0.5 * (self._low_s + self._high_s), self._high_s)
        if self._turns == HALVINGS + 1:
            # Only the first plan has needed more, and its times were those of unpruned work.
            self.extra_s = np.where(self._low_s > 0.0, self._high_s, 0.0)
