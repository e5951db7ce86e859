"""Noise and rate of a share of the band: Liu (9)."""

import numpy as np
import pytest

from edgesim.network.band_rate import BandRate


def test_rate_by_hand():
    """10 MHz, SNR 1e-10 x 0.3 / 1e-11 = 3: half of the band carries 5e6 x log2(4) = 10 Mbit/s."""
    assert BandRate(10e6, noise_w=1e-11).rate_bps(0.5, 0.3, 1e-10) == pytest.approx(10e6, rel=1e-14)


def test_with_a_density_a_narrow_share_hears_less_noise():
    channel = BandRate(10e6, noise_w_per_hz=1e-18)  # over the whole band 1e-11 W
    assert channel.rate_bps(1.0, 0.3, 1e-10) == pytest.approx(20e6, rel=1e-14)
    assert channel.rate_bps(0.2, 0.3, 1e-10) == pytest.approx(2e6 * 4, rel=1e-14)  # SNR 15
    assert channel.rate_bps(np.array([0.0, 0.2]), 0.3, 1e-10) == pytest.approx(
        [0.0, 8e6], rel=1e-14
    )


def test_no_share_or_no_gain_is_no_rate():
    for noise in ({"noise_w": 1e-11}, {"noise_w_per_hz": 1e-18}):
        channel = BandRate(10e6, **noise)
        assert channel.rate_bps(0.0, 0.3, 1e-10) == 0.0
        assert channel.rate_bps(1.0, 0.3, 0.0) == 0.0


def test_noise_is_a_power_or_a_density():
    for noise in ({}, {"noise_w": 1e-11, "noise_w_per_hz": 1e-18}):
        with pytest.raises(ValueError, match="exactly one"):
            BandRate(1e6, **noise)
