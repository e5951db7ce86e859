"""Shadowing that is correlated between sites."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

HALF = "network.channel.inter_site=0.5"
NEVER = "{model: uma, los: never, antenna: {kind: column}}"


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_the_correlation_between_sites_is_that_of_the_key(dropped, correlation):
    """2,000 places far apart: sigma 6 dB to every site, and c between any two."""
    key = [f"network.channel.inter_site={correlation}"]
    places = np.random.default_rng(0).uniform(-900.0, 900.0, (2000, 2))
    everybody = np.zeros(len(places), dtype=int)
    found, plain = (
        dropped(1, path_loss=NEVER, more=more)[0].at(places, everybody).coupling[:, ::3]
        for more in (key, ["network.channel.shadowing=none"])
    )
    shadow_db = 10.0 * np.log10(found / plain)
    assert shadow_db.std(axis=0) == pytest.approx(np.full(19, 6.0), rel=0.25)
    pairs = np.corrcoef(shadow_db.T)[np.triu_indices(19, 1)]
    assert pairs.mean() == pytest.approx(correlation, abs=0.04)


def test_a_network_that_wraps_around_still_looks_the_same_from_its_copies(dropped):
    coupling, places = dropped(20, more=[HALF])
    here = coupling.at(places)
    for move in coupling.sites.images_m[1:3]:
        assert_allclose(coupling.at(places + move).coupling, here.coupling, rtol=1e-9)


def test_without_correlation_nothing_changes(dropped):
    plain, places = dropped(20)
    zero, _ = dropped(20, more=["network.channel.inter_site=0"])
    assert zero.at(places).coupling.tolist() == plain.at(places).coupling.tolist()


def test_shadowing_that_is_drawn_per_device_is_correlated_too(dropped):
    loss = "{model: log-distance, reference_loss: 38 dB, exponent: 3}"
    more = ["network.channel.shadowing=8 dB", "network.layout={kind: hex, sectors: 1}"]
    more += ["network.channel.fading={kind: rayleigh, speed: 3 km/h}"]
    both, places = dropped(2000, path_loss=loss, more=[*more, HALF])
    plain, _ = dropped(2000, path_loss=loss, more=["network.channel.shadowing=none", *more[1:]])
    shadow_db = 10.0 * np.log10(both.at(places).coupling / plain.at(places).coupling)
    assert shadow_db.std() == pytest.approx(8.0, rel=0.05)
    pairs = np.corrcoef(shadow_db.T)[np.triu_indices(19, 1)]
    assert pairs.mean() == pytest.approx(0.5, abs=0.05)
