"""Spectral efficiency under Rayleigh fading: closed forms, and sums by an independent draw."""

import numpy as np
import pytest

from edgesim.network.adaptation.link_adaptation import make_law, schemes
from edgesim.network.fading.block_rate import LOGITS, MANY, block_rate
from edgesim.network.fading.rate_distribution import RateDistribution, logit_at
from edgesim.scenario.radio.adaptation_schema import AdaptationSection
from solvers.rate_laws.efficiency_laws import HullLaw

TABLE = [
    # snr in dB: mean, standard deviation, 1 %, 5 % and 10 % quantile of one block
    (0, 0.860347, 0.605761, 0.014427, 0.072165, 0.144517),
    (10, 2.906515, 1.315007, 0.138164, 0.597348, 1.038159),
    (20, 5.884048, 1.703670, 1.003626, 2.615729, 3.528078),
    (30, 9.143619, 1.820175, 3.466018, 5.708554, 6.732819),
]


@pytest.mark.parametrize(("decibel", "mean", "deviation", *"abc"), TABLE)
def test_one_block(decibel, mean, deviation, a, b, c):
    law, snr = RateDistribution(), 10.0 ** (decibel / 10.0)
    assert law.mean(snr) == pytest.approx(mean, abs=1e-6)
    quantiles = [float(law.quantile(p, snr)) for p in (0.01, 0.05, 0.1)]
    assert quantiles == pytest.approx([a, b, c], abs=1e-6)
    assert law.below(quantiles, np.full(3, snr)) == pytest.approx([0.01, 0.05, 0.1], rel=1e-9)
    assert block_rate(decibel, 0.0).cumulants.variance ** 0.5 == pytest.approx(deviation, abs=1e-6)


@pytest.mark.parametrize(
    ("blocks", "quantile"), [(2, 1.33220), (5, 1.92516), (20, 2.42011)], ids=str
)
def test_several_blocks_at_10_db(blocks, quantile):
    """5 % quantiles of ten million drawn means, whose standard error is below 6e-4."""
    law = RateDistribution(blocks)
    assert law.quantile(0.05, 10.0) == pytest.approx(quantile, abs=1.5e-3)
    normal = law.mean(10.0) - 1.644854 * 1.315007 / blocks**0.5
    assert law.quantile(0.05, 10.0) < normal  # which is too optimistic


def test_the_expansion_continues_the_convolution():
    """One block less is convolved, and the quantiles rise smoothly over the change."""
    few, many, more = (RateDistribution(MANY + n).quantile(0.05, 10.0) for n in (-1, 0, 1))
    assert many - few == pytest.approx(more - many, rel=0.1)


@pytest.mark.parametrize("blocks", [1, 3, 40])
@pytest.mark.parametrize("k_factor", [0.0, 4.0])
def test_quantile_and_probability_are_inverse_between_whole_decibels(blocks, k_factor):
    law, snr = RateDistribution(blocks, k_factor), 10.0 ** (np.array([-3.3, 7.77, 21.4]) / 10.0)
    assert law.below(law.quantile(0.05, snr), snr) == pytest.approx(0.05, rel=2e-4)
    assert (law.quantile(0.05, snr) < law.mean(snr)).all()


def test_no_gain_carries_nothing():
    for blocks in (1, 4):
        law = RateDistribution(blocks)
        assert law.mean(0.0) == law.quantile(0.05, 0.0) == 0.0
        assert law.below(0.0, 10.0) == 0.0
        assert law.below(np.inf, 10.0) == 1.0


LAWS = {
    "mcs": make_law(AdaptationSection(rate="mcs")),
    "truncated": make_law(AdaptationSection(rate="truncated")),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("decibel", [-4.0, 9.3, 24.0])
@pytest.mark.parametrize("blocks", [1, 6, 50])
def test_link_adaptation_against_drawn_means(law, decibel, blocks):
    """60,000 means of eta(snr |h|^2); their standard error is below half a percent."""
    snr = 10.0 ** (decibel / 10.0)
    power = np.random.default_rng(7).exponential(size=(60_000, blocks))
    drawn = law.efficiency(snr * power).mean(axis=1)
    rates = RateDistribution(blocks, 0.0, law)
    assert rates.mean(snr) == pytest.approx(drawn.mean(), rel=5e-3)
    assert rates.quantile(0.05, snr) == pytest.approx(np.quantile(drawn, 0.05), rel=1.5e-2)
    quarter = float(np.quantile(drawn, 0.25))  # below what the highest scheme gives
    assert rates.below(quarter, snr) == pytest.approx(0.25, abs=1e-2)


def test_the_inverse_of_an_efficiency():
    bits = np.array([0.01, 0.5, 2.0, 2.9])
    for law in LAWS.values():
        assert law.efficiency(law.snr_for_bits(bits)) == pytest.approx(bits, rel=1e-12)
        assert law.snr_for_bits(np.array([99.0])) == np.inf


@pytest.mark.parametrize("decibel", [39, 42, 47])
def test_a_law_at_its_largest_value_has_quantiles(decibel):
    """K of 17.5 dB: all of the probability of every block is where the law is at its largest."""
    law = make_law(AdaptationSection(rate="mcs", errors="expected"))
    mean = RateDistribution(5, 10.0**1.75, law)
    low, high = (float(mean.quantile(p, 10.0 ** (decibel / 10.0))) for p in (0.05, 0.5))
    assert low == pytest.approx(law.bits[-1], rel=1e-4) and low <= high <= law.bits[-1] * (1 + 1e-9)


def test_no_quantile_exceeds_the_largest_value_of_a_law():
    """Between whole decibels at the jump the cubic overshoots, and no ratio would carry that."""
    law = make_law(AdaptationSection(rate="mcs"))
    snr = 10.0 ** np.arange(2.0, 5.0, 0.013)
    for blocks in (5, 20):
        planned = RateDistribution(blocks, law=law).quantile(0.05, snr)
        assert planned.max() == pytest.approx(law.bits[-1], rel=2e-4)
        assert np.isfinite(law.snr_for_bits(planned)).all()


@pytest.mark.parametrize("blocks", [2, 7, 15])
@pytest.mark.parametrize("decibel", [47.9, 48.0])
def test_just_below_the_largest_value_of_a_law_one_weak_block_is_late(blocks, decibel):
    """There 1 - exp(-N / g) was 1: a plan whose rate was 2e-5 above the quantile promised that."""
    law, snr = HullLaw(*schemes("64qam")), 10.0 ** (decibel / 10.0)
    exact = -np.expm1(-blocks * law.snr[-1] / snr)
    mean, needed = RateDistribution(blocks, law=law), law.bits[-1] * (1.0 - np.logspace(-9, -5, 9))
    assert mean.below(needed, snr) == pytest.approx(np.full(9, exact), rel=0.02)
    assert mean.below(law.bits[-1] * (1.0 + 1e-6), snr) == 1.0


@pytest.mark.parametrize("length", [1.2, 1.9, 3.7])
@pytest.mark.parametrize("decibel", [30.0, 33.0, 36.0])
def test_an_upload_that_touches_more_blocks_than_it_fills_is_in_time(length, decibel):
    """40,000 uploads that begin anywhere in a block; 5 % may have less than is planned.

    Of those of 1.9 blocks at 33 dB 10.5 % had less, as the plan was that of one block.
    """
    law, snr, uploads = HullLaw(*schemes("64qam")), 10.0 ** (decibel / 10.0), 40_000
    random = np.random.default_rng(3)
    start, edges = random.random((uploads, 1)), np.arange(7)
    inside = np.minimum(edges[1:], start + length) - np.maximum(edges[:-1], start)
    power = random.exponential(size=inside.shape)
    carried = (np.maximum(inside, 0.0) * law.efficiency(snr * power)).sum(axis=1) / length
    touched = int(np.ceil(length + 1.0))
    mean = RateDistribution(int(length), law=law, touched=touched)
    planned = float(mean.quantile(0.05, snr)) * (1.0 - 1e-9)
    assert (carried < planned).mean() <= 0.05 + 3 * (0.05 * 0.95 / uploads) ** 0.5
    assert 0.02 < mean.below(planned, snr) <= 0.0505


@pytest.mark.parametrize("blocks", [31, 32, 200, 1000, 20_000])
@pytest.mark.parametrize("decibel", [40.0, 45.0, 50.0, 55.0, 60.0])
def test_of_many_blocks_near_the_largest_value_of_a_law_some_are_weak(blocks, decibel):
    """Of more than 31 blocks plans took 31: of 1000 at 50 dB 58 % had less, where 5 % may."""
    law, snr, drawn = HullLaw(*schemes("64qam")), 10.0 ** (decibel / 10.0), 8_000
    random, chance = np.random.default_rng(4), -np.expm1(-law.snr[-1] / snr)
    # the weak ones of each mean alone: all others carry the largest value
    short = np.zeros(drawn)
    for i, weak in enumerate(random.binomial(blocks, chance, drawn).tolist()):
        power = -np.log1p(-chance * random.random(weak))
        short[i] = (law.bits[-1] - law.efficiency(snr * power)).sum()
    carried = law.bits[-1] - short / blocks
    mean = RateDistribution(blocks, law=law)
    planned = float(mean.quantile(0.05, snr))
    late, error = float((carried < planned * (1.0 - 1e-9)).mean()), 3 * (0.05 * 0.95 / drawn) ** 0.5
    assert late <= 0.05 + error
    assert mean.below(planned, snr) == pytest.approx(late, abs=error)
    # not on the safe side by more than the resolution of a bin, or of decibels
    assert planned == pytest.approx(np.quantile(carried, 0.05), rel=2e-3 if blocks < MANY else 5e-4)


def test_quantiles_are_inverted_for_all_devices_as_for_each():
    rng = np.random.default_rng(1)
    quantiles = np.sort(rng.random((len(LOGITS), 60)), axis=0)
    quantiles[40:70, :30] = quantiles[40, :30]  # a law at its largest value: the last of equal ones
    quantiles[:, 7] = 0.5
    efficiency = rng.uniform(-0.1, 1.1, 60)
    efficiency[:9] = quantiles[[0, 5, 39, 40, 55, 70, 112, 3, 111], np.arange(9)]
    efficiency[59] = np.inf
    each = [
        np.interp(e, q, LOGITS, left=-np.inf, right=np.inf)
        for e, q in zip(efficiency, quantiles.T, strict=True)
    ]
    assert logit_at(efficiency, quantiles).tobytes() == np.array(each).tobytes()


@pytest.mark.parametrize("law", [None, HullLaw(*schemes("64qam"))])
def test_far_below_the_noise_rates_are_proportional_to_the_ratio(law):
    """Below -59 dB they stayed as they were there, 700 times too high at -90 dB."""
    snr = 10.0 ** np.array([-5.8, -7.0, -9.0])
    for k_factor, blocks in ((0.0, 5), (8.0, 1), (8.0, 40)):
        rate = RateDistribution(blocks, k_factor, law)
        for found in (rate.mean(snr), rate.quantile(0.05, snr)):
            assert found / snr == pytest.approx(np.full(3, found[0] / snr[0]), rel=1e-3)
        needed = rate.quantile(0.05, snr)
        assert rate.below(needed, snr) == pytest.approx(np.full(3, 0.05), rel=1e-2)
