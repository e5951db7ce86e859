"""Properties of `kkt`: certified, optimal, and independent of order and units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx
from scipy.optimize import linprog

from solvers import InfeasibleError, PruningProblem, UncertifiedError, allocate
from tests.solvers.random_problems import FIELDS, changed, instance, problems


def stretched(p, factor=1.01):
    """The problem, or where it is infeasible the same with (just more than) the least time that
    makes it feasible.
    """
    try:
        allocate(p)
    except InfeasibleError as error:
        return changed(p, slack_s=p.slack_s + error.extra_s * factor)
    return p


@pytest.mark.slow
@given(problems())
def test_every_answer_is_certified_and_in_the_band(p):
    p = stretched(p, 1.0)
    a = allocate(p)
    assert a.certificate.residual <= 1e-11 and a.certificate.gap <= 1e-11
    assert a.share.sum() <= 1 + 1e-14 and (a.share >= 0).all()
    on = p.feasible
    assert (
        p.finish_s(a.share, a.rho)[on] <= p.slack_s[on] * (1 + 2e-9)
    ).all()  # 1e-9: squeezed least shares
    # T_th exactly where there is something to prune and to keep; the rounding of rho shows where
    # little is kept
    inner = on & (a.rho > p.rho_min) & (a.rho < p.rho_max) & (a.rho < 1 - 1e-6)
    assert p.finish_s(a.share, a.rho)[inner] == approx(p.slack_s[inner], rel=1e-9)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(problems(most=8))
def test_kkt_agrees_with_convex(p):
    p = stretched(p)
    a = allocate(p)
    try:
        b = allocate(p, "convex")
    except UncertifiedError:  # Clarabel finds no answer to a few of these
        return
    assert a.objective == approx(
        b.objective, rel=1e-8, abs=1e-14 * p.weight.max()
    )  # the last digits of rho


@pytest.mark.slow
def test_convex_is_certified_on_all_of_these_and_agrees():
    for seed in range(48):
        p = stretched(instance(seed, 1 + seed % 12, seed % 2, seed % 3 == 0, seed % 4 < 2))
        assert allocate(p).objective == approx(
            allocate(p, "convex").objective, rel=1e-8, abs=1e-14 * p.weight.max()
        )


@pytest.mark.slow
@given(problems(), st.randoms())
def test_permuted_devices_get_permuted_answers(p, random):
    p = stretched(p)
    order = np.arange(p.num_devices)
    random.shuffle(order)
    a, b = (
        allocate(p),
        allocate(PruningProblem(**{name: getattr(p, name)[order] for name in FIELDS})),
    )
    assert b.rho == approx(a.rho[order], abs=1e-9) and b.share == approx(a.share[order], abs=1e-9)


@pytest.mark.slow
@given(problems(), st.floats(-9, 9), st.floats(-9, 9), st.floats(-6, 6))
def test_units_do_not_matter(p, bits, seconds, weight):
    bits, seconds, weight = 10.0**bits, 10.0**seconds, 10.0**weight
    p = stretched(p)
    scaled = PruningProblem(
        p.bits * bits, p.compute_s * seconds, p.slack_s * seconds, p.rate_bps * bits / seconds,
        p.weight * weight, p.rho_min, p.rho_max, p.bits_fixed * bits,
    )  # fmt: skip
    a, b = allocate(p), allocate(scaled)
    assert b.rho == approx(a.rho, abs=1e-8) and b.objective == approx(
        weight * a.objective, rel=1e-9, abs=1e-9 * weight
    )
    assert b.multiplier == approx(weight * a.multiplier, rel=1e-8)


@pytest.mark.slow
@given(problems(), st.floats(1, 4))
def test_more_band_prunes_nobody_more(p, factor):
    """G = 0 devices that tie could trade places, but random slopes do not tie."""
    p = stretched(p)
    wider = allocate(changed(p, rate_bps=p.rate_bps * factor))
    assert (wider.rho <= allocate(p).rho + 1e-8).all()


@pytest.mark.slow
@given(problems())
def test_nobody_can_gain_by_handing_over_band(p):
    """Optimality without any formula: moving a little band between two devices raises the
    objective.
    """
    p = stretched(p)
    a = allocate(p)
    low, cap = p.share_bounds()
    for step in (1e-3, 1e-5):
        for giver in np.flatnonzero(a.share > low):
            for taker in np.flatnonzero(a.share < cap):
                moved = min(step, a.share[giver] - low[giver], cap[taker] - a.share[taker])
                share = a.share.copy()
                share[giver] -= moved
                share[taker] += moved
                assert p.objective(p.rho_at(share)) >= a.objective - 1e-12 * p.weight.sum()


def test_equal_bounds_mean_that_the_method_decided():
    """rho_min = rho_max = 0: everybody needs at least q / (r (A - G)); the rest of the band is
    nobody's.
    """
    a = allocate(PruningProblem(1e6, 4e-3, 20e-3, [4e8, 6e8], rho_max=0.0))
    assert (
        a.rho.tolist() == [0, 0] and a.share == approx([0.15625, 0.10416667]) and a.multiplier == 0
    )
    with pytest.raises(InfeasibleError) as caught:
        allocate(PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7], rho_max=0.0))
    assert caught.value.extra_s == approx((1e6 / 4e7 + 1e6 / 6e7) + 4e-3 - 20e-3)


def test_lower_bounds_hold():
    a = allocate(PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7], rho_max=0.7))
    assert a.rho[0] == 0.7 and a.share.sum() == approx(1)
    assert a.share[0] == approx(0.3e6 / (4e7 * (20e-3 - 0.3 * 4e-3)))
    b = 1 - a.share[0]
    assert a.rho[1] == approx(1 - 20e-3 * b * 6e7 / (b * 6e7 * 4e-3 + 1e6))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_without_computation_it_is_a_knapsack(seed, count):
    rng = np.random.default_rng(seed)
    p = PruningProblem(
        10 ** rng.uniform(5, 7, count), 0.0, rng.uniform(5e-3, 3e-2, count),
        10 ** rng.uniform(6, 8.5, count),
        rng.uniform(0.5, 2, count), bits_fixed=100.0,
    )  # fmt: skip
    slope = p.weight * p.slack_s * p.rate_bps / p.bits
    low, cap = p.share_bounds()
    lp = linprog(
        -slope, A_ub=np.ones((1, count)), b_ub=[1.0], bounds=np.c_[low, cap], method="highs"
    )
    assert allocate(p).objective == approx(
        lp.fun + np.sum(p.weight * (1 + 100.0 / p.bits)), rel=1e-8, abs=1e-8
    )


def test_equally_good_linear_devices_share_what_is_left():
    a = allocate(PruningProblem(1e6, 0.0, 20e-3, [1e8, 2e7, 2e7]))  # caps 0.5, 2.5, 2.5
    assert a.share == approx([0.5, 0.25, 0.25]) and a.multiplier == approx(0.4)
    assert a.rho == approx([0, 0.9, 0.9])


def test_linear_beside_curved_devices():
    """lambda = 0.4 is the slope of the linear device; the curved one stops where its marginal is
    0.4.
    """
    a = allocate(PruningProblem(1e6, [0.0, 40e-3], 20e-3, [2e7, 4e7]))
    curved = (np.sqrt(20e-3 * 1e6 * 4e7 / 0.4) - 1e6) / (4e7 * 40e-3)
    assert 0.2 < curved < 0.3 and a.multiplier == approx(0.4, rel=1e-13)
    assert a.share == approx([1 - curved, curved], abs=1e-12)


def test_one_device_with_the_whole_band_prices_it():
    """The curved device would take 2.6 bands at the price 0.4 of the linear one: lambda is its
    marginal at b = 1.
    """
    a = allocate(PruningProblem(1e6, [0.0, 4e-3], 20e-3, [2e7, 4e7]))
    assert a.share.tolist() == [0, 1] and a.multiplier == approx(
        4e7 * 20e-3 * 1e6 / (4e7 * 4e-3 + 1e6) ** 2, rel=1e-13
    )


def test_almost_linear_devices_are_solved_as_exactly():
    for g in 10.0 ** -np.arange(4, 22):
        a = allocate(PruningProblem([1e6, 2e6, 1e6], g, 20e-3, [2e7, 4e7, 3e7], weight=[1, 1, 0.9]))
        assert (
            a.certificate.residual < 1e-11
            and a.certificate.gap < 1e-11
            and a.share.sum() == approx(1, abs=1e-15)
        )


def test_fixed_bits_by_hand():
    """A bitmap of 1e5 bit: K = 1 with the whole band of 4e7 bit/s."""
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e7], bits_fixed=1e5)
    a = allocate(p)
    assert a.share == approx([1]) and a.rho == approx(
        [1 - (20e-3 * 4e7 - 1e5) / (4e7 * 4e-3 + 1e6)]
    )
    assert p.finish_s(a.share, a.rho) == approx([20e-3], rel=1e-12)


def test_weights_decide_who_is_pruned():
    even = allocate(PruningProblem(1e6, 4e-3, 20e-3, [5e7, 5e7]))
    assert even.share == approx([0.5, 0.5])
    first = allocate(PruningProblem(1e6, 4e-3, 20e-3, [5e7, 5e7], weight=[1.1, 1.0]))
    assert first.share[0] > 0.6 and first.rho[0] < even.rho[0] < first.rho[1]


def test_a_device_that_sends_nothing_needs_no_band():
    a = allocate(PruningProblem([0.0, 1e6], [30e-3, 4e-3], 20e-3, 4e7))
    assert a.share.tolist() == [0, 1] and a.rho[0] == approx(1 / 3)  # 20 of its 30 ms fit
    with pytest.raises(InfeasibleError) as caught:
        allocate(PruningProblem([0.0, 1e6], [30e-3, 4e-3], 20e-3, 4e7, rho_max=[0.2, 1.0]))
    assert caught.value.devices == (0,) and caught.value.extra_s == approx(4e-3)


def test_hardly_any_band_is_not_late_by_rounding():
    p = PruningProblem(1e6, 4e-3, 20e-3, np.full(200, 1e7))
    for b in 10.0 ** -np.arange(3, 20):
        share = np.full(200, b)
        assert (p.finish_s(share, p.rho_at(share)) <= 20e-3 * (1 + 1e-12)).all()


def test_a_hundred_thousand_devices():
    rng = np.random.default_rng(1)
    count = 100_000
    p = PruningProblem(
        1e6,
        10 ** rng.uniform(-4, -2, count),
        rng.uniform(5e-3, 3e-2, count),
        10 ** rng.uniform(11, 14, count),
    )
    a = allocate(p)
    assert (
        a.certificate.residual < 1e-10
        and a.certificate.gap < 1e-10
        and abs(a.share.sum() - 1) < 1e-12
    )
    assert 0 < (a.rho == 0).sum() < count
