"""Least maxima in whole blocks against enumeration."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pytest import approx

from solvers import InfeasibleError, UncertifiedError, allocate
from solvers.resource_blocks.min_max_blocks import check_least_max
from tests.solvers.allocators.two_and_more_devices import instance, problem, splits, stretched


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(4, 9), st.booleans(), st.booleans()
)
@example(
    999999, 2, 4, True, False
)  # the largest rho, of a device that sends nothing, differs by an ulp with its share
def test_fair_blocks_against_enumeration(seed, count, blocks, density, caps):
    p = stretched(instance(seed, count, density, False, caps))
    try:
        a = allocate(p, "fair", blocks)
    except InfeasibleError:

        def late(n):
            return (p.finish_s(n / blocks, p.rho_max) > p.slack_s * (1 + 1e-9))[p.feasible].any()

        assert all(late(n) for n in splits(count, blocks))
        return
    found = []
    for n in splits(count, blocks):
        rho = p.rho_at(n / blocks)
        if not (p.finish_s(n / blocks, rho) > p.slack_s * (1 + 1e-9))[p.feasible].any():
            found.append((rho.max(where=p.feasible, initial=0.0), p.objective(rho)))
    top, strict = min(found)
    least = min(
        total for largest, total in found if largest <= top + 1e-15
    )  # who ties by the last digit of rho
    assert (
        a.objective == approx(top, abs=1e-15)
        and least - 1e-12 <= p.objective(a.rho) <= strict + 1e-12
    )
    assert (a.share * blocks == np.round(a.share * blocks)).all()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(4, 9), st.booleans())
def test_latency_blocks_against_enumeration(seed, count, blocks, density):
    p = instance(seed, count, density)
    p = replace(p, bits=p.bits + 1e4, slack_s=np.abs(p.slack_s))
    a = allocate(p, "latency", blocks)
    before_s = p.slack_s.max() - p.slack_s
    times = [
        before_s + p.finish_s(n / blocks, p.rho_min) for n in splits(count, blocks) if n.min() > 0
    ]
    best = min((t.max(), t.sum()) for t in times)
    finish_s = before_s + p.finish_s(a.share, a.rho)
    assert (
        a.objective == best[0]
        and finish_s.max() == best[0]
        and finish_s.sum() == approx(best[1], rel=1e-12)
    )


@pytest.mark.slow
def test_six_devices_and_twelve_blocks():
    """All 12-block splits of six devices, by the counts themselves: 12 choose 6 and more."""
    p = instance(3, 6, False)
    p = replace(p, bits=p.bits + 1e5, slack_s=np.abs(p.slack_s) + 1e-3)
    before_s = p.slack_s.max() - p.slack_s
    best = min(
        (before_s + p.finish_s(n / 12, p.rho_min)).max()
        for n in splits(6, 12)
        if n.min() > 0 and n.sum() == 12
    )
    assert allocate(p, "latency", blocks=12).objective == best


def test_more_blocks_come_nearer_to_the_band():
    p = instance(5, 8, True)
    p = replace(p, bits=p.bits + 1e5, slack_s=np.abs(p.slack_s))
    exact = allocate(p, "latency").objective
    coarse, fine = allocate(p, "latency", 60).objective, allocate(p, "latency", 6_000_000).objective
    assert coarse > fine >= exact * (1 - 1e-12) and fine == approx(exact, rel=1e-4)


def test_too_few_blocks_and_a_wrong_answer():
    with pytest.raises(InfeasibleError, match="blocks is 1; give at least one to each of the 2"):
        allocate(problem(), "latency", 1)
    p = problem(slack_s=np.inf)
    finish_s = lambda n: p.finish_s(np.maximum(n, 1) / 10, p.rho_min)  # noqa: E731
    low, cap = np.array([1, 1]), np.array([10, 10])
    check_least_max(finish_s, np.array([6, 4]), low, cap, 10)
    with pytest.raises(UncertifiedError, match="would cost less"):
        check_least_max(finish_s, np.array([5, 5]), low, cap, 10)
