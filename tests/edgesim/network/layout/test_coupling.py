"""Coupling gains of several cells: by hand, by position, over the edge."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

WALLS = "{model: uma, antenna: {kind: column}, walls: {indoor: 0.8, high_loss: 0, heights: floors}}"
LOG = "{model: log-distance, reference_loss: 40 dB, exponent: 3.5}"
SITES = "network.layout={kind: sites, position: {list: [[0 m, 0 m], [500 m, 0 m]]}}"
NO_SHADOW = ["network.channel.shadowing=none", "network.channel.fading=none"]


def test_log_distance_by_hand(dropped):
    """40 dB + 35 lg d at 100 m: 110 dB; at 400 m 131.0721 dB."""
    more = [SITES, "network.carrier=null", "devices.0.position={disc: 5 m}", *NO_SHADOW]
    coupling, _ = dropped(1, path_loss=LOG, more=more)
    links = coupling.at(np.array([[100.0, 0.0]]))
    assert_allclose(10.0 * np.log10(links.coupling), [[-110.0, -131.0721]], atol=1e-4)
    assert links.serving.tolist() == [0]
    assert coupling.at(np.array([[251.0, 0.0]])).serving.tolist() == [1]


def test_an_antenna_by_hand(dropped):
    """UMa, line of sight, 3.5 GHz, 100 m: 83.138157 dB.

    Of the element, 30 degrees off the boresight at zenith 90 + atan(23.5 / 100) = 103.2247 deg:
    8 - 12 (30 / 65)^2 - 12 (13.2247 / 65)^2 = 4.947 dB; the second sector is 90 degrees off.
    """
    loss = "{model: uma, los: always, antenna: {kind: element}}"
    coupling, _ = dropped(1, path_loss=loss, more=NO_SHADOW)
    links = coupling.at(np.array([[100.0, 0.0]]))
    zenith = 12.0 * (np.degrees(np.arctan(0.235)) / 65.0) ** 2
    gain = 8.0 - np.minimum(12.0 * (np.array([30.0, 150.0, 90.0]) / 65.0) ** 2, 30.0) - zenith
    gain = np.maximum(gain, -22.0)
    assert_allclose(10.0 * np.log10(links.coupling[0, :3]), gain - 83.138157, atol=1e-5)
    assert links.line_of_sight.all() and links.coupling.shape == (1, 57)


def test_sectors_of_a_site_share_all_but_the_antenna(dropped):
    coupling, position_m = dropped(40, path_loss="{model: uma, antenna: {kind: element}}")
    links = coupling.at(position_m)
    ratio_db = 10.0 * np.log10(links.coupling[:, 0] / links.coupling[:, 1])
    offset = coupling.sites.offset_m(0, position_m)
    gain = [coupling.gain_db(offset, coupling.drop_m, deg) for deg in (30.0, 150.0)]
    assert_allclose(ratio_db, gain[0] - gain[1], atol=1e-9)


def test_coupling_is_a_function_of_device_and_position(dropped):
    coupling, position_m = dropped(60, path_loss=WALLS)
    everybody = coupling.at(position_m)
    some = np.array([7, 3, 44, 3])
    again = coupling.at(position_m[some], some)
    for name in ("coupling", "line_of_sight", "k_factor", "serving"):
        assert getattr(again, name).tolist() == getattr(everybody, name)[some].tolist()
    more, _ = dropped(61, path_loss=WALLS)
    assert more.at(position_m, np.arange(60)).coupling.tolist() == everybody.coupling.tolist()
    # at one place outdoor devices of one height agree
    outdoor, _ = dropped(2)
    same = outdoor.at(np.array([[120.0, 40.0], [120.0, 40.0]])).coupling
    assert same[0].tolist() == same[1].tolist()


def test_a_step_of_a_metre_changes_little(dropped):
    coupling, position_m = dropped(300)
    here, there = coupling.at(position_m), coupling.at(position_m + np.array([0.6, 0.8]))
    same = here.line_of_sight.repeat(3, axis=1) == there.line_of_sight.repeat(3, axis=1)
    step_db = np.abs(10.0 * np.log10(there.coupling / here.coupling))[same]
    assert np.median(step_db) < 1.0 and np.mean(same) > 0.95


def test_a_network_that_wraps_around_looks_the_same_from_its_copies(dropped):
    coupling, position_m = dropped(50)
    copies = [coupling.at(position_m + move) for move in coupling.sites.images_m]
    for copy in copies[1:]:
        assert copy.serving.tolist() == copies[0].serving.tolist()
        assert_allclose(copy.coupling, copies[0].coupling, rtol=1e-6)


def test_the_first_site_of_a_layout_is_the_single_cell(dropped):
    """Its fields, walls and draws are those of a run of one cell."""
    place = ["devices.0.position={ring: [35 m, 200 m]}"]
    loss = "{model: uma, antenna: {kind: column, azimuth: 30 deg}, walls: {indoor: 0.5}}"
    one, position_m = dropped(30, path_loss=loss, more=[*place, "network.layout=single"])
    many, also_m = dropped(30, path_loss=loss, more=place)
    assert position_m.tolist() == also_m.tolist()
    single, several = one.at(position_m), many.at(position_m)
    assert single.coupling.shape == (30, 1)
    assert single.coupling[:, 0].tolist() == several.coupling[:, 0].tolist()


def test_floors_of_a_building_are_3_m_apart(dropped):
    coupling, _ = dropped(4000, path_loss=WALLS)
    height_m = 25.0 - coupling.drop_m
    assert set(np.unique(height_m)) == {1.5 + 3.0 * n for n in range(8)}
    # N in 4..8, n in 1..N: the mean floor is (1 + 6) / 2, its height 9 m; 80 % are indoors
    assert height_m.mean() == pytest.approx(0.8 * 9.0 + 0.2 * 1.5, abs=0.25)


def test_devices_are_beyond_the_model_by_their_own_site_only(dropped):
    """Others are farther than 5000 m from most sites of a row, and nobody minds."""
    row = "network.layout={kind: sites, position: {list: [[0 m, 0 m], [6000 m, 0 m]]}}"
    place = "devices.0.position={list: [[100 m, 0 m], [5900 m, 0 m], [6000 m, 3 m]]}"
    coupling, position_m = dropped(3, path_loss="{model: uma}", more=[row, place])
    links = coupling.at(position_m)
    assert links.distance_m[:, 0] == pytest.approx([100.0, 5900.0, np.hypot(6000.0, 3.0)])
    (note,) = links.beyond_scope
    assert note.sentence.startswith("1 of 3 devices are nearer than 10 m")
