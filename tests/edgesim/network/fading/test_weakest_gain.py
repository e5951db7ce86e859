"""The weakest of several fading gains: exponential rates add; other laws by a drawn sample."""

import numpy as np
import pytest

from edgesim.network.fading.power_distribution import power_quantile
from edgesim.network.fading.rate_distribution import RateDistribution
from edgesim.network.fading.weakest_gain import weakest_mean_rate_gain, weakest_quantile


def test_rates_of_exponential_gains_add():
    """1/2 + 1/2 = 1: the smallest of two gains of mean 2 has mean 1."""
    assert weakest_quantile(np.array([2.0, 2.0]), 0.05) == pytest.approx(0.051293, abs=1e-6)
    gain = weakest_mean_rate_gain(np.array([2.0, 2.0]), 10.0)
    assert np.log2(1 + 10 * gain) == pytest.approx(RateDistribution().mean(10.0), rel=1e-5)


def test_the_quantile_of_rician_gains():
    gains, k_factor = np.array([1.0, 3.0, 1.5]), 4.0
    weakest = weakest_quantile(gains, 0.05, k_factor)
    rng = np.random.default_rng(3)
    sample = (gains * power_quantile(rng.random((10_000, 3)), k_factor)).min(axis=1)
    assert (sample < weakest).mean() == pytest.approx(0.05, abs=7e-3)


def test_nobody_listens_and_nobody_is_heard():
    assert weakest_quantile(np.empty(0), 0.05) == np.inf
    assert weakest_quantile(np.array([1.0, 0.0]), 0.05) == 0.0
    assert weakest_mean_rate_gain(np.array([0.0]), 10.0) == 0.0
