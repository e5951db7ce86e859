"""Least latency: by hand, its certificate, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from pytest import approx

from solvers import PruningProblem, allocate
from solvers.allocators.min_max_latency import certify_latency
from tests.solvers.allocators.two_and_more_devices import SNR, A, G, Q, R, problem, problems


def test_latency_by_hand():
    """1e6 bit at 4e7 and 6e7 bit/s take 25 and 16 2/3 ms of the band: all of them are 41 2/3 ms,
    behind 4 ms.
    """
    a = allocate(problem(slack_s=np.inf), "latency")
    assert a.share == approx([0.6, 0.4], rel=1e-14) and a.rho.tolist() == [0, 0]
    assert a.objective == approx(4e-3 + 1e6 / 4e7 + 1e6 / 6e7, rel=1e-14)
    assert a.multiplier == approx(
        1e6 / 4e7 + 1e6 / 6e7, rel=1e-12
    )  # T = G + n / B: dT/dB = -n at B = 1


def test_latency_counts_what_was_before():
    """8 ms before the first upload and none before the second: T from 25 / (T - 12) + 16.67 / (T -
    4) = 1.
    """
    total, early, late = 1e6 / 4e7 + 1e6 / 6e7, 4e-3, 12e-3
    middle = early + late + total
    root = early * late + early * 1e6 / 4e7 + late * 1e6 / 6e7
    last_s = 0.5 * (middle + np.sqrt(middle**2 - 4 * root))
    given = allocate(problem(slack_s=np.inf, before_s=[8e-3, 0.0]), "latency")
    implied = allocate(problem(slack_s=[92e-3, 100e-3]), "latency")  # T_th = 100 ms
    late_anyway = allocate(problem(slack_s=[2e-3, 10e-3]), "latency")
    for a in (given, implied, late_anyway):
        assert a.objective == approx(last_s, rel=1e-13)
        assert a.share == approx([25e-3 / (last_s - late), 1e6 / 6e7 / (last_s - early)], rel=1e-12)


def test_latency_of_those_who_send_nothing():
    """Device 0 computes for 1 s and sends nothing: the others are back as early as they can."""
    p = problem(bits=[0.0, Q, Q], compute_s=[1.0, G, G], rate_bps=[4e7, *R], slack_s=np.inf)
    a = allocate(p, "latency")
    assert a.objective == approx(1.0) and a.multiplier == 0 and a.share == approx([0, 0.6, 0.4])
    alone = allocate(PruningProblem(0.0, 1.0, np.inf, 4e7), "latency")
    assert alone.objective == 1.0 and alone.share.tolist() == [0]
    assert "(worst residual 0, duality gap 0)" in alone.explain()


def test_latency_leaves_out_who_has_no_time_and_takes_the_least_pruning():
    a = allocate(problem(slack_s=[A, 0.0], rho_min=0.25, rho_max=[0.5, 0.75]), "latency")
    assert a.infeasible == (1,) and a.share.tolist() == [1, 0] and a.rho.tolist() == [0.25, 0.75]


def test_latency_needs_to_know_what_was_before():
    with pytest.raises(ValueError, match="slack_s of device 1 is inf and others are not"):
        allocate(problem(slack_s=[A, np.inf]), "latency")


@pytest.mark.slow
@settings(deadline=None)
@given(problems())
def test_latency_is_certified_and_all_who_send_are_back_together(p):
    a = allocate(p, "latency")
    assert a.certificate.residual <= 1e-11 and a.certificate.gap <= 1e-11
    sends = p.feasible & (((1 - p.rho_min) * p.bits + p.bits_fixed) > 0)
    finish_s = (p.slack_s.max() - p.slack_s + p.finish_s(a.share, a.rho))[sends]
    if sends.any():
        assert a.share.sum() == approx(1, abs=1e-14) and np.ptp(finish_s) <= 1e-11 * finish_s.max()
        assert a.objective >= finish_s.max() * (1 - 1e-12)


@pytest.mark.parametrize("snr", [None, (*SNR, 50.0)])
def test_the_certificate_of_latency_rejects(snr):
    p = problem(rate_bps=(*R, 3e8), slack_s=np.inf, snr=snr)
    a = allocate(p, "latency")
    assert certify_latency(p, a.share, a.rho)[2].gap < 1e-14
    for moved in ([1e-3, -1e-3, 0], [-1e-3, 0, 0]):  # another split; band unused
        proof = certify_latency(p, a.share + moved, a.rho)[2]
        assert proof.gap > 1e-5 and proof.residual > 1e-5
        last_s = (p.finish_s(a.share + moved, a.rho)).max()
        assert proof.gap * last_s >= last_s - a.objective  # a bound from below indeed


@pytest.mark.parametrize(
    ("name", "value"),
    [("bits", [1e308, 1e6]), ("rate_bps", [1e-307, 4e7]), ("rate_bps", [1e160, 1e160])],
)
def test_latency_names_numbers_that_leave_the_range_of_doubles(name, value):
    p = replace(PruningProblem([1e6, 1e6], 4e-3, np.inf, [4e7, 6e7]), **{name: value})
    with pytest.raises(
        ValueError,
        match=f"{name} of device 0 is {value[0]:g}, too far from the other".replace("+", "."),
    ):
        allocate(p, "latency")
