"""Plans count with schemes that are chosen by estimates: the distribution of what blocks carry."""

from pathlib import Path

import numpy as np
import pytest

from edgesim import simulate
from edgesim.network.adaptation.block_errors import Harq, RepeatedSchemes
from edgesim.network.adaptation.channel_estimate import (
    POINTS,
    ChannelEstimate,
    EstimatedBlocks,
    evenly_spread,
)
from edgesim.network.adaptation.link_adaptation import make_law, schemes
from edgesim.network.fading.processes import COHERENCE_RULE, BlockFading, doppler_hz
from edgesim.network.fading.rate_distribution import RateDistribution
from edgesim.scenario import load
from edgesim.scenario.radio.adaptation_schema import AdaptationSection
from edgesim.seeds import Seeds

FILE = Path(__file__).parents[4] / "scenarios" / "urban-macro.yaml"
SCHEMES = RepeatedSchemes(*schemes("64qam"), Harq())
LAW = make_law(AdaptationSection(rate="mcs", errors="expected"))
F_D = doppler_hz(3 / 3.6, 3.5e9)


def test_the_points_are_two_independent_complex_normal_amplitudes():
    scattered, noise = evenly_spread()
    assert scattered.shape == (POINTS,)
    for each in (scattered, noise):
        power = np.abs(each) ** 2
        assert power.mean() == pytest.approx(1.0, abs=2e-3)
        assert (power**2).mean() == pytest.approx(2.0, abs=2e-2)
        assert np.quantile(power, 0.05) == pytest.approx(0.051293, rel=1e-2)
        assert abs(each.mean()) < 1e-3
    assert abs((scattered * noise.conj()).mean()) < 2e-3


def test_the_quick_choice_is_that_of_the_largest_goodput():
    rng = np.random.default_rng(0)
    snr, known = 10.0 ** rng.uniform(-2.0, 3.0, (2, 2000))
    same = np.isclose(SCHEMES.quick_goodput(snr, known), SCHEMES.goodput(snr, known), rtol=1e-9)
    assert same.mean() > 0.98  # the others are known within 0.01 dB of a change of schemes
    assert SCHEMES.quick_goodput(snr, snr) == pytest.approx(SCHEMES.goodput(snr), rel=1e-2)


def test_with_a_perfect_estimate_a_block_carries_the_best_goodput():
    law = RateDistribution(1, 0.0, LAW, EstimatedBlocks(SCHEMES, 1.0, 1e12))
    snr = 10.0 ** np.arange(0.0, 2.6)
    for probability in (0.05, 0.5):
        best = SCHEMES.goodput(-snr * np.log1p(-probability))
        found = law.quantile(probability, snr)
        assert found == pytest.approx(best, rel=0.015, abs=2e-3)  # steps, and the bins of a density


@pytest.mark.parametrize("k_factor", [0.0, 4.0])
@pytest.mark.parametrize("blocks", [1, 5])
def test_quantiles_are_those_of_drawn_estimates(k_factor, blocks):
    """10 dB, 3 km/h, 8 ms, four pilots: 30,000 drawn blocks of `ChannelEstimate`."""
    count, snr = 30_000, 10.0
    fading = BlockFading(Seeds(3), count, COHERENCE_RULE / F_D, k_factor)
    estimate = ChannelEstimate(fading, Seeds(3), SCHEMES, 8e-3, 4.0)
    carried = np.zeros(count)
    for n in range(blocks):
        known = estimate.power(n, np.full(count, snr), np.arange(count))
        carried += SCHEMES.quick_goodput(snr * fading.power(n), snr * known) / blocks
    law = RateDistribution(blocks, k_factor, LAW, estimate.blocks)
    assert law.mean(snr) == pytest.approx(carried.mean(), rel=0.01)
    for probability in (0.05, 0.3):
        planned = float(law.quantile(probability, snr))
        wrong = 3.0 * (probability * (1.0 - probability) / count) ** 0.5
        assert (carried < planned).mean() == pytest.approx(probability, abs=wrong + 2e-3)
        # a block alone carries what a scheme carries: its distribution has steps
        assert law.below(planned, snr) == pytest.approx(probability, rel=0.1 / blocks)
    known_all = RateDistribution(blocks, k_factor, LAW).quantile(0.05, snr)
    assert (carried < known_all).mean() > 0.09  # a plan that takes the channel as known


@pytest.mark.slow
def test_a_run_plans_with_less_and_keeps_its_promise():
    csi = "network.adaptation={rate: mcs, errors: expected%s}"
    few = ["~schemes", "devices.0.count=5", "rounds=4", "budget.latency_threshold=200 ms"]
    few += ["network.channel.fading={kind: rayleigh, speed: 3 km/h}"]
    few += ["allocation={solver: kkt, rate: quantile}"]
    old = simulate(load(FILE, [*few, csi % ", csi: {delay: 8 ms, pilots: 4}"])).summary
    known = simulate(load(FILE, [*few, csi % "", "rounds=1"])).summary
    assert old["late_share"] <= 0.05 + 3 * (0.05 * 0.95 / 20) ** 0.5
    assert 0.03 < old["promised_late_share"] < 0.055
    assert old["rho_mean"] > known["rho_mean"]
