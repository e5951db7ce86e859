"""Uploads with one scheme at a time: what it costs, and runs beside those that split shares."""

from pathlib import Path

import numpy as np
import pytest

from edgesim import simulate
from edgesim.errors import ScenarioError
from edgesim.network.adaptation.link_adaptation import make_law, make_single_scheme
from edgesim.scenario import load
from edgesim.scenario.radio.adaptation_schema import AdaptationSection

FILE = Path(__file__).parents[4] / "scenarios" / "urban-macro.yaml"
FIVE = [
    "~schemes",
    "allocation={solver: kkt}",
    "rounds=1",
    "network.channel.fading=none",
    "devices.0.count=5",
]
SPLIT = "network.adaptation={{rate: mcs, errors: {}, split: {}}}"


def both(table, errors="none"):
    """What plans count with, and what one scheme at a time gives."""
    section = AdaptationSection(rate="mcs", table=table, errors=errors, split=False)
    return make_law(section), make_single_scheme(section)


@pytest.mark.parametrize(("table", "mean", "worst"), [("64qam", 4, 24), ("256qam", 6.5, 38)])
def test_one_scheme_at_a_time_loses_a_few_percent(table, mean, worst):
    """Percent over log-uniform ratios up to 30 dB, and just below a step."""
    law, alone = both(table)
    snr = 10.0 ** np.linspace(-0.8, 3.0, 40_001)
    lost = 100.0 * (1.0 - alone.efficiency(snr) / law.efficiency(snr))
    assert lost.mean() == pytest.approx(mean, abs=0.25)
    assert lost.max() == pytest.approx(worst, abs=0.5) and lost.min() == 0.0
    assert alone.efficiency(law.snr) == pytest.approx(law.bits, rel=1e-12)  # at the corners


@pytest.mark.parametrize("errors", ["none", "expected"])
def test_below_the_first_scheme_a_part_of_the_share_is_used(errors):
    law, alone = both("64qam", errors)
    snr = law.least * np.array([0.0, 0.01, 0.5, 1.0])
    assert alone.efficiency(snr) == pytest.approx(law.efficiency(snr), rel=1e-12)
    above = law.least * np.geomspace(1.0, 1e4, 2000)
    assert (alone.efficiency(above) <= law.efficiency(above) * 1.001).all()


def test_without_the_key_uploads_are_split():
    assert make_single_scheme(AdaptationSection(rate="mcs")) is None
    assert make_single_scheme(AdaptationSection(rate="truncated")) is None


@pytest.mark.parametrize("errors", ["none", "drawn"])
def test_a_run_is_planned_for_split_shares_and_sends_the_staircase(errors):
    """The plans are equal; a device is late by what its scheme carries less."""
    split, single = (
        simulate(load(FILE, [*FIVE, SPLIT.format(errors, s)])) for s in ("true", "false")
    )
    a, b = split.device_rounds, single.device_rounds
    assert b["rho"].tolist() == a["rho"].tolist() and b["share"].tolist() == a["share"].tolist()
    law, alone = both("64qam", errors)
    ratio = (b["rate_bps"] / a["rate_bps"]).to_numpy()
    assert (ratio < 1.001).all() and (ratio < 0.99).any() and (ratio > 0.75).all()
    if errors == "none":
        assert split.summary["late_share"] == 0.0 < single.summary["late_share"]
        used_hz = a["share"].to_numpy() * load(FILE, FIVE).network.bandwidth_hz
        snr = law.snr_for_bits(a["rate_bps"].to_numpy() / used_hz)
        assert b["rate_bps"].to_numpy() == pytest.approx(used_hz * alone.efficiency(snr), rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        (["network.adaptation={rate: mcs, errors: expected, csi: {}, split: false}"], "beside csi"),
        ([SPLIT.format("none", "false"), "network.uplink.share=fair"], "which splits shares"),
    ],
)
def test_what_does_not_fit_is_one_sentence(changes, part):
    with pytest.raises(ScenarioError) as refused:
        load(FILE, ["~schemes", *changes])
    assert part in str(refused.value) and "\n" not in str(refused.value)
