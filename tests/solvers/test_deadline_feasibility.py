"""The least additional time with which the least shares fit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from solvers import EnergyTerms, InfeasibleError, PruningProblem, allocate
from solvers.deadline_feasibility import seconds_rounded_up
from tests.solvers.random_problems import changed, problems


@pytest.mark.slow
@given(problems(), st.floats(1e-7, 0.5))
def test_extra_time_is_enough_and_the_least(p, less):
    try:
        allocate(p)
    except InfeasibleError as error:
        assert error.extra_s > 0 and f"{seconds_rounded_up(error.extra_s)} s more" in str(error)
        assert error.devices and all(f"{k}" in str(error) for k in error.devices[:8])
        later = changed(p, slack_s=p.slack_s + error.extra_s)
        assert later.share_bounds()[0].sum() <= 1
        assert allocate(later).certificate.residual < 1e-8
        squeezed = changed(
            later, rate_bps=later.rate_bps * (1 - 5e-10)
        )  # a caller that rounds otherwise
        assert allocate(squeezed).certificate.residual < 1e-8
        short = changed(p, slack_s=p.slack_s + error.extra_s * (1 - less))
        with pytest.raises(InfeasibleError):
            allocate(short)


def test_extra_time_by_hand():
    """Half the weights stay: 0.5e6 bit at 1e7 bit/s are 50 ms, 0.5 x 4 ms of computing: 52 ms for
    one, 102 for two.
    """
    one = PruningProblem(1e6, 4e-3, 20e-3, 1e7, rho_max=0.5)
    two = PruningProblem(1e6, 4e-3, [20e-3, 20e-3], 1e7, rho_max=0.5)
    for p, threshold_s in ((one, 52e-3), (two, 102e-3)):
        with pytest.raises(InfeasibleError, match=r"devices? 0") as caught:
            allocate(p)
        assert caught.value.extra_s == approx(threshold_s - 20e-3, rel=1e-12)
        a = allocate(changed(p, slack_s=p.slack_s + caught.value.extra_s))
        assert a.rho == approx(0.5, abs=1e-12) and a.share.sum() == approx(1)


def test_extra_time_counts_those_it_brings_back():
    """Device 1 has no time at 20 ms, but the 32 ms that device 0 needs give it some: then both
    must fit.
    """
    p = PruningProblem(1e6, 4e-3, [20e-3, -10e-3], 1e7, rho_max=0.5)
    with pytest.raises(InfeasibleError) as caught:
        allocate(p)
    left_s = p.slack_s + caught.value.extra_s - 2e-3
    assert (50e-3 / left_s).sum() == approx(1, rel=1e-12)
    assert allocate(changed(p, slack_s=p.slack_s + caught.value.extra_s)).infeasible == ()


@pytest.mark.parametrize(
    ("method", "begins", "without", "advice"),
    [
        ("kkt", "Even pruned to rho_max, devices 0, 1 need", "Devices 0, 1 need", "rho_max"),
        ("energy", *["At full clock and power devices 0, 1 are late"] * 2, "rho_min"),
    ],
)
@pytest.mark.parametrize("rho_max", [0.5, 0.0])
def test_advice_on_pruning_is_given_where_there_is_a_choice(
    method, begins, without, advice, rho_max
):
    """Not where a method that prunes nothing, or a fixed share, leaves none."""
    rate_bps = 1e6 * math.log2(1.0 + 0.5 * 100.0)
    terms = EnergyTerms(4e6, 1e-28, 0.0, 2e9, 0.5, 100.0)
    p = PruningProblem([1e6] * 2, 0.0, 20e-3, rate_bps, rho_max=rho_max, energy=terms)
    with pytest.raises(InfeasibleError) as caught:
        allocate(p, method)
    assert str(caught.value).startswith(begins if rho_max else without)
    assert str(caught.value).endswith(f" s more time{f' or raise {advice}' if rho_max else ''}.")


@pytest.mark.parametrize("blocks", [None, 4])
def test_the_band_needed_is_that_of_the_devices_named(blocks):
    """1 Mbit in 20 ms: twice the band at 25 Mbit/s, and half of it at 100 Mbit/s each."""
    p = PruningProblem(1e6, 0.0, 20e-3, [2.5e7, 1e8, 1e8], rho_max=0.0)
    with pytest.raises(InfeasibleError, match=r"^Device 0 needs 2 times the band") as caught:
        allocate(p, blocks=blocks)
    assert caught.value.devices == (0,)
