"""Positions of devices around the base station at the origin."""

from __future__ import annotations

import math

import numpy as np

from edgesim.scenario.radio.placement import Placement
from fl.contracts import Array


def draw_positions(placement: Placement, count: int, stream: np.random.Generator) -> Array:
    """Positions [count, 2], m; prefix stable, see `edgesim.seeds`.

    Args:
        placement: disc, ring, hexagon, or the points themselves.
        count: number of devices.
        stream: the random stream of these positions.

    Raises:
        ValueError: over the cells of a layout, see `edgesim.network.layout.cell_drop`.
    """
    if placement.kind == "cells":
        raise ValueError("positions over cells need the sites of a layout")
    if placement.kind in ("list", "csv"):
        return np.array(placement.points_m[:count], dtype=float).reshape(-1, 2)
    return points_in(placement, *stream.random((count, 2)).T)


def points_in(area: Placement, u: Array, v: Array) -> Array:
    """Points [K, 2] that fill a disc, ring or hexagon evenly, from uniform numbers u and v [K]."""
    if area.kind == "hexagon":
        return in_hexagon(area.radius_m, u, v)
    radius = np.sqrt(area.inner_m**2 + (area.radius_m**2 - area.inner_m**2) * u)
    return around(radius, v)


def in_hexagon(radius_m: float, u: Array, v: Array) -> Array:
    """Uniform points [K, 2] of a hexagon with corners at this distance: of one of three rhombi."""
    which = np.minimum((3.0 * u).astype(int), 2)
    within = 3.0 * u - which
    angle = 2.0 * math.pi / 3.0 * np.stack([which, which + 1])
    x, y = np.cos(angle), np.sin(angle)
    return radius_m * np.stack([within * x[0] + v * x[1], within * y[0] + v * y[1]], axis=1)


def around(distance_m: Array, turn: Array) -> Array:
    """Positions [K, 2] at these distances, at these parts of a full turn."""
    angle = 2.0 * math.pi * turn
    return distance_m[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
