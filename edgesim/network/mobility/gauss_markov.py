"""Gauss-Markov mobility: velocities with a memory, and walls that reflect.

v_n = a v_(n-1) + (1 - a) m + s sqrt(1 - a^2) w_n (Liang and Haas, IEEE INFOCOM 1999), in steps of
constant length; m is the mean velocity of the device, s the deviation of each component, w_n is
standard normal. At a wall both v and m are mirrored. So a start with uniform positions, directions
of m all around and v normal about m is stationary.
"""

from __future__ import annotations

import math

import numpy as np

from edgesim.network.device_positions import around, points_in
from edgesim.scenario.radio.placement import Placement
from fl.contracts import Array, Streams

BLOCK = 64  # steps of a device that are drawn at once
SIX_NORMALS = around(np.ones(6), (0.5 + np.arange(6)) / 6.0)  # of the edges of a hexagon


class GaussMarkov:
    """Gauss-Markov motion of some devices, as a function of time.

    The steps of a device come from its own stream, in order: what is kept is only where it has
    come to, and an earlier time starts over.

    Args:
        streams: random streams of the run.
        devices: their numbers [K].
        area: disc or hexagon with reflecting walls.
        speed_m_per_s: |m|.
        deviation_m_per_s: s.
        memory: a, in [0, 1).
        step_s: length of a step, s.
    """

    def __init__(
        self,
        streams: Streams,
        devices: Array,
        area: Placement,
        speed_m_per_s: float,
        deviation_m_per_s: float,
        memory: float,
        step_s: float,
    ) -> None:
        self.streams, self.devices, self.area = streams, np.asarray(devices, dtype=int), area
        self.speed_m_per_s, self.deviation_m_per_s = speed_m_per_s, deviation_m_per_s
        self.memory, self.step_s = memory, step_s
        self.top_speed_m_per_s = speed_m_per_s + 3.0 * deviation_m_per_s
        self._start()

    def at(self, time_s: float) -> Array:
        """Positions [K, 2] at an instant, m."""
        if time_s < self._step * self.step_s:
            self._start()
        while (self._step + 1) * self.step_s <= time_s:
            self._flight = self._reflected(self.step_s)
            self._step += 1
            self._turn()
        return self._reflected(time_s - self._step * self.step_s)[0]

    def _start(self) -> None:
        """The stationary state at time 0."""
        self._step = 0
        self._draw = [self.streams.stream("mobility", device=int(k)) for k in self.devices]
        uniform = np.array([each.random(3) for each in self._draw]).reshape(-1, 3)
        normal = np.array([each.standard_normal(2) for each in self._draw]).reshape(-1, 2)
        mean = self.speed_m_per_s * around(np.ones(len(uniform)), uniform[:, 2])
        velocity = mean + self.deviation_m_per_s * normal
        # position, velocity and mean velocity [3][K, 2]
        self._flight = (points_in(self.area, *uniform[:, :2].T), velocity, mean)

    def _turn(self) -> None:
        """New velocities at the start of a step."""
        place = (self._step - 1) % BLOCK
        if place == 0:
            drawn = [each.standard_normal((BLOCK, 2)) for each in self._draw]
            self._normal = np.array(drawn).reshape(-1, BLOCK, 2)
        position, velocity, mean = self._flight
        a = self.memory
        noise = self.deviation_m_per_s * math.sqrt(1.0 - a**2) * self._normal[:, place]
        self._flight = (position, a * velocity + (1.0 - a) * mean + noise, mean)

    def _reflected(self, seconds: float) -> tuple[Array, Array, Array]:
        """Position, velocity and mean velocity so many seconds into the step."""
        position, velocity, mean = (each.copy() for each in self._flight)
        left_s, flying = np.full(len(position), seconds), np.arange(len(position))
        while flying.size:
            hit_s, normal = self._wall(position[flying], velocity[flying])
            taken_s = np.minimum(hit_s, left_s[flying])
            position[flying] += taken_s[:, None] * velocity[flying]
            left_s[flying] -= taken_s
            hit = hit_s == taken_s
            flying, normal = flying[hit], normal[hit]
            for each in (velocity, mean):
                outward = (each[flying] * normal).sum(axis=1, keepdims=True)
                each[flying] -= 2.0 * outward * normal
        return position, velocity, mean

    def _wall(self, position: Array, velocity: Array) -> tuple[Array, Array]:
        """(time until each device reaches a wall [K], s; outward unit normal there [K, 2])."""
        radius_m = self.area.radius_m
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.area.kind == "hexagon":
                outward = velocity @ SIX_NORMALS.T
                room_m = math.sqrt(0.75) * radius_m - position @ SIX_NORMALS.T
                times_s = np.where(outward > 0.0, np.maximum(room_m, 0.0) / outward, np.inf)
                return times_s.min(axis=1), SIX_NORMALS[times_s.argmin(axis=1)]
            along = (position * velocity).sum(axis=1)
            square = (velocity**2).sum(axis=1)
            room = np.maximum(radius_m**2 - (position**2).sum(axis=1), 0.0)
            time_s = (-along + np.sqrt(along**2 + square * room)) / square
        time_s = np.where(square > 0.0, np.maximum(time_s, 0.0), np.inf)
        there = position + np.where(np.isfinite(time_s), time_s, 0.0)[:, None] * velocity
        return time_s, there / np.maximum(np.hypot(*there.T), 1e-300)[:, None]
