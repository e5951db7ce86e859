"""Line of sight, shadowing and K factor by position: shares, correlations and consistency."""

import numpy as np
import pytest
from scipy import special

from edgesim.network.propagation import large_scale as ls
from edgesim.network.propagation.building_penetration import draw_surroundings
from edgesim.network.propagation.random_field import RandomField
from edgesim.network.propagation.site_fields import FieldsOfSite
from edgesim.network.propagation.tr38901_path_loss import line_of_sight_probability
from edgesim.seeds import Seeds


def along(distances_m, seed, model="umi", **more):
    """Devices on a line from the site."""
    places = np.stack([np.asarray(distances_m, float), np.zeros(len(distances_m))], axis=1)
    return at(places, seed, model, **more)


def at(places, seed, model="umi", indoor_share=0.0, high_loss_share=0.5, **more):
    shares = indoor_share, high_loss_share
    around = draw_surroundings(model, np.full(len(places), 1.5), 3.5, Seeds(seed), *shares)
    return ls.SitePropagation(model, 10.0, 3.5, Seeds(seed), around, **more).at(places)


@pytest.mark.slow
def test_line_of_sight_has_its_probability_and_stays_over_metres():
    """UMi at 100 m: 0.2310; after 5 m 10.6 % have another state, after 1 m 4.8 %.

    Redrawn states would differ in 35.5 % of the cases.
    """
    angle = 2 * np.pi * np.arange(10) / 10
    ring = 100.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    aside = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    places = np.concatenate([ring, ring + aside, ring + 5.0 * aside])
    state = np.array([at(places, s).line_of_sight.reshape(3, 10) for s in range(1000)])
    assert state[:, 0].mean() == pytest.approx(0.2310, abs=0.01)
    assert (state[:, 0] != state[:, 2]).mean() == pytest.approx(0.106, abs=0.01)
    assert (state[:, 0] != state[:, 1]).mean() == pytest.approx(0.048, abs=0.01)


def test_shadowing_has_the_tables_spread_by_state():
    everywhere = np.random.default_rng(0).uniform(-2000, 2000, (6000, 2))
    clear, indoor = everywhere[:, 0] > 0, everywhere[:, 1] > 1000
    sf, k = FieldsOfSite(Seeds(3), "umi").shadowing_and_k(everywhere, clear, indoor)
    for here, sigma in ((clear & ~indoor, 4), (~clear & ~indoor, 7.82), (indoor, 7)):
        assert sf[here].std() == pytest.approx(sigma, rel=0.1)
    direct = clear & ~indoor
    k_db = 10 * np.log10(k[direct])
    assert k_db.mean() == pytest.approx(9.0, abs=0.6) and k_db.std() == pytest.approx(5, rel=0.1)
    assert np.corrcoef(sf[direct], k_db)[0, 1] == pytest.approx(0.5, abs=0.08)
    assert not k[~direct].any()


def test_shadowing_can_be_given_and_rural_shadowing_grows_beyond_the_breakpoint():
    places, clear = np.array([[100.0, 5.0], [9000.0, 5.0]]), np.ones(2, dtype=bool)
    far, never = np.array([False, True]), np.zeros(2, dtype=bool)
    rural = FieldsOfSite(Seeds(0), "rma")
    table, _ = rural.shadowing_and_k(places, clear, never, None, far)
    given, _ = rural.shadowing_and_k(places, clear, never, 1.0, far)
    assert table / given == pytest.approx([4.0, 6.0])


def test_devices_at_one_place_agree_and_one_more_moves_nobody():
    few = along([80.0, 80.0, 333.0], 5, model="uma", indoor_share=0.0)
    more = along([80.0, 80.0, 333.0, 90.0], 5, model="uma", indoor_share=0.0)
    for name in ("line_of_sight", "path_loss_db", "shadowing_db", "k_factor"):
        assert getattr(few, name).tolist() == getattr(more, name)[:3].tolist()
        assert getattr(few, name)[0] == getattr(few, name)[1]


def test_indoor_devices_lose_at_the_wall_and_have_no_direct_path():
    outside = along([200.0] * 4000, 2, model="uma", sight="always")
    inside = along([200.0] * 4000, 2, model="uma", sight="always", indoor_share=0.8)
    assert inside.indoor.mean() == pytest.approx(0.8, abs=0.02)
    more_db = (inside.path_loss_db - outside.path_loss_db)[inside.indoor]
    half = (12.697503 + 27.499289) / 2 + 0.5 * 25 / 3  # half of the walls are high-loss
    assert more_db.mean() == pytest.approx(half, abs=0.6)
    assert not inside.k_factor[inside.indoor].any() and outside.k_factor.all()
    cars = along([200.0] * 4000, 2, model="rma", sight="always", indoor_share=0.5)
    in_cars = (cars.path_loss_db - outside_rural())[~cars.indoor]
    assert in_cars.mean() == pytest.approx(9.0, abs=0.4)


def outside_rural():
    return along([200.0] * 4000, 2, model="rma", sight="always").path_loss_db


def test_sight_always_and_never_and_by_the_field():
    d = np.linspace(20, 400, 60)
    assert along(d, 4, sight="always").line_of_sight.all()
    assert not along(d, 4, sight="never").line_of_sight.any()
    z = RandomField(Seeds(4), "field/los", 0, 50.0).at(np.stack([d, 0 * d], axis=1))
    expected = special.ndtr(z) < line_of_sight_probability("umi", d)
    assert (along(d, 4).line_of_sight == expected).all() and expected.any()
