"""Sensitivities by hand, by finite differences of the objective, and where there are none."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pytest import approx

from solvers import InfeasibleError, PruningProblem, UncertifiedError, allocate
from solvers.analysis.sensitivity import deadline_multipliers


def instance(seed, count, bounds, density):
    rng = np.random.default_rng(seed)
    return PruningProblem(
        bits=10 ** rng.uniform(5.5, 6.5, count),
        compute_s=10 ** rng.uniform(-3.5, -2, count),
        slack_s=rng.uniform(15e-3, 30e-3, count),
        rate_bps=10 ** rng.uniform(7, 8.5, count) * count / 3,
        weight=rng.uniform(0.5, 2, count),
        rho_max=1 - rng.uniform(0, 0.2, count) * bounds,
        bits_fixed=10 ** rng.uniform(2, 4, count) * bounds,
        snr=10 ** rng.uniform(-1, 3, count) if density else None,
    )


def wider(p, factor):
    """The same devices in a band wider by this factor: with a density the same hertz still give
    the same rate.
    """
    if p.snr is None:
        return replace(p, rate_bps=p.rate_bps * factor)
    return replace(p, rate_bps=p.rate_at(np.full(p.num_devices, factor)), snr=p.snr / factor)


def slope(objective, step):
    """Central difference; None at a kink, where the differences on either side do not agree."""
    low, mid, high = objective(-step), objective(0.0), objective(step)
    right, left = (high - mid) / step, (mid - low) / step
    return (
        (high - low) / (2 * step)
        if abs(right - left) <= 1e-2 * max(abs(right), abs(left), 1e-9)
        else None
    )


@pytest.mark.slow
@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.booleans(), st.booleans())
def test_against_central_differences(seed, count, bounds, density):
    p = instance(seed, count, bounds, density)
    try:
        allocate(wider(replace(p, slack_s=p.slack_s * 0.999), 0.999))
    except InfeasibleError:
        assume(False)
    s = allocate(p).sensitivity(bandwidth_hz=20e6)
    band = slope(lambda x: allocate(wider(p, 1 + x)).objective, 1e-5)
    time = slope(lambda x: allocate(replace(p, slack_s=p.slack_s + x)).objective, 1e-7)
    assume(band is not None and time is not None)
    assert s.per_band == approx(band, rel=1e-3, abs=1e-6) and s.per_hz == approx(s.per_band / 20e6)
    assert s.per_s == approx(time, rel=1e-3, abs=1e-3)
    assert s.per_band <= 0 and (s.deadlines <= 0).all() and s.per_s == approx(s.deadlines.sum())


def test_one_device_by_hand():
    """rho = 1 - A r / (r G + q) = 1 - 0.8 / 1.16: one per cent more rate lowers it by 0.01 A r q /
    (r G + q)^2.
    """
    a = allocate(PruningProblem(1e6, 4e-3, 20e-3, [4e7]))
    s = a.sensitivity(bandwidth_hz=1e6)
    assert s.per_band == approx(
        -20e-3 * 4e7 * 1e6 / (4e7 * 4e-3 + 1e6) ** 2
    ) and s.per_hz == approx(s.per_band / 1e6)
    assert s.per_s == approx(-4e7 / (4e7 * 4e-3 + 1e6))


def test_who_has_enough_needs_no_more():
    a = allocate(PruningProblem(1e6, 4e-3, 20e-3, [4e8, 6e8]))
    s = a.sensitivity()
    assert (s.per_band, s.per_s) == (0, 0) and np.isnan(s.per_hz)


def test_a_device_held_at_rho_max_gives_band_back():
    """Device 0 needs 0.3e6 / (4e7 x (A - 1.2 ms)) of the band; more time frees some of it at the
    price lambda.
    """
    a = allocate(PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7], rho_max=0.7))
    nu = deadline_multipliers(a.problem, a.share, a.rho, a.multiplier)
    assert a.rho[0] == 0.7 and nu[0] == approx(a.multiplier * 0.3e6 / 4e7 / (20e-3 - 1.2e-3) ** 2)


@pytest.mark.slow
def test_convex_has_the_slopes_of_kkt():
    """Its rho of those who are full is 1e-12, not 0; with the whole band for one device its price
    may be any less.
    """
    p = PruningProblem([1e6, 2e6, 1e5], 4e-3, 20e-3, [4e7, 6e7, 9e7], rho_max=0.9)
    assert allocate(p, "convex").sensitivity().per_s == approx(-35.3966, abs=1e-4)
    compared = 0
    for seed in range(24):
        p = instance(seed, 1 + seed % 8, seed % 2 == 0, seed % 3 == 0)
        try:
            a, b = allocate(p).sensitivity(), allocate(p, "convex").sensitivity()
        except (InfeasibleError, UncertifiedError):
            continue
        compared += 1
        assert b.per_band == approx(a.per_band, rel=1e-4) and b.deadlines == approx(
            a.deadlines, rel=1e-4, abs=1e-6
        )
    assert compared > 20


@pytest.mark.parametrize("width", ["20 MHz", [1e6, 2e6], None, 10**400])
def test_a_width_is_one_number(width):
    with pytest.raises(ValueError, match=r"^bandwidth_hz .*number in Hz|must be finite"):
        allocate(PruningProblem(1e6, 4e-3, 20e-3, [4e7])).sensitivity(
            width if width is not None else np.inf
        )


def test_what_has_no_slope_says_so():
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7])
    for answer in (allocate(p, "equal"), allocate(p, blocks=10), allocate(p, "fair")):
        with pytest.raises(ValueError, match="has no slopes; take one of kkt, alpha-fair, "):
            answer.sensitivity()
    with pytest.raises(ValueError, match="bandwidth_hz is -1; it must be finite and positive"):
        allocate(p).sensitivity(-1.0)
