"""Sites as Sionna 2.2 places them, and its wrap-around, which is not taken over."""

import numpy as np
import pytest

from edgesim.network.layout.sites import hexagonal_sites

ISD_M = 500.0
pytestmark = pytest.mark.slow  # importing it takes four seconds


@pytest.fixture(scope="module")
def topology():
    why = "sionna is not installed: pip install 'edgesim[oracles]'"
    return pytest.importorskip("sionna.sys.topology", reason=why, exc_type=ImportError)


def in_order(places):
    return np.array(sorted(map(tuple, np.round(np.asarray(places), 6) + 0.0)))


@pytest.mark.parametrize(("rings", "whole"), [(1, 1), (2, 7)])
def test_the_wrap_around_of_sionna_is_turned_against_its_sites(topology, rings, whole):
    """Seven of 19 sites (one of seven) have six neighbours at the distance between sites."""
    import torch

    sites = hexagonal_sites(rings, ISD_M)
    layout = (rings, ISD_M, torch.float64, "cpu")
    theirs = topology._tr38901_site_positions(*layout).numpy()
    np.testing.assert_allclose(in_order(theirs), in_order(sites.position_m), atol=1e-5)
    moves = topology._tr38901_wrap_vectors(*layout).numpy()
    ours = np.asarray(sites.images_m)
    turned = np.stack([-moves[:, 1], moves[:, 0]], axis=-1)
    np.testing.assert_allclose(in_order(turned), in_order(ours), atol=1e-5)
    for images, count in ((moves, whole), (ours, len(theirs))):
        copies = np.concatenate([theirs + move for move in images])
        apart = np.linalg.norm(copies[None] - theirs[:, None], axis=2)
        assert (np.isclose(apart, ISD_M).sum(axis=1) == 6).sum() == count
