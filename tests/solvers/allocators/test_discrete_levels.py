"""A few allowed levels per device: exact by enumeration, and honest about how far it can be from
the best.
"""

import ctypes
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pytest import approx

from solvers import IN_BLOCKS, InfeasibleError, PruningProblem, UncertifiedError, allocate
from solvers.acceptance import accepted_solution
from solvers.allocators.discrete_levels import certify_levels

HALVES = (0.0, 0.25, 0.5, 0.75, 1.0)


def instance(seed, count, own, density=False):
    """K devices with levels for all, or (`own`) with one to four of their own."""
    rng = np.random.default_rng(seed)
    table = np.round(rng.random((count, 4)), 2)
    table[:, 0] = 1.0
    table[rng.random((count, 4)) < 0.3] = np.nan
    table[:, 0] = 1.0
    return PruningProblem(
        bits=10 ** rng.uniform(5.5, 6.5, count),
        compute_s=10 ** rng.uniform(-3, -2, count),
        slack_s=rng.choice([20e-3, 30e-3, 15e-3, -1e-3], count),
        rate_bps=10 ** rng.uniform(7, 8.5, count) * count / 3,
        weight=rng.uniform(0.5, 2, count),
        levels=table if own else HALVES,
        snr=10 ** rng.uniform(0, 2, count) if density else None,
    )


@pytest.mark.slow
@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.booleans(), st.booleans())
def test_enumeration_finds_nothing_better(seed, count, own, density):
    p = instance(seed, count, own, density)
    a, on = allocate(p, "levels"), p.feasible
    best = np.inf
    for choice in product(*(row[~np.isnan(row)] for row in p.levels)):
        if np.where(on, p.share_at(np.array(choice)), 0.0).sum() <= 1:
            best = min(best, p.objective(np.array(choice)))
    assert a.objective == approx(best, abs=1e-12) and a.certificate.gap <= 1e-9
    assert all(a.rho[k] in p.levels[k] for k in np.flatnonzero(on))
    assert (p.finish_s(a.share, a.rho)[on] <= p.slack_s[on] * (1 + 1e-9)).all()


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_what_fills_the_band_and_5e_10_more_is_not_taken(seed, count):
    """HiGHS keeps the band to 1e-9 only: it is asked again with less, and what it says then is the
    best that fits.
    """
    p = instance(seed, count, own=False)
    choice = np.random.default_rng(seed).choice(HALVES[:4], count)
    needed = np.where(p.feasible, p.share_at(choice), 0.0).sum()
    assume(0 < needed < np.inf)
    p = replace(p, rate_bps=p.rate_bps * needed / (1 + 5e-10))
    a = allocate(p, "levels")
    fits = [
        np.array(c)
        for c in product(HALVES, repeat=count)
        if p.share_at(np.array(c))[p.feasible].sum() <= 1
    ]
    assert a.share.sum() <= 1 and a.objective == approx(
        min(p.objective(c) for c in fits), abs=1e-12
    )


@pytest.mark.parametrize("snr", [10.0, 1e4])
def test_a_level_that_needs_just_the_whole_band_is_taken(snr):
    """1 Mbit at 1 Mbit/s in 1 s need a share of 1, of which the inverse rate makes 1 + 2e-16."""
    p = PruningProblem(1e6, 0.0, 1.0, 1e6, snr=snr, levels=HALVES)
    a = allocate(p, "levels")
    assert a.rho[0] == 0.0 and a.share[0] == 1.0
    worse = certify_levels(p, p.share_at(0.25), np.array([0.25]))
    assert worse.dual == approx(0.25) and worse.gap == approx(0.25)


@pytest.mark.parametrize("shares", [(0.7, 0.1, 0.2), (0.15, 0.35, 0.5), [1 / 49] * 49, [0.05] * 20])
def test_levels_whose_shares_add_up_to_the_band_but_for_rounding_are_taken(shares):
    """n Mbit at 1 Mbit/s in 1 s need shares of n, in any order."""
    for order in (1, -1):
        a = allocate(
            PruningProblem(np.array(shares[::order]), 0.0, 1.0, 1.0, levels=HALVES), "levels"
        )
        assert a.objective == 0.0 and a.share.sum() <= 1.0 + 1e-15


@pytest.mark.parametrize("count, gap", [(60, 1e-9), (5000, 1e-4)])
def test_never_better_than_any_ratio_and_as_near_as_it_says(count, gap):
    p = instance(7, count, own=False)
    a = allocate(p, "levels")
    free = allocate(PruningProblem(p.bits, p.compute_s, p.slack_s, p.rate_bps, p.weight))
    assert free.objective <= a.objective and a.certificate.gap <= gap
    assert ("branch and bound" in a.certificate.claim) == (count == 60)
    assert (
        f"{a.certificate.gap:.2g}" in a.certificate.claim
        and "no allowed levels" in a.certificate.claim
    )
    assert (
        0 < certify_levels(p, a.share, a.rho).gap < 1e-2
    )  # the price of the band alone proves less


def test_thousands_of_equal_devices_share_what_the_price_leaves_open():
    """Level 0 needs q / (r (A - G)) = 1 / 1500 of the band: 1500 of 3000 devices get it. Level 0.5
    needs 8 ms / 18 ms of that, less than half: where the rate is that much lower, 1500 get it.
    """
    rate_bps = 1500 * 1e6 / 16e-3
    a = allocate(PruningProblem(np.full(3000, 1e6), 4e-3, 20e-3, rate_bps, levels=[0, 1]), "levels")
    assert a.objective == 1500 and a.certificate.gap <= 1e-9 and a.rho[:1500].max() == 0
    half = PruningProblem(np.full(3000, 1e6), 4e-3, 20e-3, rate_bps * 16 / 36, levels=HALVES[::2])
    a = allocate(half, "levels")
    assert a.objective == 2250 and a.certificate.gap <= 1e-9 and a.rho[:1500].max() == 0.5


def test_thousands_of_devices_fill_what_one_that_does_not_fit_leaves_idle():
    """Of shares 0.5, 0.6 and 2000 times 1e-4 the first fits, and then the small ones, worth less
    per band than the second that does not fit.
    """
    small = np.linspace(1e-5, 2e-5, 2000)
    p = PruningProblem(np.r_[0.5, 0.6, np.full(2000, 1e-4)], 0.0, 1.0, 1.0, np.r_[9, 8, small])
    a = allocate(replace(p, levels=[0, 1]), "levels")
    assert a.rho[1] == 1 and a.objective == 8 and a.share.sum() == approx(0.7)


def test_the_claim_names_what_its_gap_is_a_part_of():
    """600 devices need 1 / 599.6 of the band each for level 0, and half of that for 0.5. The bound
    is 0.4, and one is pruned to 0.5: 0.1 more, which is a fifth of 0.5 and a tenth of a device.
    """
    p = PruningProblem(np.ones(600), 0.0, 1.0, 599.6, levels=HALVES[::2])
    a = allocate(p, "levels")
    assert a.objective == 0.5 and a.certificate.gap == approx(0.1)
    assert "lesser by more than 0.1 of one average device" in a.certificate.claim
    narrow = allocate(replace(p, rate_bps=298.6), "levels")
    assert narrow.objective == 301.5 and "of it" in narrow.certificate.claim


@pytest.mark.slow
def test_nothing_is_printed(capfd):
    """HiGHS writes a line of its debugging on this one; what was printed before stays, and so does
    what comes after.
    """
    print("before")
    ctypes.CDLL(None).puts(b"also before")
    for p in (instance(18, 150, own=False, density=True), instance(29, 150, own=True)):
        allocate(p, "levels")
    print("after")
    assert capfd.readouterr().out.split("\n") == ["before", "also before", "after", ""]


def test_by_hand():
    """G = 0: level 0.5 needs q / 2 / (r A), that is 0.625 and 0.41667, level 0 twice that; two
    halves do not fit.
    """
    p = PruningProblem(1e6, 0.0, 20e-3, [4e7, 6e7], levels=[0, 0.5, 1])
    a = allocate(p, "levels")
    assert a.rho.tolist() == [1.0, 0.0] and a.share == approx([0, 1e6 / (6e7 * 20e-3)])
    heavy = allocate(
        PruningProblem(1e6, 0.0, 20e-3, [4e7, 6e7], [3, 1], levels=[0, 0.5, 1]), "levels"
    )
    assert heavy.rho.tolist() == [0.5, 1.0] and heavy.objective == 2.5


def test_the_largest_levels_do_not_fit():
    with pytest.raises(InfeasibleError) as caught:
        allocate(PruningProblem(1e6, 4e-3, 20e-3, [4e7, 4e7], levels=[0, 0.5]), "levels")
    p = PruningProblem(1e6, 4e-3, 20e-3 + caught.value.extra_s, [4e7, 4e7], levels=[0, 0.5])
    assert allocate(p, "levels").rho.tolist() == [0.5, 0.5]


def test_the_certificate_sees_a_wrong_answer():
    p = PruningProblem(1e6, 0.0, 20e-3, [4e7, 6e7], levels=[0, 0.5, 1])
    a = allocate(p, "levels")
    proof = certify_levels(p, a.share, np.array([0.5, 0.0]))
    assert proof.primal > 0.1 and "device 0 finishes" in proof.broken[0]
    assert certify_levels(p, a.share, np.array([1.0, 0.6])).primal == approx(0.1)  # no level
    lazy = certify_levels(p, np.zeros(2), np.ones(2))
    assert lazy.dual > 0.1 and lazy.gap > 0.1
    with pytest.raises(UncertifiedError):
        accepted_solution(p, np.zeros(2), np.ones(2), 0.0, lazy, "levels", claims_gap=False)


@pytest.mark.parametrize("method", ["kkt", "fair", "convex", "convex-fair", "printed"])
def test_who_chooses_any_rho_refuses_levels(method):
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7], levels=[0.0, 0.5, 1.0])
    for blocks in (None, 6) if method in IN_BLOCKS else (None,):
        with pytest.raises(
            ValueError, match=f"^{method} chooses any rho within its bounds; for levels use"
        ):
            allocate(p, method, blocks=blocks)


def test_levels_without_levels():
    with pytest.raises(ValueError, match="allowed values of rho"):
        allocate(PruningProblem(1e6, 4e-3, 20e-3, 4e7), "levels")


def test_equal_shares_take_the_next_level():
    p = PruningProblem(
        1e6, 0.0, 20e-3, [4e7, 6e7], levels=[[0, 0.5, 0.7, np.nan], [0, 0.3, 0.4, 1]]
    )
    assert allocate(p, "equal").rho.tolist() == [0.7, 0.4]  # 0.6 and 0.4 are asked


@pytest.mark.parametrize(
    "levels, words",
    [
        ([0.2, 1.2], "levels of device 0 contain 1.2; a level is between 0 and 1"),
        ([[0.5], [np.nan]], "levels of device 1 have none between rho_min 0 and rho_max 0.9"),
        ([0.95], "levels of device 0 have none"),
        ([[0.5, 0.6]] * 3, "shape \\(3, 2\\); give \\[L\\] or \\[K, L\\] with K = 2"),
        ("half", "allowed values of rho"),
        ([], "shape"),
    ],
)
def test_levels_are_checked(levels, words):
    with pytest.raises(ValueError, match=words):
        PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7], rho_max=0.9, levels=levels)
