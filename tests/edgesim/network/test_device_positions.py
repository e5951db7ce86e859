"""Positions: uniform over their areas, prefix stable, and read from lists and files."""

import numpy as np
import pytest

from edgesim.network.device_positions import around, draw_positions
from edgesim.scenario.radio.placement import Placement
from edgesim.seeds import Seeds

COUNT = 20_000


def drawn(placement, count=COUNT):
    return draw_positions(placement, count, Seeds(0).stream("positions"))


@pytest.mark.parametrize("inner", [0.0, 35.0])
def test_a_ring_is_filled_evenly(inner):
    """The mean distance of a disc is 2/3 of its radius; of a ring 2/3 (R^3 - r^3) / (R^2 - r^2)."""
    points = drawn(Placement("ring" if inner else "disc", inner, 100.0))
    distance = np.hypot(*points.T)
    mean = 2 / 3 * (100**3 - inner**3) / (100**2 - inner**2)
    assert distance.mean() == pytest.approx(mean, rel=0.01)
    assert distance.min() >= inner and distance.max() <= 100.0
    assert points.mean(axis=0) == pytest.approx([0, 0], abs=1.5)


def test_a_hexagon_is_filled_evenly():
    """Mean squared distance 5/12 of the squared corner distance; no point beyond the edges."""
    points = drawn(Placement("hexagon", radius_m=100.0))
    assert (points**2).sum(axis=1).mean() == pytest.approx(5 / 12 * 1e4, rel=0.02)
    assert points.mean(axis=0) == pytest.approx([0, 0], abs=1.5)
    for angle in np.radians(30 + 60 * np.arange(6)):  # normals of the edges
        reach = points @ [np.cos(angle), np.sin(angle)]
        assert reach.max() <= 100 * np.cos(np.pi / 6) + 1e-9
        assert (reach > 80.0).mean() == pytest.approx((reach < -80.0).mean(), abs=0.01)


def test_one_more_device_moves_nobody_and_points_are_taken_as_given():
    for kind in ("disc", "hexagon"):
        place = Placement(kind, radius_m=100.0)
        assert drawn(place, 7)[:6].tolist() == drawn(place, 6).tolist()
    listed = Placement("list", points_m=((1.0, 2.0), (-3.0, 4.0)))
    assert drawn(listed, 2).tolist() == [[1.0, 2.0], [-3.0, 4.0]]
    assert around(np.array([5.0]), np.array([0.25]))[0] == pytest.approx([0.0, 5.0], abs=1e-12)
