"""NR resource grids: peak rates of TS 38.306, clause 4.1.2, to the bit, and TDD shares by hand."""

from pathlib import Path

import pytest

from edgesim.network.make_channel import make_channel
from edgesim.runs.run import feasibility
from edgesim.runs.setup import set_up
from edgesim.scenario import load
from edgesim.scenario.radio import numerology as nr

RATES = [  # MHz, kHz, layers, Qm, overhead: bit/s
    (100, 30, 4, 8, 0.14, 2_337_000_120),
    (100, 30, 1, 8, 0.08, 625_011_660),
    (20, 15, 1, 6, 0.08, 91_004_445),
]


@pytest.mark.parametrize(("mhz", "khz", "layers", "qm", "overhead", "rate"), RATES)
def test_peak_rates(mhz, khz, layers, qm, overhead, rate):
    blocks = nr.resource_blocks(mhz * 1e6, khz * 1e3)
    w_hz = nr.occupied_hz(blocks, khz * 1e3)
    found = layers * qm * 948 / 1024 * w_hz * nr.resource_share(overhead)
    assert found == pytest.approx(rate, abs=1.0)


def test_blocks_and_bands():
    """106 x 180 kHz, 273 x 360 kHz, 51 x 360 kHz; no 20 MHz channel at 120 kHz."""
    assert nr.occupied_hz(nr.resource_blocks(20e6, 15e3), 15e3) == 19.08e6
    assert nr.occupied_hz(nr.resource_blocks(100e6, 30e3), 30e3) == 98.28e6
    assert nr.occupied_hz(nr.resource_blocks(20e6, 30e3), 30e3) == 18.36e6
    assert nr.resource_blocks(20e6, 120e3) is None and nr.resource_blocks(20.5e6, 15e3) is None


@pytest.mark.parametrize(
    ("pattern", "special", "up", "down"),
    [("DDDSU", (10, 2, 2), 16 / 70, 52 / 70), ("DDDDDDDSUU", (6, 4, 4), 32 / 140, 104 / 140)],
)
def test_shares_of_a_pattern(pattern, special, up, down):
    assert nr.air_shares(pattern, special) == pytest.approx((up, down), rel=1e-15)
    assert nr.is_pattern(pattern)


@pytest.fixture
def urban(tmp_path):
    """The urban scenario without network.bandwidth: its carrier gives one."""
    text = (Path(__file__).parents[4] / "scenarios" / "urban-macro.yaml").read_text("utf-8")
    (tmp_path / "urban.yaml").write_text(text.replace("  bandwidth: 20 MHz\n", ""), "utf-8")
    return tmp_path / "urban.yaml"


def test_a_scenario_sends_over_its_resource_blocks(urban):
    """51 blocks of 360 kHz; up (14/15) 0.92 16/70 of W log2(1 + SNR), down (14/15) 0.86 52/70."""
    carrier = "network.carrier={frequency: 3.5 GHz, bandwidth: 20 MHz, tdd: DDDSU}"
    scenario = load(urban, ["~schemes", carrier, "devices.0.count=2"])
    setup = set_up(scenario)
    channel = setup.channel
    assert channel.bandwidth_hz == 18.36e6
    assert channel.resource_share == pytest.approx(14 / 15 * 0.92 * 16 / 70, rel=1e-14)
    snr_1 = channel.noise_w_per_hz * 18.36e6  # the gain with SNR 1 over the whole band at 1 W
    assert channel.rate_bps(1.0, 1.0, snr_1) == pytest.approx(18.36e6 * channel.resource_share)
    (urban.parent / "again.yaml").write_text(scenario.to_yaml(), "utf-8")
    assert load(urban.parent / "again.yaml").digest() == scenario.digest()
    assert scenario.network.carrier.resource_shares[1] == pytest.approx(14 / 15 * 0.86 * 52 / 70)
    whole = make_channel(
        load(urban, ["~schemes", "network.bandwidth=20 MHz"]).network, setup.fleet, setup.seeds
    )
    assert whole.resource_share == 1.0 and whole.bandwidth_hz == 20e6


@pytest.mark.parametrize(
    ("frequency", "warned"),
    [("7.2 GHz", True), ("7.125 GHz", False), ("410 MHz", False), ("400 MHz", True)],
)
def test_a_grid_of_fr1_at_another_frequency_is_a_warning(urban, frequency, warned):
    """TS 38.101-1, Table 5.1-1: 410 MHz to 7125 MHz."""
    carrier = f"network.carrier={{frequency: {frequency}, bandwidth: 20 MHz}}"
    loss = "{model: log-distance, reference_loss: 38.5 dB, exponent: 3}"
    scenario = load(urban, [carrier, f"network.channel={{path_loss: {loss}}}"], label="now")
    found = [each for each in feasibility(scenario).warnings if "beyond FR1" in each]
    assert len(found) == warned
