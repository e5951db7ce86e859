"""The radio channel: gains over time, and rates of uploads by what is known of the gains.

The gain of device k at time t is a pure function of (seed, k, coherence block of t), so that a
resumed run needs no channel state and no device's fading depends on who else is in the cell. With
`edgesim.network.fading.processes.ClarkeFading` a block is a step in which the gain is held.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgesim.network.adaptation.channel_estimate import ChannelEstimate
from edgesim.network.adaptation.power_control import PowerControl
from edgesim.network.adaptation.single_scheme import SingleScheme
from edgesim.network.band_rate import BandRate
from edgesim.network.fading.block_rate import efficiency_at
from edgesim.network.fading.processes import Fading
from edgesim.network.fading.selective import SelectiveFading, effective_snr
from edgesim.network.propagation.large_scale import LargeScale, OutOfRange
from edgesim.network.tdd_service import ALWAYS, AirTimes, TddService
from fl.contracts import Array
from solvers.rates import EfficiencyLaw


class Channel(BandRate):
    """The gains of K devices towards one base station, and the rate of a share of the band.

    Args:
        bandwidth_hz: B, the cell's band, Hz.
        path_gain: path loss x shadowing [K], linear.
        noise_w, noise_w_per_hz, resource_share, law, downlink_law: see `BandRate`.
        fading: small-scale fading; None: none.
        links: what path_gain was made of, where it is known.
        air_times: of uplink and downlink under a TDD pattern.
        estimate: what is known of the fading; None: all.
        power_control: of the uplink; None: devices send with all their power.
        single: what uploads get instead of the law, with one scheme at a time; None: the law.

    Raises:
        ValueError: see `BandRate`; power control without a noise density, or a step of fading that
            is not positive.
    """

    by_blocks = True  # the gains change at multiples of coherence_s, or never
    refresh_s, top_speed_m_per_s = math.inf, 0.0  # of devices that move
    k_by_place = False  # the K factors of devices that move change with their places
    k_now: Array | None = None  # K factors of this instant where they do [K]

    def __init__(
        self,
        bandwidth_hz: float,
        path_gain: Any,
        noise_w: float | None = None,
        noise_w_per_hz: float | None = None,
        fading: Fading | None = None,
        links: LargeScale | None = None,
        resource_share: float = 1.0,
        law: EfficiencyLaw | None = None,
        downlink_law: EfficiencyLaw | None = None,
        air_times: AirTimes = (ALWAYS, ALWAYS),
        estimate: ChannelEstimate | None = None,
        power_control: PowerControl | None = None,
        single: SingleScheme | None = None,
    ) -> None:
        noise = noise_w, noise_w_per_hz
        super().__init__(bandwidth_hz, *noise, resource_share, law, downlink_law)
        self.fading, self.links, self.air_times = fading, links, air_times
        self.estimate, self.single = estimate, single
        if power_control is not None and noise_w_per_hz is None:
            raise ValueError("power control needs a noise density")
        self.power_control = power_control
        self.coherence_s = math.inf if fading is None else float(fading.step_s)
        if not self.coherence_s > 0.0:
            raise ValueError(f"fading needs a positive coherence time; it is {self.coherence_s} s")
        self.path_gain = np.asarray(path_gain, dtype=float)
        self._block: int | None = None  # the coherence block that _gain belongs to
        self._gain = self.path_gain

    @property
    def services(self) -> tuple[TddService | None, TddService | None]:
        """When uplink and downlink may send; None: always, at the mean rate."""
        up, down = (each if isinstance(each, TddService) else None for each in self.air_times)
        return up, down

    @property
    def upload_lag_s(self) -> float:
        """By how much an upload can end later than at its mean rate, s."""
        uplink = self.services[0]
        return 0.0 if uplink is None else uplink.longest_gap_s

    def beyond_scope(self, time_s: float = 0.0) -> tuple[OutOfRange, ...]:
        """Where the model of the path loss does not hold at ``time_s``."""
        return self.links.beyond_scope if self.links else ()

    @property
    def static(self) -> bool:
        """True without fading."""
        return self.fading is None

    def block(self, time_s: float) -> int:
        """Number n of the coherence block with n c <= t < (n + 1) c."""
        return step_of(time_s, self.coherence_s)

    def blocks(self, time_s: Array) -> Array:
        """`block` of many times, as floats of the same shape."""
        n = np.floor(time_s / self.coherence_s)
        late, early = (n + 1) * self.coherence_s <= time_s, n * self.coherence_s > time_s
        return np.where(late, n + 1, np.where(early, n - 1, n))

    def next_change_s(self, time_s: float) -> float:
        """When the gains change next, s, always later than ``time_s``; inf without fading."""
        return math.inf if self.static else self.next_block_s(time_s)

    def next_block_s(self, time_s: float) -> float:
        """When the coherence block after that of ``time_s`` begins, s."""
        return max((self.block(time_s) + 1) * self.coherence_s, math.nextafter(time_s, math.inf))

    def large_scale_at(self, time_s: float) -> tuple[Array, Array]:
        """(path gain x shadowing [K], linear; K factor [K], linear) at ``time_s``."""
        k_factor: Any = 0.0 if self.fading is None else self.fading.k_factor
        k_factor = k_factor if self.k_now is None else self.k_now
        return self.path_gain, np.broadcast_to(k_factor, self.path_gain.shape)

    def k_factor_at(self, time_s: float) -> Array | None:
        """K factors [K] at ``time_s`` where they follow devices that move; else None."""
        return self.large_scale_at(time_s)[1] if self.k_by_place else None

    def gains(self, time_s: float) -> Array:
        """h of all devices [K] at ``time_s``, linear: path loss x shadowing x fading power."""
        if self.fading is not None:
            n = self.block(time_s)
            if self._block != n:
                self._block, self._gain = n, self.path_gain * self.fading.power(n)
        return self._gain

    def relative_powers(self, time_s: float, devices: Any) -> Array | None:
        """Fading of devices in the parts of the band over its mean [..., R]; None: it is flat."""
        if not isinstance(self.fading, SelectiveFading):
            return None
        powers = self.fading.powers(self.block(time_s), self.k_factor_at(time_s), devices)
        return powers / powers.mean(axis=-1, keepdims=True)

    def fades_in(self, seconds: Array, devices: Any) -> Array:
        """Independent fades that devices [S] see in so many seconds [S]."""
        return seconds if self.fading is None else self.fading.blocks_in(seconds, devices)

    def sent_w(self, share: Any, most_w: Any, time_s: float, devices: Any = slice(None)) -> Any:
        """Power of devices [S] over shares b of the band [S], at most Pmax, ``most_w`` [S], W."""
        if self.power_control is None:
            return most_w
        # What the receiver loses is in these gains, and out of the control's P0: no path loss.
        path_gain = self.large_scale_at(time_s)[0][devices]
        return self.power_control.sent_w(share * self.bandwidth_hz, most_w, path_gain)

    def known_gains(self, time_s: float, snr_per_gain: Any, devices: Array) -> Array:
        """h of devices [S] as a server knows it at ``time_s``, linear.

        Args:
            time_s: simulated time.
            snr_per_gain: p / (N0 b B) over the band of each one's pilots [S], or one for all.
            devices: their numbers [S].
        """
        if self.estimate is None:
            return self.flat_gains(time_s, snr_per_gain, devices)
        gain, power = self._known_power(time_s, devices, snr_per_gain)
        return gain * power

    def known_bps(self, time_s: float, devices: Array, share: Array, power_w: Array) -> Array:
        """Rates [S] that a server expects of uploads that begin at ``time_s``, bit/s.

        Args:
            time_s: simulated time.
            devices: their numbers [S].
            share: b [S]; 0: no rate.
            power_w: p [S], W; 0: no rate.
        """
        pilot_w = np.where(power_w > 0.0, power_w, 1.0)  # who sends nothing has a gain, too
        gain = self.known_gains(time_s, self.snr_per_gain(share, pilot_w), devices)
        return np.asarray(self.rate_bps(share, power_w, gain))

    def flat_gains(self, time_s: float, snr_per_gain: Any, devices: Array) -> Array:
        """h [S] of a flat band that would carry as much: `gains` where the band is flat."""
        gains = self.gains(time_s)[devices]
        if (relative := self.relative_powers(time_s, devices)) is None:
            return gains
        return effective_snr(gains * snr_per_gain, relative) / snr_per_gain

    def _known_power(self, time_s: float, devices: Any, snr_per_gain: Any) -> tuple[Any, Any]:
        """Path gains, and |h|^2 of the fading as it is known, of some devices."""
        assert self.estimate is not None  # the caller asks where there is one
        gain, k_factor = (each[devices] for each in self.large_scale_at(time_s))
        k_factor = k_factor if self.k_by_place else None
        sent = gain * snr_per_gain, devices, k_factor
        return gain, self.estimate.power(self.block(time_s), *sent)

    def flow_bps(self, time_s: float, devices: Any, share: Any, power_w: Any, gain: Any) -> Any:
        """Rate at which uploads get on, bit/s: `rate_bps`, or with one scheme at a time.

        Args:
            time_s: simulated time.
            devices: numbers, an array or one.
            share: b, same shape.
            power_w: p, same shape.
            gain: h, with which noise does what noise and interference do, same shape.
        """
        relative = self.relative_powers(time_s, devices)
        if self.estimate is None and self.single is None and relative is None:
            return self.rate_bps(share, power_w, gain)
        used_hz = share * self.bandwidth_hz
        snr, known = self.true_and_known_snr(time_s, devices, used_hz, power_w, gain)
        if self.estimate is not None:
            efficiency = self.estimate.efficiency(snr, known)
        elif self.single is not None:
            efficiency = self.single.efficiency(snr)
        else:
            efficiency = efficiency_at(snr, self.law)
        return np.where(snr > 0.0, used_hz * efficiency, 0.0) * self.resource_share

    def true_and_known_snr(
        self, time_s: float, devices: Any, used_hz: Any, power_w: Any, gain: Any
    ) -> tuple[Any, Any]:
        """Signal-to-noise ratios within the band in use as they are, and as they are known."""
        snr = np.where(used_hz > 0.0, gain * power_w / self.noise_over_w(used_hz), 0.0)
        if (relative := self.relative_powers(time_s, devices)) is not None:
            snr = effective_snr(snr, relative)
        if self.estimate is None:
            return snr, snr
        per_gain = snr / self.gains(time_s)[devices]
        gain, power = self._known_power(time_s, devices, per_gain)
        return snr, per_gain * gain * power


def step_of(time_s: float, length_s: float) -> int:
    """Number n of the step with n c <= t < (n + 1) c, of steps of the length c from 0 on."""
    if math.isinf(length_s):
        return 0
    # Division rounds, and could put an edge into the step before it: multiply instead.
    n = math.floor(time_s / length_s)
    if (n + 1) * length_s <= time_s:
        return n + 1
    return n - 1 if n * length_s > time_s else n


def start_of(step: int, length_s: float) -> float:
    """When a step of `step_of` begins, s."""
    return step * length_s if step else 0.0  # the only one may last for ever
