"""The channel gains that a round is planned with, where fading changes while bits travel.

`allocation.rate: now` plans with the gains of the instant: right where they hold until the upload
is over. `mean` plans with the mean rate, `quantile` with the rate that a device gets with
probability 1 - eps in the time that it has. Both are expressed as a gain: the constant one with
which the share would carry the planned rate. So the pruning problem, its solvers and its
certificate are those of a channel that does not change. A device that moves is taken to stay where
it is when the round is planned: its path gain and K factor are those of that instant.

A device that sends for U seconds over blocks of T_c sees none for more than U / N of its time, N =
floor(U / T_c): the quantile is that of the mean of N independent rates. (Clarke's fading varies no
more than floor(2 U f_D) of them.) Where a law of link adaptation has a largest value every block
that is touched counts (`RateDistribution`). Where noise is a density the gain
depends on the share, and is taken at the share planned with the gain before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from edgesim.network.channel import Channel
from edgesim.network.fading.block_rate import snr_at
from edgesim.network.fading.power_distribution import power_quantile
from edgesim.network.fading.rate_distribution import RateDistribution
from edgesim.network.fading.selective import SelectiveFading
from edgesim.network.fading.weakest_gain import weakest_mean_rate_gain, weakest_quantile
from edgesim.scenario.allocation.allocation_schema import AllocationSection
from fl.contracts import Array
from fl.repeated_call import RepeatedCall
from solvers.arrays import read_only

NOW, MEAN, QUANTILE = "now", "mean", "quantile"
MOST_BLOCKS = 1e6  # of which the mean is taken; of more it varies by less than a thousandth
LEFT_OUT = 0.1  # of a block that is touched: where blocks are long, mostly one is
K_STEPS = 2.0  # per decibel of the K factor
STEP = 1e-3  # relative step of eps in the derivative of a quantile


@dataclass(frozen=True, eq=False)
class PlannedGains:
    """Gains to plan with, by `allocation.rate`.

    Args:
        channel: of the cell.
        rate: now, mean or quantile.
        late_share: 1 - reliability, the probability of being late that is planned for.
        for_round: it holds for all devices of a round at once, not for each of them.
        among: how many devices that round has; 0: those that are planned together.
        downlink: they are sent to, with the law of the downlink, which knows its channel.
    """

    channel: Channel
    rate: str = NOW
    late_share: float = 0.05
    for_round: bool = False
    among: int = 0
    downlink: bool = False
    _mean: RepeatedCall[Array] = field(default_factory=RepeatedCall, init=False, repr=False)

    @property
    def counts_with_fading(self) -> bool:
        """False where the gains of the instant are planned with."""
        return self.rate != NOW and self.channel.fading is not None

    @property
    def follow_shares(self) -> bool:
        """True where the gain of an upload may depend on the share that it has."""
        channel = self.channel
        by_ratio = channel.estimate is not None or isinstance(channel.fading, SelectiveFading)
        return self.counts_with_fading or by_ratio

    def at_start(self, time_s: float, snr_per_gain: Array) -> Array:
        """What the server takes for the gains [K] before it plans.

        Args:
            time_s: simulated time.
            snr_per_gain: p / (N0 B) of each device over the whole band [K].
        """
        if not self.counts_with_fading:
            everybody = np.arange(len(snr_per_gain))
            return self.channel.known_gains(time_s, snr_per_gain, everybody)
        gains, k_factor = self.channel.large_scale_at(time_s)

        def of_mean_rates() -> Array:
            planned = np.empty(len(gains))
            for law, here in self._laws(np.arange(len(gains)), k_factor, np.zeros(len(gains))):
                planned[here] = self._at_mean_rate(gains[here], snr_per_gain[here], law)
            return read_only(planned)

        if not self.channel.by_blocks:
            return of_mean_rates()
        return self._mean((gains, k_factor, snr_per_gain), of_mean_rates)

    def probability(self, devices: int, broadcast: bool) -> float:
        """eps of one upload.

        The broadcast and the uploads take half of the late share each (Bonferroni). Where the
        share holds for a round of S devices, 1 - (1 - eps)^(1 / S) is left for each of them.
        """
        eps, devices = (
            self.late_share / 2.0 if broadcast else self.late_share,
            self.among or devices,
        )
        return -math.expm1(math.log1p(-eps) / max(devices, 1)) if self.for_round else eps

    def uploads(
        self, time_s: float, devices: Array, snr_per_gain: Array, window_s: Array, eps: float
    ) -> Array:
        """Gains [S] with which uploads are planned.

        Args:
            time_s: simulated time.
            devices: their numbers [S].
            snr_per_gain: p / (N0 b B) over the band that each uses [S].
            window_s: time in which each sends, s [S].
            eps: probability of being late.
        """
        if not self.counts_with_fading:
            known = self.channel.flat_gains if self.downlink else self.channel.known_gains
            return known(time_s, snr_per_gain, devices)
        gains, k_factor = (each[devices] for each in self.channel.large_scale_at(time_s))
        planned = np.empty(len(devices))
        for law, here in self._laws(devices, k_factor, window_s):
            if self.rate == MEAN:
                planned[here] = self._at_mean_rate(gains[here], snr_per_gain[here], law)
            else:
                planned[here] = self._at_quantile(gains[here], snr_per_gain[here], law, eps)
        return planned

    def worst_listener(self, time_s: float, devices: Array, snr_per_gain: float) -> float:
        """Gain of the weakest of the listeners of a broadcast, linear.

        Args:
            time_s: simulated time.
            devices: the listeners [S].
            snr_per_gain: p / (N0 B) of the broadcast.
        """
        if not self.counts_with_fading:
            heard = self.channel.flat_gains(time_s, snr_per_gain, devices)
            return float(heard.min(initial=np.inf))
        gains, k_factor = (each[devices] for each in self.channel.large_scale_at(time_s))
        if self.rate == MEAN:
            law = self.channel.downlink_law
            return weakest_mean_rate_gain(gains, snr_per_gain, k_factor, law)
        return weakest_quantile(gains, self.late_share / 2.0, k_factor)

    def lone_listeners(self, time_s: float, devices: Array, snr_per_gain: float) -> Array:
        """Gains [S] of devices each of which is the only listener of a broadcast, linear."""
        if self.counts_with_fading and self.rate == QUANTILE:
            gains, k_factor = (each[devices] for each in self.channel.large_scale_at(time_s))
            return gains * power_quantile(self.late_share / 2.0, k_factor)
        each_snr, shortest = np.full(len(devices), snr_per_gain), np.zeros(len(devices))
        heard = replace(self, downlink=True)
        return heard.uploads(time_s, devices, each_snr, shortest, self.late_share / 2.0)

    def late_probability(
        self,
        time_s: float,
        devices: Array,
        snr_per_gain: Array,
        window_s: Array,
        needed: Array,
        price: Array,
        eps: float,
    ) -> tuple[Array, Array]:
        """(probability of being late [S], derivative of the objective by eps [S]).

        Args:
            time_s: simulated time of the plan.
            devices: their numbers [S].
            snr_per_gain: p / (N0 b B) over the band that each uses [S].
            window_s: time in which each sends, s [S].
            needed: spectral efficiency without which the device is late, bit/s/Hz [S].
            price: derivative of the objective by the logarithm of the planned rate [S].
            eps: the probability planned for.
        """
        gains, k_factor = (each[devices] for each in self.channel.large_scale_at(time_s))
        snr, late = gains * snr_per_gain, np.empty(len(devices))
        slopes = np.full(len(devices), math.nan)
        for law, here in self._laws(devices, k_factor, window_s):
            late[here] = law.below(needed[here], snr[here])
            if self.rate == QUANTILE:
                less, more = (law.quantile(eps * (1.0 + s), snr[here]) for s in (-STEP, STEP))
                slopes[here] = price[here] * np.log(more / less) / (2.0 * STEP * eps)
        return late, slopes

    def _laws(
        self, devices: Array, k_factor: Array, window_s: Array
    ) -> list[tuple[RateDistribution, Array]]:
        """Positions of the devices [S] by the distribution of what they see in their time [S], s.

        K factors are rounded down to half a decibel, so that there are few of them.
        """
        blocks = np.clip(self.channel.fades_in(window_s, devices), 1.0, MOST_BLOCKS)
        with np.errstate(divide="ignore"):
            k_db = np.floor(K_STEPS * 10.0 * np.log10(k_factor)) / K_STEPS
        law = self.channel.downlink_law if self.downlink else self.channel.law
        estimate = None if self.downlink else self.channel.estimate
        drawn = None if estimate is None else estimate.blocks
        touched = blocks
        if law is not None and not isinstance(self.channel.fading, SelectiveFading):
            parts = np.ceil(window_s / self.channel.coherence_s + 1.0 - LEFT_OUT)
            touched = np.clip(parts, blocks, MOST_BLOCKS)
        _, by_count = np.unique(blocks + 1j * touched, return_inverse=True)
        factors, by_factor = np.unique(k_db, return_inverse=True)
        kind = by_count * len(factors) + by_factor
        order = np.argsort(kind, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(kind[order])) + 1)
        return [
            (
                RateDistribution(
                    int(blocks[here[0]]),
                    float(10.0 ** (k_db[here[0]].item() / 10.0)),
                    law,
                    drawn,
                    int(touched[here[0]]),
                ),
                here,
            )
            for here in groups
            if len(here)
        ]

    def _at_mean_rate(self, gains: Array, snr_per_gain: Array, law: RateDistribution) -> Array:
        return snr_at(law.mean(gains * snr_per_gain), law.law) / snr_per_gain

    def _at_quantile(
        self, gains: Array, snr_per_gain: Array, law: RateDistribution, eps: float
    ) -> Array:
        return snr_at(law.quantile(eps, gains * snr_per_gain), law.law) / snr_per_gain


def make_planned_gains(section: AllocationSection, channel: Channel) -> PlannedGains:
    """The gains that a scenario's ``allocation`` plans with."""
    for_round = section.reliability_for == "round"
    return PlannedGains(channel, section.rate, 1.0 - section.reliability, for_round)
