"""Slopes of the alpha-fair optimum: by differences, by hand, and at both ends of the family."""

from dataclasses import replace

import numpy as np
import pytest
from pytest import approx

from solvers import PruningProblem, allocate
from solvers.allocators.alpha_fair_slopes import AlphaFairSlopes
from tests.solvers.analysis.test_sensitivity import wider

STEP = 1e-4  # relative; an error of its square is below the tolerance
NOISES = {"power": None, "density": [20.0, 300.0, 5.0, 80.0]}


def four_devices(noise):
    """Two between their bounds, one held at rho_min, and one that is at rho_max for a large alpha,
    at 0 for a small one, and at times between them.
    """
    return PruningProblem(
        bits=[1e6, 8e5, 4e5, 2e6],
        compute_s=[4e-3, 1e-3, 2e-3, 6e-3],
        slack_s=[20e-3, 25e-3, 18e-3, 30e-3],
        rate_bps=[6e7, 4e7, 9e7, 2e8],
        weight=[1.0, 0.7, 1.2, 1.0],
        rho_min=[0.0, 0.0, 0.0, 0.9],
        rho_max=[1.0, 1.0, 0.2, 1.0],
        bits_fixed=[1e4, 2e4, 5e3, 3e4],
        snr=NOISES[noise],
    )


def changed(p, name, k, factor):
    """The problem with one number of device k scaled."""
    column = getattr(p, name).copy()
    column[k] *= factor
    return replace(p, **{name: column})


def difference(change, alpha):
    """Central difference of the objective by the logarithm of a factor."""
    more, less = (
        allocate(change(np.exp(step)), "alpha-fair", alpha=alpha).objective
        for step in (STEP, -STEP)
    )
    return (more - less) / (2.0 * STEP)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 5.0])
def test_against_central_differences(noise, alpha):
    p = four_devices(noise)
    a = allocate(p, "alpha-fair", alpha=alpha)
    free = AlphaFairSlopes(p, alpha, a.share).free.tolist()
    assert free == [True, True, 0.0 < a.rho[2] < 0.2, False]
    s = a.sensitivity(bandwidth_hz=20e6)
    assert s.per_band == approx(difference(lambda c: wider(p, c), alpha), rel=1e-7)
    assert s.per_hz == s.per_band / 20e6 and s.per_s == approx(s.deadlines.sum(), rel=1e-12)
    later = [difference(lambda c, k=k: changed(p, "slack_s", k, c), alpha) for k in range(4)]
    assert s.deadlines * p.slack_s == approx(later, rel=1e-7)
    faster = [difference(lambda c, k=k: changed(p, "rate_bps", k, c), alpha) for k in range(4)]
    assert s.rates == approx(faster, rel=1e-7)


@pytest.mark.parametrize("noise", NOISES)
def test_the_limits_are_kkt_and_fair(noise):
    p = replace(four_devices(noise), rho_max=[0.9, 0.9, 0.2, 1.0])  # kkt starves nobody
    exact, nearly = allocate(p), allocate(p, "alpha-fair", alpha=1e-6)
    assert nearly.multiplier == approx(exact.multiplier, rel=1e-4)
    assert nearly.sensitivity().deadlines == approx(exact.sensitivity().deadlines, rel=1e-4)
    assert nearly.sensitivity().rates == approx(exact.sensitivity().rates, rel=1e-4)
    # at the other end both who are pruned most fall with the largest ratio, by their weights
    p = replace(p, rho_min=[0.0] * 4)
    worst = allocate(p, "fair")
    tied = worst.rho > worst.rho.max() - 1e-6
    nearly = allocate(p, "alpha-fair", alpha=1e3)
    assert nearly.multiplier == approx(worst.multiplier * p.weight[tied].sum(), rel=1e-2)


def test_at_alpha_zero_the_formulas_are_the_multipliers_of_kkt():
    for noise in NOISES:
        p = four_devices(noise)
        a = allocate(p)
        s, slopes = a.sensitivity(), AlphaFairSlopes(p, 0.0, a.share)
        assert slopes.price == approx(a.multiplier, rel=1e-9)
        assert slopes.by_deadline()[slopes.free] == approx(s.deadlines[slopes.free], rel=1e-9)
        assert slopes.by_log_rate() == approx(s.rates, rel=1e-9)


def test_proportional_fairness_by_hand():
    """Without computation shares are equal, rho = 1 - A r b / q: 1 % more band, time or rate is
    1 % more of every x, and a device's own rate changes nobody else's.
    """
    p = PruningProblem(bits=1e6, compute_s=0.0, slack_s=20e-3, rate_bps=[2e7, 4e7])
    s = allocate(p, "alpha-fair", alpha=1.0).sensitivity()
    assert s.per_band == approx(-0.6, rel=1e-9) and s.per_s == approx(-30.0, rel=1e-9)
    assert s.rates == approx([-0.2, -0.4], rel=1e-9)
    # with alpha 2 shares go by r^(-1 / 2): the band that a faster device gives up goes to a slower
    s = allocate(p, "alpha-fair", alpha=2.0).sensitivity()
    assert s.rates == approx([difference_of_roots(0), difference_of_roots(1)], rel=1e-6)


def difference_of_roots(k):
    """Derivative of -A / q sum r^(1 / 2) / sum r^(-1 / 2) by log r_k, for r = 20 and 40 Mbit/s."""
    rate, unit = np.array([2e7, 4e7]), 20e-3 / 1e6
    up, down = np.sqrt(rate).sum(), (1.0 / np.sqrt(rate)).sum()
    own = np.sqrt(rate[k])
    return -unit * (0.5 * own * down + 0.5 * up / own) / down**2


def test_more_time_for_one_may_cost_the_sum():
    """The second device keeps 3 %; with more time it takes band from the first, to which that
    is worth more.
    """
    p = PruningProblem(1e6, 1e-3, [20e-3, 8e-3], [4e7, 2e7], bits_fixed=[1e4, 0.0])
    s = allocate(p, "alpha-fair", alpha=0.5).sensitivity()
    by_time = [difference(lambda c, k=k: changed(p, "slack_s", k, c), 0.5) for k in (0, 1)]
    assert s.deadlines * p.slack_s == approx(by_time, rel=1e-7)
    assert s.deadlines[1] == approx(6.934, abs=1e-3)


def test_one_device_has_the_price_of_kkt_and_an_ample_band_none():
    one = PruningProblem(1e6, 4e-3, 20e-3, [4e7])
    for alpha in (0.5, 5.0):
        a = allocate(one, "alpha-fair", alpha=alpha)
        assert a.multiplier == approx(allocate(one).multiplier, rel=1e-12)
        assert a.sensitivity().rates == approx(allocate(one).sensitivity().rates, rel=1e-12)
        assert "its price is 0.5945" in a.explain()
    ample = allocate(PruningProblem(1e6, 4e-3, 20e-3, [4e8, 6e8]), "alpha-fair").sensitivity()
    assert (ample.per_band, ample.per_s, ample.rates.tolist()) == (0, 0, [0, 0])


def test_a_band_full_of_least_shares_has_the_slope_of_more_band():
    """x = 0.4 b, held at 0.2 each; more band goes to the device of the larger weight."""
    full = PruningProblem(1e6, 0.0, 20e-3, [2e7, 2e7], weight=[1.0, 2.0], rho_max=0.8)
    for method in ("kkt", "alpha-fair"):
        a = allocate(full, method)
        assert a.rho.tolist() == [0.8, 0.8] and a.multiplier == approx(0.8, rel=1e-12)


def test_the_reference_has_the_same_slopes():
    p = four_devices("density")
    exact, reference = (
        allocate(p, name, alpha=2.0).sensitivity() for name in ("alpha-fair", "convex-alpha-fair")
    )
    assert reference.per_band == approx(exact.per_band, rel=1e-4)
    assert reference.deadlines == approx(exact.deadlines, rel=1e-4)
    assert reference.rates == approx(exact.rates, rel=1e-4)
