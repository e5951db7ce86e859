"""Fading of interfering links: moments, independence, and the rates that follow by hand."""

from pathlib import Path

import numpy as np
import pytest

from edgesim import simulate
from edgesim.errors import ScenarioError
from edgesim.network.fading.cross_links import CrossLinkFading
from edgesim.network.fading.processes import BlockFading
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.moving_sectors import MovingSectors
from edgesim.network.interference.sector_bands import SectorBands
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.interference.uplink_rates import UplinkRates
from edgesim.network.layout.coupling import SectorLinks
from edgesim.scenario import load
from edgesim.seeds import Seeds
from fl.contracts import Grant

FILE = Path(__file__).parents[4] / "scenarios" / "network.yaml"
SMALL = ["network.layout={kind: hex, rings: 0}", "devices.0.count=9", "rounds=1"]
SMALL += ["learning.dataset=none", "learning.partition=none"]
ALL = "network.channel.fading={kind: rician, k: table, speed: 3 km/h, links: all}"


def test_powers_have_mean_1_and_links_are_independent():
    k_factor = np.repeat([[0.0, 8.0]], 20_000, axis=0)
    power = CrossLinkFading(Seeds(1), k_factor).powers(4)
    assert power.mean(axis=0) == pytest.approx([1.0, 1.0], abs=0.03)
    assert power.var(axis=0) == pytest.approx([1.0, 17 / 81], rel=0.06)
    assert abs(np.corrcoef(power.T)[0, 1]) < 0.03
    rayleigh = CrossLinkFading(Seeds(1), np.zeros((20_000, 2))).powers(4)
    assert rayleigh.mean(axis=0) == pytest.approx([1.0, 1.0], abs=0.03)
    own = BlockFading(Seeds(1), 20_000, 1.0).power(4)
    assert abs(np.corrcoef(own, rayleigh[:, 0])[0, 1]) < 0.03


def test_further_devices_and_sectors_change_nobodys_fading():
    few, more = (CrossLinkFading(Seeds(1), np.zeros(shape)) for shape in ((3, 2), (5, 4)))
    assert more.powers(7)[:3, :2].tolist() == few.powers(7).tolist()
    few.powers(1), few.powers(2), few.powers(3)
    assert few.powers(7).tolist() == more.powers(7)[:3, :2].tolist()
    assert few.powers(8).tolist() != few.powers(7).tolist()


def test_interference_over_faded_links_by_hand():
    """SINR_0 = p g_00 |h_0|^2 / (b W (N0 + p g_10 |h_10|^2 / W)), anew in every block."""
    gain = np.array([[1e-10, 1e-11], [3e-11, 2e-10]])
    couplings, fading = Couplings(gain, [0, 1]), BlockFading(Seeds(0), 2, 5e-3)
    bands, cross = SectorBands(couplings, False), CrossLinkFading(Seeds(0), np.zeros((2, 2)))
    about = {"bandwidth_hz": 1e7, "noise_w_per_hz": 1e-20, "fading": fading}
    rates = UplinkRates(couplings, SectorChannel(couplings, cross=cross, **about), bands)
    bands.grant([Grant(k, 0.5, 0.0, 1e9, 0.2) for k in (0, 1)])
    rates.power_w[:] = 0.2
    bands.begin(0, 0.5), bands.begin(1, 0.5)
    for time_s, n in ((0.0, 0), (0.0049, 0), (0.0050, 1), (0.0123, 2)):
        h, own = cross.powers(n), fading.power(n)
        density = 1e-20 + 0.2 * np.array([3e-11 * h[1, 0], 1e-11 * h[0, 1]]) / 1e7
        sinr = 0.2 * couplings.own * own / (0.5e7 * density)
        rate_bps, bits, _ = rates(np.ones(2, dtype=bool), time_s)
        assert rate_bps == pytest.approx(0.5e7 * np.log2(1 + sinr), rel=1e-12)
        assert bits == pytest.approx(np.log2(1 + sinr), rel=1e-12)
    alone = rates.interference(np.array([True, False]), 0.0)
    assert alone == pytest.approx([0.0, 0.2 * 1e-11 * cross.powers(0)[0, 1] / 1e7])


GAIN = np.array([[1e-10, 1e-11], [3e-11, 2e-10]])


class Clearing:
    """Two devices that a building hides from both sectors until 1 s, when nothing fades more."""

    hidden, clear = (
        SectorLinks(GAIN, np.full((2, 2), k > 0.0), np.full((2, 2), k), np.ones((2, 2)))
        for k in (0.0, 1e15)
    )

    def links(self, time_s):
        return self.hidden if time_s < 1.0 else self.clear

    def until(self, time_s):
        return []


@pytest.mark.parametrize("by_place", [True, False])
def test_interfering_links_have_the_k_factors_of_now(by_place):
    """With a direct path alone |h|^2 is 1: I = p g / W, 0.2 x 3e-11 / 1e7 and 0.2 x 1e-11 / 1e7."""
    couplings = Couplings(GAIN, [0, 1])
    cross = CrossLinkFading(Seeds(0), Clearing.hidden.k_factor)
    about = {"bandwidth_hz": 1e7, "noise_w_per_hz": 1e-20, "cross": cross}
    channel = SectorChannel(couplings, fading=BlockFading(Seeds(0), 2, 5e-3), **about)
    walk = MovingSectors(Clearing(), channel, np.array([0, 1]), k_by_place=by_place)
    rates = UplinkRates(couplings, channel, SectorBands(couplings))
    rates.power_w[:] = 0.2
    for time_s, fades in ((0.5, True), (1.5, not by_place)):
        walk.follow(time_s), walk.update_k()
        interference = rates.interference(np.ones(2, dtype=bool), time_s)
        own, others = channel.gains(time_s) / [1e-10, 2e-10], interference / [6e-19, 2e-19]
        for power in (own, others):
            assert (power == pytest.approx(1.0, rel=1e-6)) is not fades


@pytest.mark.slow
def test_a_run_with_all_links_fading_plans_the_same_and_flows_differently():
    """Plans count with mean gains over the links of others."""
    own, both = (simulate(load(FILE, [*SMALL, *more])) for more in ([], [ALL]))
    for column in ("rho", "share"):
        assert both.device_rounds[column].tolist() == own.device_rounds[column].tolist()
    assert (both.device_rounds["rate_bps"] != own.device_rounds["rate_bps"]).any()


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ([ALL, "network.layout=single", "devices.0.position={disc: 99 m}"], "without other cells"),
        ([ALL, "network.interference=full"], "counts with mean gains"),
        ([ALL.replace("links", "process: clarke, links")], "do not have; write process: block"),
        (["network.channel.fading={kind: none, links: all}"], "reads no links"),
        (["network.channel.inter_site=1.5"], "at most 1"),
        (
            ["network.channel.inter_site=0.5", "network.channel.shadowing=none"],
            "is read with shadowing only",
        ),
    ],
)
def test_what_does_not_fit_is_one_sentence(changes, part):
    with pytest.raises(ScenarioError) as refused:
        load(FILE, [*SMALL, *changes])
    assert part in str(refused.value) and "\n" not in str(refused.value)
