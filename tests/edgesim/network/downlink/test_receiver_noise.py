"""Receivers of devices whose noise figure is not that of the base station."""

import math
from pathlib import Path

import pytest

from edgesim import simulate
from edgesim.errors import ScenarioError
from edgesim.network.interference.couplings import Couplings
from edgesim.scenario import load
from tests.edgesim.network.downlink.test_sector_downlink import ends, link_of

CELL = Path(__file__).parents[4] / "scenarios" / "planning-under-fading.yaml"
STATIC = [
    "budget.latency_threshold=10 s",
    "rounds=1",
    "network.noise=-169 dBm/Hz",
    "network.channel.fading=none",
]
DOWN = "network.downlink={mode: %s, tx_power: 20 dBm%s}"


def sent(figure_db, sharers=1):
    """Bit/s of 200 MHz at 20 dBm over 100 dB, and -174 dBm/Hz plus the noise figure."""
    noise_dbm = -174.0 + figure_db + 10.0 * math.log10(200e6)
    snr = 10.0 ** ((20.0 - 100.0 - noise_dbm) / 10.0)
    return 200e6 * math.log2(1.0 + snr) / sharers


@pytest.mark.parametrize(("mode", "sharers"), [("broadcast", 1), ("unicast", 10)])
def test_a_download_has_the_noise_of_the_device(mode, sharers):
    """Without the key that of the uplink, of a noise figure of 5 dB."""
    for more, figure_db in (("", 5.0), (", noise_figure: 9 dB", 9.0)):
        run = simulate(load(CELL, [*STATIC, DOWN % (mode, more)], label="now")).device_rounds
        expected_s = run.bits_down / sent(figure_db, sharers)
        assert run.download_s.to_numpy() == pytest.approx(expected_s.to_numpy(), rel=1e-9)


def test_beside_another_sector():
    """P g / (W (N + I)) with g 1e-12 and 1e-13, N -174 dBm/Hz and 9 dB: the power over 10^0.4 in
    the noise of 5 dB.
    """
    weak = Couplings([[1e-12, 1e-13], [1e-13, 1e-12]], [0, 1])
    scenario = load(CELL, [*STATIC, DOWN % ("broadcast", ", noise_figure: 9 dB")], label="now")
    power_w = scenario.network.downlink_power_w * 0.2 / 0.1
    assert power_w == pytest.approx(0.2 * 10**-0.4, rel=1e-9)
    link = link_of(weak, interference="full")
    link.tx_power_w = power_w
    noise_w = 10e6 * 10.0 ** ((-174.0 + 9.0 - 30.0) / 10.0)
    megabits = 10.0 * math.log2(1.0 + 0.2e-12 / (noise_w + 0.2e-13))
    assert ends(link, [10.0, 10.0]) == pytest.approx([10.0 / megabits] * 2, rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ([DOWN % ("broadcast", ", noise_figure: 9 dB"), "network.noise=-110 dBm"], "noise density"),
        (["network.downlink={mode: ideal, noise_figure: 9 dB}"], "reads no noise_figure"),
        ([DOWN % ("unicast", ", noise_figure: 41 dB"), *STATIC[1:]], "at most 40"),
    ],
)
def test_mistakes(changes, part):
    with pytest.raises(ScenarioError) as refused:
        load(CELL, changes, label="now")
    assert part in str(refused.value) and "\n" not in str(refused.value)
