"""Random waypoint mobility, in its stationary state from the start.

A device goes straight to a point drawn uniformly from its area, at a speed drawn uniformly from
[v0, v1], stays there for a pause, and goes on. Started anywhere else than in its stationary state
the devices slow down and gather in the middle over the first hours: long legs at low speed last
longest. Navidi and Camp, IEEE Transactions on Mobile Computing 2004, give that state. A device
pauses with probability E[P] / (E[P] + E[L] E[1 / V]). Otherwise its leg is one of two points p, q
with a density in proportion to |p - q|, its speed has the density 1 / v, which is
v0^(1 - u) v1^u of a uniform u, and it stands anywhere on the leg.
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # its parts are loaded on first use

from edgesim.network.device_positions import points_in
from edgesim.scenario.radio.placement import Placement
from fl.contracts import Array, Streams

MEAN_LEG_OF_HEXAGON = 0.8262589495  # between two uniform points, its corners at distance 1
NODES = 64  # of the quadrature over the radii of a ring
TRIES = 8  # candidates of a first leg that are drawn at once
LEGS = 16  # of a device that are drawn at once


def mean_leg_m(area: Placement) -> float:
    """E[L], mean distance between two uniform points of an area, m; of a disc 128 / (45 pi) R."""
    if area.kind == "hexagon":
        return MEAN_LEG_OF_HEXAGON * area.radius_m
    node, weight = np.polynomial.legendre.leggauss(NODES)
    width = (area.radius_m - area.inner_m) / 2.0
    radius = area.inner_m + width * (node + 1.0)
    density = weight * radius / (area.radius_m + area.inner_m)  # also of a ring without a width
    s, t = radius[:, None], radius[None, :]
    # mean distance between points of two circles of radii s and t
    nearness = np.minimum(1.0, 4.0 * s * t / (s + t) ** 2)  # rounds above 1 in a narrow ring
    apart = 2.0 / math.pi * (s + t) * scipy.special.ellipe(nearness)
    return float(density @ apart @ density)


def mean_inverse_speed(slowest: float, fastest: float) -> float:
    """E[1 / V] of a uniform speed, s/m."""
    if slowest == fastest:
        return 1.0 / slowest
    return math.log(fastest / slowest) / (fastest - slowest)


class RandomWaypoint:
    """Random waypoints of some devices, as a function of time.

    The legs of a device come from its own stream, in order: what is kept is only where it has
    come to, and an earlier time starts over.

    Args:
        streams: random streams of the run.
        devices: their numbers [K].
        area: disc, ring or hexagon that points are drawn from; paths of a ring may cross its hole.
        speed_m_per_s: (v0, v1), smallest more than 0.
        pause_s: shortest and longest pause.

    Raises:
        ValueError: a smallest speed that is not positive.
    """

    _asked_s: float
    _begin_s: Array  # of the present leg of each device, s [K]
    _arrive_s: Array
    _until_s: Array  # end of the pause behind it
    _from_m: Array  # [K, 2]
    _to_m: Array

    def __init__(
        self,
        streams: Streams,
        devices: Array,
        area: Placement,
        speed_m_per_s: tuple[float, float],
        pause_s: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        if not speed_m_per_s[0] > 0.0:
            raise ValueError(
                f"the smallest speed is {speed_m_per_s[0]} m/s; it must be more than 0, or the "
                "devices come to rest for ever"
            )
        self.streams, self.devices, self.area = streams, np.asarray(devices, dtype=int), area
        self.speed_m_per_s, self.pause_s = speed_m_per_s, pause_s
        self.top_speed_m_per_s = speed_m_per_s[1]
        self._start()

    def at(self, time_s: float) -> Array:
        """Positions [K, 2] at an instant, m."""
        if time_s < self._asked_s:
            self._start()
        self._asked_s = time_s
        while (due := np.flatnonzero(self._until_s <= time_s)).size:
            self._next_leg(due)
        return self._standing(np.clip(time_s, self._begin_s, self._arrive_s))

    def _standing(self, time_s: Array) -> Array:
        """Positions [K, 2] at times within the legs [K]."""
        length_s = self._arrive_s - self._begin_s
        done = np.divide(
            time_s - self._begin_s, length_s, out=np.ones(len(length_s)), where=length_s > 0.0
        )
        return self._from_m + done[:, None] * (self._to_m - self._from_m)

    def _start(self) -> None:
        """The stationary state at time 0."""
        self._asked_s = 0.0
        self._draw = [self.streams.stream("mobility", device=int(k)) for k in self.devices]
        self._uniform = np.empty((len(self._draw), LEGS, 4))
        self._leg = np.zeros(len(self._draw), dtype=int)  # how many were drawn from
        uniform = np.array([each.random(4) for each in self._draw]).reshape(-1, 4)
        moving = uniform[:, 0] >= self.paused_share
        self._from_m, self._to_m = self._first_legs(moving)
        slowest, fastest = self.speed_m_per_s
        speed = slowest ** (1.0 - uniform[:, 1]) * fastest ** uniform[:, 1]
        length_s = np.hypot(*(self._to_m - self._from_m).T) / speed
        # A pause that is going on is long in proportion to its length, and anywhere in it.
        short, long = self.pause_s
        pause_s = np.sqrt(short**2 + (long**2 - short**2) * uniform[:, 3])
        self._begin_s = -uniform[:, 2] * length_s
        self._arrive_s = self._begin_s + length_s
        self._until_s = self._arrive_s + self._pauses_s(uniform[:, 3])
        self._until_s = np.where(moving, self._until_s, uniform[:, 2] * pause_s)
        self._from_m = np.where(moving[:, None], self._from_m, self._to_m)
        self._begin_s, self._arrive_s = (
            np.where(moving, each, 0.0) for each in (self._begin_s, self._arrive_s)
        )

    @property
    def paused_share(self) -> float:
        """Probability that a device pauses."""
        pause_s = sum(self.pause_s) / 2.0
        return pause_s / (pause_s + mean_leg_m(self.area) * mean_inverse_speed(*self.speed_m_per_s))

    def _first_legs(self, moving: Array) -> tuple[Array, Array]:
        """(ends p, q [K, 2]) with a density in proportion to their distance, of those who move."""
        ends, open_ = np.zeros((2, len(self.devices), 2)), np.arange(len(self.devices))
        while open_.size:
            drawn = np.array([self._draw[i].random((TRIES, 5)) for i in open_]).reshape(-1, 5)
            p, q = (points_in(self.area, *drawn[:, i : i + 2].T) for i in (0, 2))
            apart = np.hypot(*(p - q).T)
            # whoever pauses stands at a uniform point, which any pair's second one is
            taken = drawn[:, 4] * 2.0 * self.area.radius_m < apart
            taken = taken.reshape(len(open_), TRIES) | ~moving[open_, None]
            first = taken.argmax(axis=1)
            here, place = taken.any(axis=1), np.arange(len(open_)) * TRIES + first
            ends[0, open_[here]], ends[1, open_[here]] = p[place[here]], q[place[here]]
            open_ = open_[~here]
        return ends[0], ends[1]

    def _pauses_s(self, uniform: Array) -> Array:
        short, long = self.pause_s
        return short + (long - short) * uniform

    def _next_leg(self, due: Array) -> None:
        """The next leg of these devices [D], from where they stand."""
        place = self._leg[due] % LEGS
        for i in due[place == 0]:
            self._uniform[i] = self._draw[i].random((LEGS, 4))
        uniform = self._uniform[due, place]
        self._leg[due] += 1
        slowest, fastest = self.speed_m_per_s
        speed = slowest + (fastest - slowest) * uniform[:, 2]
        self._from_m[due] = self._to_m[due]
        self._to_m[due] = points_in(self.area, uniform[:, 0], uniform[:, 1])
        length_s = np.hypot(*(self._to_m[due] - self._from_m[due]).T) / speed
        self._begin_s[due] = self._until_s[due]
        self._arrive_s[due] = self._begin_s[due] + length_s
        self._until_s[due] = self._arrive_s[due] + self._pauses_s(uniform[:, 3])
