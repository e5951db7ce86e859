"""The alpha-fair family: its ends, by hand, its certificate, its reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from solvers import PruningProblem, allocate
from solvers.allocators.alpha_fair_slopes import kept_share
from solvers.marginal_gains import marginal_gain
from tests.solvers.allocators.two_and_more_devices import (
    SNR,
    instance,
    problem,
    problems,
    stretched,
)

FORMS = [{}, {"snr": SNR}]  # noise of a fixed power, and as a density


@pytest.mark.parametrize("noise", FORMS)
def test_alpha_of_zero_is_kkt_to_the_bit_and_infinity_is_fair(noise):
    p = problem(**noise)
    for alpha, other in ((0.0, "kkt"), (np.inf, "fair")):
        a, b = allocate(p, "alpha-fair", alpha=alpha), allocate(p, other)
        assert a.share.tolist() == b.share.tolist() and a.rho.tolist() == b.rho.tolist()
    assert allocate(p, "alpha-fair", alpha=0.0).is_differentiable


@pytest.mark.parametrize("noise", FORMS)
def test_the_ends_are_reached_continuously(noise):
    p = problem(**noise)
    nearly = allocate(p, "alpha-fair", alpha=1e-2)
    assert nearly.rho == approx(allocate(p).rho, abs=0.05)
    tops = [allocate(p, "alpha-fair", alpha=alpha).rho.max() for alpha in (0.5, 4, 1000)]
    least = allocate(p, "fair").objective
    assert tops == sorted(tops, reverse=True) and least <= tops[-1] <= least + 1e-3


@pytest.mark.parametrize("noise", FORMS)
@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1e-2])
def test_next_to_kkt_a_device_may_keep_less_than_any_rounding(alpha, noise):
    p = problem(weight=[1e-3, 1.0], **noise)
    a = allocate(p, "alpha-fair", alpha=alpha)
    assert a.rho.tolist() == approx(allocate(p).rho.tolist(), abs=1e-12) and a.rho[0] == 1.0
    assert a.certificate.residual <= 1e-6 and a.certificate.gap <= 1e-8


def test_proportional_fairness_by_hand():
    """Without computation x = A r b / q: a sum of logarithms of shares, so equal shares."""
    p = PruningProblem(bits=1e6, compute_s=0.0, slack_s=20e-3, rate_bps=[2e7, 4e7])
    a = allocate(p, "alpha-fair", alpha=1.0)
    assert a.share == approx([0.5, 0.5], rel=1e-12) and a.rho == approx([0.8, 0.6], rel=1e-12)
    weighted = PruningProblem(1e6, 0.0, 20e-3, [2e7, 4e7], weight=[1.0, 3.0])
    assert allocate(weighted, "alpha-fair").share == approx([0.25, 0.75], rel=1e-12)
    two = allocate(p, "alpha-fair", alpha=2.0)  # x^-2 x' alike: b ~ r^(1 / 2 - 1)
    assert two.share[0] / two.share[1] == approx(np.sqrt(2.0), rel=1e-11)


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(problems(), st.sampled_from([0.3, 1.0, 3.0, 30.0]))
def test_every_answer_is_certified_and_satisfies_its_condition(p, alpha):
    """w x^-alpha x' is the same for all devices between their bounds."""
    p = stretched(p)
    a = allocate(p, "alpha-fair", alpha=alpha)
    assert a.certificate.residual <= 1e-6 and a.certificate.gap <= 1e-8
    assert a.share.sum() <= 1 + 1e-12 and not a.certificate.broken
    low, cap = p.share_bounds()
    free = (a.share > low + 1e-6 * (cap - low)) & (a.share < cap * (1 - 1e-6)) & (p.gain > 0)
    with np.errstate(all="ignore"):
        worth = np.log(marginal_gain(p, a.share)) - alpha * np.log(kept_share(p, a.share))
    if free.sum() > 1:
        assert np.ptp(worth[free]) <= 1e-5 * max(1.0, alpha)


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_the_reference_in_cvxpy_agrees(density, alpha):
    p = stretched(instance(6, 4, density))
    exact = allocate(p, "alpha-fair", alpha=alpha)
    reference = allocate(p, "convex-alpha-fair", alpha=alpha)
    assert reference.rho == approx(exact.rho, abs=2e-5)
    assert reference.certificate.gap <= 1e-8


def test_nobody_else_does_better():
    """Random shares of the band have a smaller sum of utilities."""
    p, rng = problem(rate_bps=(3e7, 9e7)), np.random.default_rng(0)
    for alpha in (0.5, 1.0, 3.0):

        def total(share, alpha=alpha):
            x = kept_share(p, share)
            each = np.log(x) if alpha == 1 else x ** (1 - alpha) / (1 - alpha)
            return float(each.sum())

        best = total(allocate(p, "alpha-fair", alpha=alpha).share)
        for b in rng.uniform(0.01, 0.99, 100):
            assert total(np.array([b, 1 - b])) <= best + 1e-12


def test_a_band_that_is_ample_and_one_that_is_full():
    ample = problem(rate_bps=(4e9, 6e9))
    a = allocate(ample, "alpha-fair")
    assert a.rho.tolist() == [0.0, 0.0] and a.multiplier == 0.0
    full = stretched(problem(rho_max=0.5, slack_s=1e-3))
    assert allocate(full, "alpha-fair").certificate.gap <= 1e-8


def test_what_does_not_apply_is_refused():
    with pytest.raises(ValueError, match="kkt reads no alpha"):
        allocate(problem(), "kkt", alpha=1.0)
    with pytest.raises(ValueError, match="alpha is for the methods by name"):
        allocate(problem(), lambda p: allocate(p, "equal"), alpha=1.0)
    with pytest.raises(ValueError, match="alpha is -1; allowed is 0"):
        allocate(problem(), "alpha-fair", alpha=-1.0)
    with pytest.raises(ValueError, match="for levels use the method levels"):
        allocate(problem(levels=[0.0, 0.5]), "alpha-fair")


@pytest.mark.parametrize("method", ["alpha-fair", "convex-alpha-fair"])
@pytest.mark.parametrize(
    "alpha, shown", [(-1.0, "-1"), (np.nan, "nan"), ("2", "'2'"), ([1.0, 2.0], "1, 2")]
)
def test_no_fairness_is_one_sentence(method, alpha, shown):
    with pytest.raises(ValueError, match=f"^alpha is {shown}; allowed is 0, a positive number, or"):
        allocate(problem(), method, alpha=alpha)
