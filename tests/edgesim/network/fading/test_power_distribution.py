"""Quantiles of Rayleigh and Rician power with mean 1, computed by hand or with 6 digits."""

import numpy as np
import pytest

from edgesim.network.fading.power_distribution import power_below, power_quantile

DECIBELS = [
    # K in dB: 1 %, 5 %, 10 % quantile
    (-np.inf, 0.010050, 0.051293, 0.105361),
    (0, 0.013592, 0.068057, 0.136692),
    (3, 0.023733, 0.107376, 0.198043),
    (6, 0.070042, 0.206297, 0.314736),
    (9, 0.190137, 0.349651, 0.455439),
    (12, 0.346611, 0.496362, 0.587359),
]


@pytest.mark.parametrize(("decibel", "one", "five", "ten"), DECIBELS)
def test_the_quantiles_of_rician_power(decibel, one, five, ten):
    k_factor = 10.0 ** (decibel / 10.0)
    found = power_quantile([0.01, 0.05, 0.1], k_factor)
    assert found == pytest.approx([one, five, ten], abs=6e-7)
    assert power_below(found, k_factor) == pytest.approx([0.01, 0.05, 0.1], rel=1e-9)


def test_the_variance_falls_with_the_direct_path():
    """(1 + 2 K) / (1 + K)^2, from the quantile function."""
    probability = (np.arange(20_000) + 0.5) / 20_000
    for k_factor in (0.0, 1.0, 8.0):
        power = power_quantile(probability, k_factor)
        assert power.mean() == pytest.approx(1.0, rel=1e-3)
        assert power.var() == pytest.approx((1 + 2 * k_factor) / (1 + k_factor) ** 2, rel=1e-2)
