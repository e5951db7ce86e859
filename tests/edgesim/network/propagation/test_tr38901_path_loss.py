"""TR 38.901, clause 7.4, against values of two other implementations (Sionna, ns-3) to 1e-6 dB."""

import numpy as np
import pytest

from edgesim.network.propagation import tr38901_path_loss as tr

VALUES = """
uma 35 1.5 3.5  74.628595  87.921447 | uma 100 1.5 3.5  83.138157 103.037524
uma 500 1.5 3.5  98.269242 129.915834 | uma 1500 1.5 3.5 116.452881 148.545090
uma 500 13 3.5  98.261452 123.001995 | uma 1500 13 3.5 108.755674 141.643550
uma 250 1.5 0.7 83.841650 104.228110 | uma 250 1.5 6 96.359731 122.889175
uma 250 1.5 28 109.739867 136.269310 | umi 20 1.5 3.5  71.360167  81.187785
umi 100 1.5 3.5  85.314189 104.643832 | umi 400 1.5 3.5 103.238761 125.844828
umi 1000 1.5 3.5 119.153068 139.889203 | umi 400 10 3.5 97.924621 123.291367
umi 150 1.5 2 85.967004 105.652535 | umi 150 1.5 28 107.055697 130.065062
rma 100 1.5 0.7 70.219015 78.694397 | rma 1000 1.5 0.7 93.381607 116.444906
rma 4000 1.5 0.7 117.454874 139.695703 | rma 1000 1.5 3.5 105.459646 130.424306
rma 4000 1.5 3.5 122.092844 153.675103 | inh 5 1 3.5 55.931104 58.852216
inh 20 1 3.5 65.826560 80.759497 | inh 60 1 3.5 74.047549 98.959723
inh 20 1 30 84.487624 103.992522
"""
LINKS = [row.split() for row in VALUES.replace("\n", "|").split("|") if row.strip()]
PROBABILITIES = [
    ("uma", 100, 1.5, 0.347670837),
    ("uma", 100, 22.5, 0.554272603),
    ("uma", 500, 1.5, 0.036344584),
    ("umi", 100, 1.5, 0.230984750),
    ("rma", 1000, 1.5, 0.371576691),
    ("inh", 20, 1.0, 0.211496948),
]


@pytest.mark.parametrize("link", LINKS, ids=lambda link: "-".join(link[:4]))
def test_path_loss(link):
    model, (d2d, height, ghz, clear, blocked) = link[0], map(float, link[1:])
    base = tr.SCOPES[model].base_height_m
    found = tr.path_loss_db(model, [True, False], d2d, base, height, ghz)
    assert found == pytest.approx([clear, blocked], abs=1e-6)


def test_the_speed_of_light_is_the_rounded_one(monkeypatch):
    """UMa, line of sight, 1000 m, 5 GHz, beyond the breakpoint: 109.7252 dB, else 0.0054 less."""
    link = ("uma", True, 1000.0, 25.0, 1.5, 5.0)
    rounded = tr.path_loss_db(*link)
    assert rounded == pytest.approx(109.7252, abs=1e-4)
    monkeypatch.setattr(tr, "LIGHT_M_S", 299792458.0)
    assert tr.path_loss_db(*link) - rounded == pytest.approx(-0.0054, abs=1e-4)


@pytest.mark.parametrize(("model", "jump_db"), [("uma", 1e-9), ("umi", 1e-9), ("rma", 1.2e-4)])
def test_the_loss_is_continuous_at_the_breakpoint(model, jump_db):
    base = tr.SCOPES[model].base_height_m
    corner_m = float(tr.breakpoint_m(model, base, 1.5, 3.5))
    near, far = (
        tr.path_loss_db(model, True, corner_m * (1 + e), base, 1.5, 3.5) for e in (-1e-13, 1e-13)
    )
    assert abs(far - near) <= jump_db


def test_the_breakpoint_of_antennas_at_or_below_the_environment_is_where_distances_begin():
    """(h_BS - h_E)(h_UT - h_E) is no length there: -560 m for UMa at 0.5 m, and 69.91 dB at 100 m,
    less than in free space (83.6 dB). At 10 m, PL2 at 3.5 GHz by hand:

    28 + 40 lg 102.957 + 20 lg 3.5 - 9 lg(10^2 + 24.5^2) = 93.78 dB; with both antennas at 1 m, 28 +
    80 + 10.88 - 18 = 100.88 dB, and of UMi 32.4 + 80 + 10.88 - 19 = 104.28 dB.
    """
    cases = (("uma", 25.0, 0.5, 93.78), ("uma", 25.0, 0.1, 93.69), ("uma", 0.5, 0.5, 100.88))
    cases += (("uma", 1.0, 1.0, 100.88), ("umi", 1.0, 1.0, 104.28))
    with np.errstate(all="raise"):
        for model, base_m, device_m, loss_db in cases:
            found = tr.path_loss_db(model, True, 100.0, base_m, device_m, 3.5)
            assert found == pytest.approx(loss_db, abs=0.005), (model, base_m, device_m)
            assert tr.breakpoint_m(model, base_m, device_m, 3.5) == 10.0
        # at 20 m among roofs of 12 m, over a base station at 10 m: 28 + 80.09 + 10.88 - 9 lg 200
        found = tr.path_loss_db("uma", True, 100.0, 10.0, 20.0, 3.5, 12.0)
        assert found == pytest.approx(98.26, abs=0.005)


@pytest.mark.parametrize(("model", "distance_m", "height_m", "probability"), PROBABILITIES)
def test_line_of_sight(model, distance_m, height_m, probability):
    found = tr.line_of_sight_probability(model, distance_m, height_m)
    assert found == pytest.approx(probability, abs=1e-9)
    assert tr.line_of_sight_probability(model, 1.0, height_m) == 1.0


def test_blocked_links_lose_at_least_as_much_and_all_lose_more_with_distance():
    d = np.geomspace(10.0, 5000.0, 200)
    for model in ("uma", "umi", "rma"):
        base = tr.SCOPES[model].base_height_m
        clear, blocked = (tr.path_loss_db(model, s, d, base, 1.5, 3.5) for s in (True, False))
        assert (blocked >= clear).all()
        assert (np.diff(clear) > -2e-4).all() and (np.diff(blocked) > -2e-4).all()


def test_nearer_than_the_model_holds_counts_as_its_nearest():
    assert tr.path_loss_db("uma", True, 3.0, 25.0, 1.5, 3.5) == tr.path_loss_db(
        "uma", True, 10.0, 25.0, 1.5, 3.5
    )


def test_an_office_holds_from_1_m_in_space():
    """Table 7.4.1-1 has d_3D: 2 m below the antenna 32.4 + 17.3 lg 2 + 20 lg 3.5, dB."""
    below, beside = (tr.path_loss_db("inh", True, 0.0, 3.0, h, 3.5) for h in (1.0, 3.0))
    assert below == pytest.approx(32.4 + 5.207819 + 10.881361, abs=1e-6)
    assert beside == pytest.approx(32.4 + 10.881361, abs=1e-6)  # as at 1 m


def test_the_environment_of_high_devices():
    """At 300 m and 22.5 m C = 0.95^1.5 x 1.25 x 27 e^-2 = 4.2294: 1 m with probability 0.19123."""
    uniform = np.random.default_rng(0).random((20_000, 2))
    everywhere = np.full(20_000, 300.0)
    h_e = tr.environment_height_m(everywhere, np.full(20_000, 22.5), uniform)
    assert set(np.unique(h_e)) == {1.0, 12.0, 15.0, 18.0, 21.0}
    assert (h_e == 1.0).mean() == pytest.approx(0.19123, abs=0.01)
    assert (h_e == 12.0).mean() == pytest.approx((1 - 0.19123) / 4, abs=0.01)
    assert (tr.environment_height_m(everywhere, np.full(20_000, 12.9), uniform) == 1.0).all()
