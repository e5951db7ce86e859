"""The channel of devices that move: its large-scale state follows their positions in steps.

Path loss, line of sight, shadowing and K factor are functions of position (`edgesim.network
.propagation`). They are taken anew at whole multiples of a refresh time from the start of the run,
and held in between: gains stay piecewise constant, links integrate them exactly, and a resumed run
needs no state.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from edgesim.network.channel import Channel, start_of, step_of
from edgesim.network.device import Fleet
from edgesim.network.make_channel import channel_options, mean_gains
from edgesim.network.mobility.movement import Movement
from edgesim.network.propagation.large_scale import LargeScale, OutOfRange
from edgesim.network.propagation.path_loss import LossesByPlace, large_scale_of
from edgesim.network.propagation.site_fields import LOS, NLOS, O2I, STATISTICS
from edgesim.scenario.network_schema import NetworkSection
from edgesim.scenario.radio.channel_schema import Tr38901PathLoss
from fl.contracts import Array, Streams

PART_OF_DECORRELATION = 0.1  # that the fastest device goes between two refreshes
PLAIN_STEP_M = 1.0  # the same where shadowing does not depend on the place


class MovingChannel(Channel):
    """A channel whose path gains, and K factors by the table, follow the devices.

    Args:
        movement: where the devices are.
        links_at: large-scale state of their links at an instant.
        gains_of: path gain [K] of such a state, linear.
        refresh_s: time for which a state is held, s.
        k_by_place: the K factor depends on the place too.
        options: of `Channel`, but path_gain.
    """

    by_blocks = False

    def __init__(
        self,
        movement: Movement,
        links_at: Callable[[float], LargeScale],
        gains_of: Callable[[LargeScale], Array],
        refresh_s: float,
        k_by_place: bool = False,
        **options: Any,
    ) -> None:
        self.movement, self.links_at, self.gains_of = movement, links_at, gains_of
        self.refresh_s, self.k_by_place = refresh_s, k_by_place
        self.top_speed_m_per_s = movement.top_speed_m_per_s
        super().__init__(path_gain=gains_of(options["links"]), **options)
        self._held: tuple[int, Array, Array] | None = None  # (step, path gain, K factor)
        self._faded: tuple[tuple[int, int], Array] | None = None  # ((step, block), gains)

    @property
    def static(self) -> bool:
        return False

    def beyond_scope(self, time_s: float = 0.0) -> tuple[OutOfRange, ...]:
        links = self.links_at(start_of(step_of(time_s, self.refresh_s), self.refresh_s))
        return links.beyond_scope

    def next_change_s(self, time_s: float) -> float:
        refresh_s = self.refresh_s
        step_s = (step_of(time_s, refresh_s) + 1) * refresh_s
        step_s = max(step_s, math.nextafter(time_s, math.inf))
        return step_s if self.fading is None else min(step_s, self.next_block_s(time_s))

    def large_scale_at(self, time_s: float) -> tuple[Array, Array]:
        """(path gain x shadowing [K], linear; K factor [K], linear) at ``time_s``."""
        step = step_of(time_s, self.refresh_s)
        if self._held is None or self._held[0] != step:
            links = self.links_at(start_of(step, self.refresh_s))
            self._held = step, self.gains_of(links), links.k_factor
        return self._held[1:]

    def gains(self, time_s: float) -> Array:
        """h of all devices [K] at ``time_s``, linear: path loss x shadowing x fading power."""
        gain = self.large_scale_at(time_s)[0]
        if self.fading is None:
            return gain
        key = step_of(time_s, self.refresh_s), self.block(time_s)
        if self._faded is None or self._faded[0] != key:
            power = self.fading.power(key[1], self.k_factor_at(time_s))
            self._faded = key, gain * power
        return self._faded[1]


def make_moving_channel(
    network: NetworkSection,
    fleet: Fleet,
    streams: Streams,
    movement: Movement,
    own: LossesByPlace | None = None,
) -> MovingChannel:
    """The channel of a scenario's ``network`` section, of devices that move.

    Args:
        network: the section.
        fleet: the devices.
        streams: random streams of the run.
        movement: where they are over time.
        own: path losses by code of the user's own; None: by the section's model.
    """

    def links_at(time_s: float) -> LargeScale:
        placed = movement.placed(fleet, time_s)
        return large_scale_of(network, placed, streams, own and own(placed, 0))

    options = channel_options(network, links_at(0.0), streams)
    options.pop("path_gain")
    return MovingChannel(
        movement,
        links_at,
        partial(mean_gains, network),
        network.channel.refresh_s or default_refresh_s(network, movement),
        isinstance(network.channel.fading.k_db, str),
        **options,
    )


def default_refresh_s(network: NetworkSection, movement: Movement) -> float:
    """Time in which the fastest device goes a tenth of the shortest distance of the shadowing."""
    loss, speed = network.channel.path_loss, movement.top_speed_m_per_s
    if not speed > 0.0:
        return math.inf
    if not isinstance(loss, Tr38901PathLoss):
        return PLAIN_STEP_M / speed
    distances_m = STATISTICS[loss.model].decorrelation_m
    states = (LOS, NLOS, O2I) if loss.walls.indoor > 0.0 else (LOS, NLOS)
    return PART_OF_DECORRELATION * min(distances_m[each] for each in states) / speed
