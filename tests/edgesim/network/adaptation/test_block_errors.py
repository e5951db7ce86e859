"""Block errors and repetitions: numbers by hand."""

import numpy as np
import pytest

from edgesim.network.adaptation.block_errors import CURVE_DB, Harq, RepeatedSchemes, block_error
from edgesim.network.adaptation.link_adaptation import make_law, schemes
from edgesim.scenario.radio.adaptation_schema import AdaptationSection


def test_the_curve_is_one_half_at_g50_and_a_tenth_at_g10():
    assert block_error(5.0, 5.0) == 0.5
    assert block_error(5.0 + 2.197225 * CURVE_DB, 5.0) == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize(
    ("lost", "mean", "goodput"),
    [([0.1, 0.01, 0.001, 0.0001], 1.111, 0.9), ([0.1, 1e-4], 1.1, 0.909)],
)
def test_transmissions_and_goodput(lost, mean, goodput):
    """1 + 0.1 + 0.01 + 0.001 = 1.111, and (1 - 1e-4) / 1.111 = 0.9."""
    lost = np.array(lost)
    found, _ = Harq(most=len(lost)).transmissions(lost)
    assert found == pytest.approx(mean, abs=1e-12)
    assert (1 - lost[-1]) / found == pytest.approx(goodput, abs=1e-4)


def test_chase_combining_at_three_ratios():
    """g50 5 dB, w 0.2 dB, at most four: 0.909297, 0.666667, 0.577681 of SE."""
    found = Harq(4, True, 0.2).goodput(np.array([5.44, 5.0, 4.8]), 5.0, 1.0)
    assert found == pytest.approx([0.909297, 0.666667, 0.577681], abs=1e-6)


@pytest.mark.parametrize("most", [1, 2, 4, 16])
def test_without_combining_the_goodput_is_se_times_success(most):
    found = Harq(most, combines=False).goodput(np.array([5.1]), 5.0, 2.0)
    assert found == pytest.approx(2.0 * (1.0 - float(block_error(5.1, 5.0))), rel=1e-12)


def test_the_variance_of_the_number_of_transmissions():
    """P_1 = 1/2, P_2 = 1/4 and M = 2: T is 1 or 2 with equal probability."""
    mean, variance = Harq(most=2).transmissions(np.array([0.5, 0.25]))
    assert (mean, variance) == pytest.approx((1.5, 0.25))


def test_the_goodput_never_exceeds_a_rate_without_errors_by_more_than_its_margin():
    """A tenth of lost blocks costs 2 to 6 %; combining reaches below the first scheme."""
    ideal = make_law(AdaptationSection(rate="mcs"))
    law = make_law(AdaptationSection(rate="mcs", errors="expected"))
    snr = 10.0 ** (np.arange(-14.0, 22.0, 0.5) / 10.0)
    share = law.efficiency(snr) / ideal.efficiency(snr)
    assert share[snr < 70].min() > 0.93 and share.max() < 1.01
    assert law.efficiency(1e3) == pytest.approx(5.5547, abs=1e-4)
    repeated = RepeatedSchemes(*schemes("64qam"), Harq())
    below = 10.0 * np.log10(repeated.snr[0]) - 3.0
    assert repeated.harq.goodput(below, repeated.half_db[0], repeated.bits[0]) > 0.1
