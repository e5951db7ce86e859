"""Devices over the cells of a layout: uniform, far enough from sites, prefix stable."""

import numpy as np
import pytest

from edgesim.network.layout.cell_drop import CellDrop
from edgesim.network.layout.sites import hexagonal_sites
from edgesim.seeds import Seeds

SITES = hexagonal_sites(2, 500.0)


def drop(least_m, count, sites=SITES):
    return CellDrop(sites, Seeds(0))(least_m, count, "somewhere")


def test_devices_are_uniform_over_the_hexagons_of_the_sites():
    position_m = drop(0.0, 19_000)
    home, distance = SITES.nearest(position_m)
    # in the hexagon of their own site, so that no other is nearer
    assert np.allclose(np.hypot(*(position_m - SITES.position_m[home]).T), distance)
    assert np.bincount(home).min() > 850 and distance.max() < 500.0 / np.sqrt(3.0)
    # second moment of a hexagon with corners at R: 5 R^2 / 12
    assert (distance**2).mean() == pytest.approx(5.0 / 12.0 * 500.0**2 / 3.0, rel=0.015)
    inner = distance < 250.0  # the inscribed circle: pi / (2 sqrt(3)) of the hexagon
    assert inner.mean() == pytest.approx(np.pi / (2.0 * np.sqrt(3.0)), abs=0.006)


def test_nobody_is_nearer_than_the_least_distance_and_others_do_not_move():
    free, far = drop(0.0, 3000), drop(200.0, 3000)
    near = SITES.nearest(free)[1] < 200.0
    assert SITES.nearest(far)[1].min() >= 200.0
    assert 0.4 < near.mean() < 0.7
    assert (free[~near] == far[~near]).all()


def test_one_device_more_moves_nobody():
    assert (drop(200.0, 50) == drop(200.0, 51)[:50]).all()


def test_a_class_says_its_distance_or_the_model_does():
    where = CellDrop(SITES, Seeds(0), least_m=100.0)
    assert (where(None, 20, "somewhere") == drop(100.0, 20)).all()
