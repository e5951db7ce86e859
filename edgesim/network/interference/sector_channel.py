"""The channel of devices to the sectors that serve them, alone and with interference."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgesim.network.channel import Channel, start_of, step_of
from edgesim.network.fading.cross_links import CrossLinkFading
from edgesim.network.interference.couplings import Couplings
from edgesim.network.layout.coupling import SectorLinks
from edgesim.network.propagation.large_scale import OutOfRange
from fl.contracts import Array


@dataclass(frozen=True, eq=False)
class ServingSites:
    """The sites of the sectors that serve the devices at the start.

    Args:
        distance_m: [K], m.
        line_of_sight: bool [K].
        beyond_scope: where the model of the path loss does not hold.
    """

    distance_m: Array
    line_of_sight: Array
    beyond_scope: tuple[OutOfRange, ...] = ()


@dataclass(frozen=True, eq=False)
class MovingLinks:
    """The links of devices that move to all sectors, over time.

    Args:
        at: the links of all devices at an instant, s.
        refresh_s: time for which they are held, s.
        top_speed_m_per_s: what no device exceeds, or hardly ever.
        site_of: site of every sector, int [S].
        k_by_place: K factors follow the devices too.
    """

    at: Callable[[float], SectorLinks]
    refresh_s: float
    top_speed_m_per_s: float
    site_of: Array
    k_by_place: bool


class SectorChannel(Channel):
    """A channel whose path gains are those of the sectors that serve the devices now.

    Args:
        couplings: gains at all sectors, and who serves whom.
        sites: that serve the devices at the start; None: not known.
        loss: by how much a receiver needs more than the theory says, linear.
        moving: the links of devices that move; None: nobody moves.
        cross: fading of the links to other sectors; None: they have their mean gains.
        options: of `Channel`, but path_gain.
    """

    k_to_sectors: Array | None = None  # as `k_now`, of the links to all sectors [K, S]

    def __init__(
        self,
        couplings: Couplings,
        sites: ServingSites | None = None,
        loss: float = 1.0,
        moving: MovingLinks | None = None,
        cross: CrossLinkFading | None = None,
        **options: Any,
    ) -> None:
        self.couplings, self.sites, self.loss, self.moving = couplings, sites, loss, moving
        self.cross = cross
        if moving is not None:
            self.refresh_s, self.top_speed_m_per_s = moving.refresh_s, moving.top_speed_m_per_s
            self.k_by_place = moving.k_by_place
        super().__init__(path_gain=couplings.own / loss, **options)
        self._power = np.ones(len(couplings))  # of the fading, in the block that was asked last
        self._power_of: Array | None = None  # K factors that it was made with

    @property
    def static(self) -> bool:
        return self.fading is None and self.moving is None

    def next_change_s(self, time_s: float) -> float:
        return math.inf if self.fading is None else self.next_block_s(time_s)

    @property
    def path_gain(self) -> Array:
        """Gains without fading [K], linear."""
        return self.couplings.own / self.loss

    @path_gain.setter
    def path_gain(self, given: Array) -> None:
        """Ignore what is given: the gains are always those of the couplings."""

    def beyond_scope(self, time_s: float = 0.0) -> tuple[OutOfRange, ...]:
        if self.moving is not None:
            step = step_of(time_s, self.refresh_s)
            return self.moving.at(start_of(step, self.refresh_s)).beyond_scope
        return self.sites.beyond_scope if self.sites else ()

    def of(self, couplings: Couplings) -> SectorChannel:
        """The same channel over other couplings, which may change apart from these."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self), couplings=couplings, _block=None)
        return twin

    def gains(self, time_s: float) -> Array:
        """h of all devices [K] at their own sectors, linear: coupling gain x fading power."""
        if self.fading is None:
            return self.path_gain
        if self._block != self.block(time_s) or self._power_of is not self.k_now:
            self._block, self._power_of = self.block(time_s), self.k_now
            self._power = self.fading.power(self._block, self.k_now)
        return self.path_gain * self._power

    def cross_power(self, time_s: float) -> Array | None:
        """|h|^2 of the links to all sectors [K, S]; None: their mean, 1."""
        if self.cross is None:
            return None
        return self.cross.powers(self.block(time_s), self.k_to_sectors)


class DisturbedChannel(Channel):
    """A channel with interference that stays: gains with which noise alone does what both do.

    Args:
        channel: without interference.
        factor: N0 / (N0 + I) of the sector that serves each device [K].
    """

    def __init__(self, channel: Channel, factor: Array) -> None:
        vars(self).update(vars(channel))
        self.channel, self.factor = channel, factor
        self.path_gain = channel.path_gain * factor

    @property
    def static(self) -> bool:
        return self.channel.static

    def next_change_s(self, time_s: float) -> float:
        return self.channel.next_change_s(time_s)

    def gains(self, time_s: float) -> Array:
        return self.channel.gains(time_s) * self.factor

    def relative_powers(self, time_s: float, devices: Any) -> Array | None:
        return self.channel.relative_powers(time_s, devices)

    def fades_in(self, seconds: Array, devices: Any) -> Array:
        return self.channel.fades_in(seconds, devices)

    def sent_w(self, share: Any, most_w: Any, time_s: float, devices: Any = slice(None)) -> Any:
        # Power control makes up for the path loss, not for interference.
        return self.channel.sent_w(share, most_w, time_s, devices)


def silent(couplings: Couplings) -> Array:
    """No interference [S], W/Hz."""
    return np.zeros(couplings.sectors)
