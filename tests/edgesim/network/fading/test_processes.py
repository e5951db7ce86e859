"""Fading over time: Clarke's correlation and moments, Rician powers, coherence from speed."""

import numpy as np
import pytest
from scipy import special

from edgesim.network.adaptation.channel_estimate import delay_correlation
from edgesim.network.fading.processes import (
    COHERENCE_RULE,
    BlockFading,
    ClarkeFading,
    doppler_hz,
    rician_power,
)
from edgesim.seeds import Seeds

F_D = 30 / 3.6 * 3.5e9 / 3e8  # 30 km/h at 3.5 GHz: 97.2 Hz


def test_coherence_from_speed():
    """3 km/h at 3.5 GHz: 9.722 Hz and 18.4 ms; 30 km/h 1.84 ms."""
    assert doppler_hz(3 / 3.6, 3.5e9) == pytest.approx(9.722, abs=1e-3)
    assert COHERENCE_RULE / doppler_hz(3 / 3.6, 3.5e9) == pytest.approx(18.4e-3, abs=1e-4)
    coherence_s = COHERENCE_RULE / doppler_hz(30 / 3.6, 3.5e9)
    assert coherence_s == pytest.approx(1.84e-3, abs=1e-5)


@pytest.mark.parametrize(("seconds", "value"), [(1e-3, 0.9089), (2e-3, 0.6602), (5e-3, -0.2779)])
def test_clarke_has_the_correlation_j0_and_the_fourth_moment_of_16_waves(seconds, value):
    assert special.j0(2 * np.pi * F_D * seconds) == pytest.approx(value, abs=1e-4)
    fading = ClarkeFading(Seeds(0), 30_000, F_D)
    now, then = (fading.amplitudes(0, -time_s)[1] for time_s in (0.7, 0.7 + seconds))
    assert (now * then.conj()).mean().real == pytest.approx(value, abs=0.01)
    assert (np.abs(now) ** 4).mean() == pytest.approx(2 - 1 / 16, abs=0.05)


def test_a_step_is_as_short_as_powers_stay_alike():
    """J0(x) = 1 - x^2 / 4 + x^4 / 64 - ... with x = 0.1 pi: 1 - 0.024674 + 0.000152 = 0.975478."""
    fading = ClarkeFading(Seeds(0), 30_000, F_D)
    assert delay_correlation(F_D, fading.step_s) == pytest.approx(0.975478, abs=1e-6)
    now, then = (fading.amplitudes(n)[1] for n in (7, 8))
    assert (now * then.conj()).mean().real == pytest.approx(0.975478, abs=0.015)
    assert (np.abs(now - then) ** 2).mean() == pytest.approx(2.0 - 2.0 * 0.975478, abs=0.001)


def test_clarke_is_held_for_a_step_and_needs_no_history():
    fading = ClarkeFading(Seeds(0), 3, F_D, np.array([0.0, 1.0, 8.0]))
    assert fading.step_s == pytest.approx(0.05 / F_D)
    fading.power(17)
    again = ClarkeFading(Seeds(0), 4, F_D, np.array([0.0, 1.0, 8.0, 0.0])).power(40)
    assert fading.power(40).tolist() == again[:3].tolist()
    assert fading.blocks_in(np.array([0.0, 1.0 / F_D])).tolist() == [0.0, 2.0]


@pytest.mark.parametrize("process", [BlockFading, ClarkeFading])
def test_rician_power_has_mean_1_and_the_variance_of_its_k(process):
    """(1 + 2 K) / (1 + K)^2, of 15,000 devices; 16 waves are a little less."""
    k_factor = np.repeat([0.0, 2.0, 8.0], 15_000)
    power = process(Seeds(2), len(k_factor), 10.0, k_factor).power(5)
    for k, mine in zip((0.0, 2.0, 8.0), np.split(power, 3), strict=True):
        assert mine.mean() == pytest.approx(1.0, abs=0.02)
        assert mine.var() == pytest.approx((1 + 2 * k) / (1 + k) ** 2, rel=0.1)


def test_without_a_direct_path_the_draw_is_that_of_rayleigh_blocks():
    power = BlockFading(Seeds(0), 4, 1.0, np.zeros(4)).power(3)
    assert power.tolist() == Seeds(0).stream("fading", round=3).standard_exponential(4).tolist()
    assert rician_power(np.array([0.0, 3.0]), 1.0, np.array([2.0, 0.0])) == pytest.approx(
        [4.0, 0.75]
    )
