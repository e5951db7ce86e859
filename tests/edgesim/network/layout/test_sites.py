"""Hexagonal layouts: neighbours, images and boresights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from edgesim.network.layout.sites import Sites, hexagonal_sites

ISD_M = 500.0


def all_images_m(sites):
    return np.concatenate([sites.position_m + move for move in sites.images_m])


@pytest.mark.parametrize(("rings", "count"), [(0, 1), (1, 7), (2, 19), (3, 37)])
def test_every_site_has_six_images_at_the_distance_between_sites(rings, count):
    """Where wrap vectors are turned against the grid, 7 of the 19 sites have."""
    sites = hexagonal_sites(rings, ISD_M)
    assert len(sites) == count
    everything = all_images_m(sites)
    for place in sites.position_m:
        distance = np.sort(np.hypot(*(everything - place).T))
        assert distance[0] == 0.0
        assert_allclose(distance[1:7], ISD_M, rtol=1e-12)
        assert distance[7:].min(initial=np.inf) > 1.7 * ISD_M


def test_a_copy_of_19_sites_is_sqrt_19_distances_away_and_one_of_7_sqrt_7():
    for rings, square in ((1, 7.0), (2, 19.0)):
        moves = hexagonal_sites(rings, ISD_M).images_m[1:]
        assert_allclose(np.hypot(*moves.T), np.sqrt(square) * ISD_M, rtol=1e-12)
        angle = np.sort(np.degrees(np.arctan2(moves[:, 1], moves[:, 0])) % 360.0)
        assert_allclose(np.diff(angle), 60.0, rtol=1e-12)


def test_the_nearest_image_is_the_nearest_of_all_copies():
    sites = hexagonal_sites(2, ISD_M)
    a, b = sites.period_m
    moves = [i * a + j * b for i in range(-4, 5) for j in range(-4, 5)]
    places = np.random.default_rng(0).uniform(-4000.0, 4000.0, (500, 2))
    for site in (0, 8, 18):
        found = np.hypot(*sites.offset_m(site, places).T)
        copies = np.stack([np.hypot(*(places - sites.position_m[site] - m).T) for m in moves])
        assert_allclose(found, copies.min(axis=0), rtol=1e-9)
        assert found.max() <= np.sqrt(19.0 / 3.0) * ISD_M  # corner of the hexagon of the period


def test_a_network_moved_by_a_period_is_the_same():
    sites = hexagonal_sites(2, ISD_M)
    places = np.random.default_rng(1).uniform(-1000.0, 1000.0, (50, 2))
    for move in sites.images_m:
        for site in range(len(sites)):
            assert_allclose(
                sites.offset_m(site, places + move), sites.offset_m(site, places), atol=1e-8
            )


def test_without_wrap_around_a_site_is_where_it_is():
    sites = hexagonal_sites(2, ISD_M, wrap=False)
    place = np.array([[5000.0, -7000.0]])
    assert sites.offset_m(3, place).tolist() == (place - sites.position_m[3]).tolist()
    assert sites.nearest(sites.position_m + 1.0)[0].tolist() == list(range(19))


def test_sectors_stand_side_by_side_with_boresights_at_equal_angles():
    sites = hexagonal_sites(1, ISD_M)
    assert sites.site_of.tolist() == [i for i in range(7) for _ in range(3)]
    assert sites.boresight_deg[:6].tolist() == [30.0, 150.0, 270.0] * 2
    four = Sites(np.zeros((1, 2)), sectors=4, first_deg=315.0)
    assert four.boresight_deg.tolist() == [315.0, 45.0, 135.0, 225.0]
