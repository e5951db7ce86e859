"""The spectral efficiency of downlinks where it is not that of uploads: TR 36.942, A.1 and A.2."""

import math
from pathlib import Path

import numpy as np
import pytest
import simpy

from edgesim import simulate
from edgesim.network.adaptation.link_adaptation import make_downlink_law, make_law
from edgesim.network.downlink.broadcast import BroadcastDownlink
from edgesim.network.fading.processes import BlockFading
from edgesim.network.interference.couplings import Couplings
from edgesim.network.planned_gains import PlannedGains
from edgesim.scenario import load
from edgesim.scenario.radio.adaptation_schema import AdaptationSection
from edgesim.seeds import Seeds
from tests.edgesim.network.downlink.test_sector_downlink import link_of, planned_s

CELL = Path(__file__).parents[4] / "scenarios" / "planning-under-fading.yaml"
STATIC = [
    "budget.latency_threshold=10 s",
    "rounds=1",
    "network.noise=-169 dBm/Hz",
    "network.channel.fading=none",
    "network.adaptation={rate: truncated}",
]
TRUNCATED = AdaptationSection(rate="truncated")
LAWS = {"law": make_law(TRUNCATED), "downlink_law": make_downlink_law(TRUNCATED)}
MOST = 5.980336  # 0.6 log2(1 + 10^3)


@pytest.mark.parametrize(("mode", "sharers"), [("broadcast", 1), ("unicast", 10)])
@pytest.mark.parametrize(("power_dbm", "bits_per_hz"), [(20, 1.388233), (50, MOST)])
def test_a_download_has_the_truncated_law_of_the_downlink(mode, sharers, power_dbm, bits_per_hz):
    """200 MHz over 100 dB: a ratio of power + 69 - 83.0103 dB, of 20 dBm 3.971641."""
    down = f"network.downlink={{mode: {mode}, tx_power: {power_dbm} dBm}}"
    run = simulate(load(CELL, [*STATIC, down], label="now")).device_rounds
    expected_s = run.bits_down / (200e6 * bits_per_hz / sharers)
    assert run.download_s.to_numpy() == pytest.approx(expected_s.to_numpy(), rel=1e-6)


@pytest.mark.parametrize("rate", ["mean", "now"])
def test_plans_count_with_it(rate):
    """At 120 dB of signal to noise every fade is above 30 dB: 10 Mbit over 10 MHz."""
    fading, one = BlockFading(Seeds(0), 1, 1.0), Couplings([[1e-4]], [0])
    alone_s = pytest.approx([1.0 / MOST], rel=1e-6)
    for mode in ("broadcast", "unicast"):
        link = link_of(one, mode, options={"fading": fading, **LAWS})
        link.tx_power_w = 1e16 * link.channel.noise_over_w(10e6)
        assert planned_s(link, [10.0], rate) == alone_s
    cell = BroadcastDownlink(simpy.Environment(), link.channel, link.tx_power_w)
    gains = PlannedGains(link.channel, rate)
    assert cell.seconds(np.array([10e6]), np.array([0]), gains) == alone_s


def test_other_laws_are_those_of_uploads():
    assert make_downlink_law(None) is None
    assert make_downlink_law(AdaptationSection(rate="mcs")) is None
    assert LAWS["law"].efficiency(1e9) == pytest.approx(0.4 * math.log2(1.0 + 10**2.2))
