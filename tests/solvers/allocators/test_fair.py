"""The fair allocation: by hand, its certificate, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from pytest import approx

from solvers import InfeasibleError, PruningProblem, allocate
from solvers.allocators.fair import certify_fair, with_rho_at_most
from solvers.certificate import certify, objective_scale
from tests.solvers.allocators.two_and_more_devices import (
    SNR,
    A,
    G,
    Q,
    R,
    instance,
    problem,
    problems,
    stretched,
)


def test_fair_by_hand():
    """Equal upload times: b = r2 / (r1 + r2) = 0.6 and 0.4, 41 2/3 ms unpruned, so 20 / (4 + 41
    2/3) is kept.
    """
    a = allocate(problem(), "fair")
    assert a.share == approx([0.6, 0.4], rel=1e-14) and a.rho == approx([77 / 137] * 2, rel=1e-14)
    assert a.objective == approx(77 / 137, rel=1e-14)
    steep = Q * A * np.array(R) / (np.array(R) * a.share * G + Q) ** 2  # -d rho / db, Liu (53)
    assert a.multiplier == approx(1 / (1 / steep).sum(), rel=1e-12)
    assert a.objective < max(allocate(problem()).rho)  # 0.97 there


def test_ties_are_broken_by_the_sum():
    """Device 0 has nothing to send and no way below rho = 1/3; what the others share then is Liu's
    problem, up to 1/3.

    With 3e8 and 4e8 bit/s they need no pruning at all: 1e6 / (3e8 16 ms) + 1e6 / (4e8 16 ms) =
    0.365 of the band.
    """
    free = allocate(
        problem(bits=[0.0, Q, Q], compute_s=[30e-3, G, G], rate_bps=[4e7, 3e8, 4e8]), "fair"
    )
    assert free.rho == approx([1 / 3, 0, 0]) and free.multiplier == 0
    tight = problem(bits=[0.0, Q, Q], compute_s=[30e-3, G, G], rate_bps=[4e7, 7e7, 9e7])
    a = allocate(tight, "fair")
    pair = allocate(problem(rate_bps=(7e7, 9e7), rho_max=1 / 3))
    assert a.objective == approx(1 / 3, rel=1e-15) and a.share[1:] == approx(pair.share)
    assert a.rho[1:].sum() == approx(pair.objective) and a.rho[1:].max() <= 1 / 3 + 1e-15


@pytest.mark.slow
def test_nobody_at_the_top_and_nobody_to_move():
    """One device that sends nothing: no band raises or lowers its rho, which rounding puts above
    the floor or not.
    """
    for seed in range(300):
        rng = np.random.default_rng(seed)
        p = PruningProblem(0.0, rng.uniform(2e-2, 3e-2), rng.uniform(1e-3, 2e-2), 1e7)
        a = allocate(p, "convex-fair")
        assert a.rho == approx(1 - p.slack_s / p.compute_s, rel=1e-12) and a.multiplier == 0


@pytest.mark.slow
@settings(deadline=None)
@given(problems())
@example(
    instance(10006366, 4, True, False, False, True)
)  # a device 2e-6 below the top for 4e-13 of the band
def test_fair_is_certified_and_nobody_does_better(p):
    p = stretched(p)
    a = allocate(p, "fair")
    assert a.certificate.residual <= 1e-11 and a.certificate.gap <= 1e-11
    assert a.share.sum() <= 1 + 1e-14 and not a.certificate.broken
    assert a.objective <= allocate(p).rho.max(where=p.feasible, initial=0.0) + 1e-12
    assert p.objective(allocate(p).rho) <= p.objective(a.rho) + 1e-9


@pytest.mark.parametrize("snr", [None, (*SNR, 50.0)])
def test_the_certificate_of_fair_rejects(snr):
    p = problem(rate_bps=(*R, 8e7), snr=snr)
    a = allocate(p, "fair")
    for moved in ([1e-3, -1e-3, 0], [-1e-3, 0, 0]):
        share = a.share + moved
        rho = p.rho_at(share)
        tied = with_rho_at_most(p, rho.max())
        spoilt = replace(
            a, share=share, rho=rho, certificate=certify(tied, share, rho, a.multiplier)
        )
        proof = certify_fair(p, spoilt)[2]
        assert proof.gap > 1e-5 and proof.gap >= rho.max() - a.objective > 1e-5


@pytest.mark.parametrize("snr", [None, (*SNR, 50.0)])
def test_the_least_sum_under_a_higher_bound_is_not_fair(snr):
    """Its tie-break is perfect; only the lower bound of the largest rho tells that it is 1e-3 too
    high.
    """
    p = problem(rate_bps=(*R, 8e7), snr=snr)
    top = allocate(p, "fair").objective + 1e-3
    answer = allocate(with_rho_at_most(p, top))
    proof = certify_fair(p, answer)[2]
    assert answer.certificate.gap < 1e-12 and answer.rho.max() == approx(top)
    assert proof.gap >= 1e-3 - 1e-12


def test_of_the_same_largest_rho_only_the_least_sum_is_fair():
    """Device 0 sends nothing and computes for 40 ms in 20: rho = 1/2 with any band; the others
    have room below it.
    """
    p = problem(bits=[0.0, Q, Q], compute_s=[40e-3, G, G], rate_bps=(1e8, 2e8, 3e8))
    a = allocate(p, "fair")
    share = a.share + np.array([0.0, 1e-2, -1e-2])
    rho = p.rho_at(share)
    assert a.objective == rho.max() == approx(0.5) and p.objective(rho) > p.objective(a.rho)
    spoilt = replace(
        a,
        share=share,
        rho=rho,
        certificate=certify(with_rho_at_most(p, 0.5), share, rho, allocate(p).multiplier),
    )
    assert (
        certify_fair(p, spoilt)[2].gap
        >= (p.objective(rho) - p.objective(a.rho)) / objective_scale(p, rho)
        > 1e-7
    )


def test_fair_refuses_levels_and_infeasible_problems():
    with pytest.raises(
        ValueError, match="fair chooses any rho within its bounds; for levels use the method levels"
    ):
        allocate(problem(levels=[0.0, 0.5, 1.0]), "fair")
    with pytest.raises(InfeasibleError):
        allocate(problem(rho_max=0.1), "fair")


def test_one_who_is_pruned_altogether_beside_others_who_take_the_band():
    """Device 0 needs all of the band at its rho_max, and device 1 stays at 1: nothing is better.

    Its share is 0, and the only bound was what each would have with the whole band, 1/2.
    """
    slack_s = 0.5 * G + 0.5 * Q / R[0]  # with b = 1 and rho = 1/2
    a = allocate(problem(slack_s=slack_s, rho_max=[0.5, 1.0]), "fair")
    assert (a.share == approx([1.0, 0.0])) and a.rho == approx([0.5, 1.0])
    steep = Q * slack_s * R[1] / Q**2  # -d rho / db at b = 0, Liu (53)
    assert a.objective == 1.0 and a.multiplier == approx(steep, rel=1e-9)
    assert abs(a.certificate.gap) <= 1e-12


def test_hardly_anything_is_kept():
    """rho within 1e-9 of one for all: the sum of the shares still is one, and not above."""
    a = allocate(PruningProblem(1e15, 1e-3, 20e-3, np.full(50, 1e7)), "fair")
    assert (
        a.share.sum() == approx(1, abs=1e-5)
        and a.share.sum() <= 1 + 1e-14
        and 1 - 1e-9 < a.objective < 1
    )
