"""kkt over twelve decades of every input: certified, and optimal by a bound that shares no code
with it.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from solvers import InfeasibleError, PruningProblem, UncertifiedError, allocate
from solvers.certificate import objective_scale

LD = np.longdouble


def wide_problem(seed, count, bounds, fixed, density):
    """K devices, each input over 12 decades; some without bits, computing or time."""
    rng = np.random.default_rng(seed)
    some = lambda values: np.where(rng.random(count) < 0.15, 0.0, values)  # noqa: E731
    decades = lambda low: 10.0 ** rng.uniform(low, low + 12, count)  # noqa: E731
    return PruningProblem(
        bits=some(decades(0)),
        compute_s=some(decades(-9)),
        slack_s=decades(-6) * np.where(rng.random(count) < 0.1, -1, 1),
        rate_bps=decades(0),
        weight=decades(-6),
        rho_min=rng.uniform(0, 0.3, count) * bounds,
        rho_max=1 - rng.uniform(0, 0.6, count) * bounds,
        bits_fixed=some(decades(-4)) * fixed,
        snr=decades(-6) if density else None,
    )


def stretched(p, factor=1.0):
    """The problem, or where it is infeasible the same with (just more than) the least time that
    makes it feasible.
    """
    try:
        allocate(p)
    except InfeasibleError as error:
        return stretched(
            replace(p, slack_s=p.slack_s + error.extra_s * factor)
        )  # may bring back one with A <= 0
    return p


def rate(p, share):
    """R(b) in long double: Liu (9), or b log2(1 + snr / b) scaled to rate_bps."""
    if p.snr is None:
        return LD(p.rate_bps) * share
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        factor = share * np.log1p(LD(p.snr) / share) / np.log1p(LD(p.snr))
    return LD(p.rate_bps) * np.where(share > 0, factor, 0)


def cost(p, share):
    """w rho(b) in long double, rho from Liu (47) within its bounds."""
    q, g, a, f = (LD(v) for v in (p.bits, p.compute_s, p.slack_s, p.bits_fixed))
    r = rate(p, share)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        kept = np.where((q == 0) & (f == 0), a / g, (a * r - f) / (r * g + q))
    low, cap = p.share_bounds()
    same = (cap <= low * (1 + 1e-11)) & (low > 0)
    kept = np.where((q == 0) & (same | (g == 0)), 1, kept)  # pruning hardly changes anything
    return LD(p.weight) * np.clip(1 - kept, LD(p.rho_min), LD(p.rho_max))


def lower_bound(p, price, near):
    """sum_k min_b (w rho(b) + price b) - price, low <= b <= cap, on finer and finer grids: no
    allocation is below it.

    A convex function that is least in the six decades on either side of `near` is least there
    altogether, and least on a grid next to where it is least.
    """
    low, cap = (LD(v) for v in p.share_bounds())
    low = np.minimum(low / max(low.sum(), 1), cap)  # least shares that exceed the band by rounding
    value = lambda b: cost(p, b) + LD(price) * b  # noqa: E731
    near = np.maximum(np.where(near > 0, LD(near), cap * LD(1e-6)), LD(1e-60))
    left, right = (np.log(np.clip(near * times, low, cap) + LD(1e-300)) for times in (1e-6, 1e6))
    best = np.minimum(value(low), value(cap))
    part = np.linspace(LD(0), LD(1), 34)[:, None]
    for _ in range(15):  # each makes the interval 16.5 times smaller
        grid = left + (right - left) * part
        values = value(np.clip(np.exp(grid), low, cap))
        at = values.argmin(axis=0)
        best = np.minimum(best, values.min(axis=0))
        left, right = (
            np.take_along_axis(grid, np.clip(at + step, 0, len(part) - 1)[None], axis=0)[0]
            for step in (-1, 1)
        )
    return np.where(p.feasible, best, 0).sum() - LD(price)


def true_gap(p, a):
    """Objective of an allocation minus `lower_bound`, and what the last digit of the shares is
    worth.

    Both in units of the objective (or of one average device).
    """
    on, share = p.feasible, LD(a.share)
    objective = np.where(on, LD(p.weight) * a.rho, 0).sum()
    unit = max(objective, LD(p.weight[on].mean()) if on.any() else LD(1))
    digit = np.where(on, cost(p, share * (1 - 1e-15)) - cost(p, share * (1 + 1e-15)), 0).sum()
    return float((objective - lower_bound(p, a.multiplier, a.share)) / unit), float(digit / unit)


def problems(density, most=12):
    flag = st.booleans()
    return st.builds(
        wide_problem, st.integers(0, 2**32 - 1), st.integers(1, most), flag, flag, st.just(density)
    )


def check(p, factor):
    p = stretched(p, factor)
    a = allocate(p)
    proof = a.certificate
    assert (
        max(proof.residual, proof.gap) <= 1e-9
    )  # 1e-9: least shares that were squeezed into the band
    assert a.share.sum() <= 1 + 1e-14 and (a.share >= 0).all()
    if (
        p.share_bounds()[0].sum() < 1 - 1e-6
    ):  # else the feasible set is a point, and rounding times the price decides
        gap, digit = true_gap(p, a)
        assert abs(gap) <= 1e-9 + digit


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(problems(density=False), st.sampled_from([1.0, 1.01]))
def test_optimal_where_noise_is_a_fixed_power(p, factor):
    check(p, factor)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(problems(density=True), st.sampled_from([1.0, 1.01]))
def test_optimal_where_noise_is_a_density(p, factor):
    check(p, factor)


def against_convex(p):
    """(objective of kkt, of convex or nan where its certificate refuses, unit of the
    certificates).
    """
    a = allocate(p)
    try:
        reference = allocate(p, "convex").objective
    except UncertifiedError as refused:
        assert "convex finds no answer" in str(refused) and "use kkt" in str(refused)
        reference = np.nan
    return a.objective, reference, objective_scale(p, a.rho)


def agree(problems, solved_at_least):
    """The objectives are the same to 1e-8 of the objective itself wherever the reference is
    certified.

    Shares of both are feasible exactly, so they differ by no more than the duality gaps; kkt is
    never the worse one.
    """
    ours, theirs, scale = np.array([against_convex(p) for p in problems]).T
    solved = np.isfinite(theirs)
    assert solved.mean() >= solved_at_least
    assert (np.abs(ours - theirs) <= 1e-8 * ours)[solved].all()
    assert ((ours - theirs) / scale)[solved].max() <= 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_convex_agrees_on_a_thousand(part):
    """Always the same 1,000; the reference refuses some."""
    seeds = range(200 * part, 200 * (part + 1))
    agree(
        (
            stretched(wide_problem(seed, 4 + seed % 3, seed % 2, seed % 3 == 0, False), 1.01)
            for seed in seeds
        ),
        0.92,
    )


@pytest.mark.slow
def test_convex_agrees_with_more_devices():
    agree(
        (
            stretched(wide_problem(seed, 10 + seed % 11, seed % 2, seed % 3 == 0, False), 1.01)
            for seed in range(60)
        ),
        0.93,
    )


@pytest.mark.slow
def test_convex_agrees_under_a_density():
    agree(
        (
            stretched(wide_problem(seed, 4 + seed % 3, seed % 2, seed % 3 == 0, True), 1.01)
            for seed in range(100)
        ),
        0.85,
    )


def test_the_bound_sees_an_answer_that_is_not_optimal():
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7, 3e8], snr=[3.0, 10.0, 30.0])
    a = allocate(p)
    share = a.share + np.array([1e-3, -1e-3, 0])
    assert (
        abs(true_gap(p, a)[0])
        < 1e-12
        < 1e-6
        < true_gap(p, replace(a, share=share, rho=p.rho_at(share)))[0]
    )
    assert (
        lower_bound(p, 0.9 * a.multiplier, a.share) < lower_bound(p, a.multiplier, a.share) - 1e-6
    )


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("bits, seconds", [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1.0, 1e6)])
def test_one_hertz_to_a_terahertz_one_bit_to_a_terabit(bits, seconds, density):
    more = {"snr": [2.0, 20.0, 200.0]} if density else {}
    p = PruningProblem([1e6, 2e6, 1e6], 4e-3, 20e-3, [4e7, 6e7, 9e7], [1, 2, 1], **more)
    scaled = replace(
        p, bits=p.bits * bits, compute_s=p.compute_s * seconds, slack_s=p.slack_s * seconds,
        rate_bps=p.rate_bps * bits / seconds,
    )  # fmt: skip
    a, b = allocate(p), allocate(scaled)
    assert b.share == approx(a.share, rel=1e-11, abs=1e-12) and b.multiplier == approx(
        a.multiplier, rel=1e-11
    )


def test_a_wider_band_under_a_density_by_hand():
    """K = 1, b = 1: the rate is rate_bps whatever the noise does, so rho is Liu (58) of the whole
    band.
    """
    for snr in (1e-3, 1.0, 1e6):
        a = allocate(PruningProblem(1e6, 4e-3, 20e-3, [4e7], snr=snr))
        assert a.rho == approx(
            [1 - 20e-3 * 4e7 / (4e7 * 4e-3 + 1e6)], rel=1e-14
        ) and a.share.tolist() == [1.0]


def test_two_equal_devices_under_a_density_by_hand():
    """Half a band each: R(1/2) = r log2(1 + 2 snr) / (2 log2(1 + snr)); with snr = 3 it is r
    log2(7) / 4.
    """
    a = allocate(PruningProblem(1e6, 4e-3, 20e-3, [4e7, 4e7], snr=3.0))
    r = 4e7 * np.log2(7) / 4
    assert a.share == approx([0.5, 0.5], rel=1e-12) and a.rho == approx(
        1 - 20e-3 * r / (4e-3 * r + 1e6), rel=1e-12
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(problems(density=True, most=6), st.floats(1, 3))
def test_more_band_hurts_nobodys_objective_under_a_density(p, factor):
    p = stretched(p, 1.01)
    wider = replace(p, rate_bps=p.rate_at(np.full(p.num_devices, factor)), snr=p.snr / factor)
    a, b = allocate(p), allocate(wider)
    assert b.objective <= a.objective * (1 + 1e-9) + 1e-9 * p.weight.max()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(problems(density=True, most=6), st.randoms())
def test_permuted_devices_get_permuted_answers_under_a_density(p, random):
    p = stretched(p, 1.01)
    order = np.arange(p.num_devices)
    random.shuffle(order)
    names = (
        "bits",
        "compute_s",
        "slack_s",
        "rate_bps",
        "weight",
        "rho_min",
        "rho_max",
        "bits_fixed",
        "snr",
    )
    a, b = (
        allocate(p),
        allocate(PruningProblem(**{name: getattr(p, name)[order] for name in names})),
    )
    assert b.objective == approx(a.objective, rel=1e-10) and b.rho == approx(a.rho[order], abs=1e-7)
