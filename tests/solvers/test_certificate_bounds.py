"""Certificates beside what is lost: caps, shares of nothing, times far apart."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pytest import approx

from solvers import InfeasibleError, PruningProblem, UncertifiedError, allocate
from solvers.acceptance import certified_solution
from solvers.allocators.discrete_levels import certify_levels
from solvers.allocators.min_max_latency import certify_latency
from solvers.certificate import certify, objective_scale
from solvers.energy_terms import EnergyTerms
from solvers.min_energy.energy_problem import EnergyProblem

VECTORS = (
    "bits",
    "compute_s",
    "slack_s",
    "rate_bps",
    "weight",
    "rho_min",
    "rho_max",
    "bits_fixed",
    "snr",
    "levels",
)


def instance(seed, count, density):
    """Devices with caps, some with rho_min = rho_max, some that send nothing, some with A <= 0."""
    rng = np.random.default_rng(seed)
    some = lambda values, other: np.where(rng.random(count) < 0.2, other, values)  # noqa: E731
    floor = some(rng.uniform(0, 0.3, count), 0.0)
    return PruningProblem(
        bits=some(10 ** rng.uniform(5, 7, count), 0.0),
        compute_s=some(10 ** rng.uniform(-4, -2, count), 0.0),
        slack_s=some(rng.uniform(15e-3, 30e-3, count), -1e-3),
        rate_bps=10 ** rng.uniform(7, 9, count),
        weight=rng.uniform(0.2, 5, count),
        rho_min=floor,
        rho_max=some(some(1.0, 0.8), floor),
        snr=10 ** rng.uniform(-1, 3, count) if density else None,
    )


def joules(gains, cycles=4e8):
    terms = EnergyTerms(cycles, 1e-28, 0.0, 2e9, 0.5, gains)
    rate_bps = 1e6 * np.log2(1.0 + 0.5 * np.asarray(gains))
    return PruningProblem(1e6, 0.0, 1.0, rate_bps, rho_max=0.0, energy=terms)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 6),
    st.booleans(),
    st.floats(-9, 0),
    st.sampled_from([1, 0, 0.5, 2]),
    st.sampled_from([1.0, 0.999, 0.5]),
)
def test_the_gap_is_no_less_than_what_is_lost(seed, count, density, size, factor, part):
    """Shares moved by 1e-9 to 1 of the way to others that are in time too, of all the band or a
    part of what is free,
    at any price: weak duality."""
    p = instance(seed, count, density)
    assume(p.feasible.any())
    try:
        best = allocate(p)
    except InfeasibleError:
        assume(False)
    low = np.minimum(p.share_bounds()[0], best.share)
    other = low + (1.0 - low.sum()) * np.random.default_rng(seed + 1).dirichlet(np.full(count, 0.5))
    share = low + part * (best.share + 10**size * (other - best.share) - low)
    rho = p.rho_at(share)
    lost = (p.objective(rho) - best.objective) / objective_scale(p, rho)
    assert certify(p, share, rho, factor * best.multiplier).gap >= lost - 1e-9


@pytest.mark.parametrize(
    ("compute_s", "moved"), [([4e-3, 0.0], 0.05), ([4e-3, 0.0], 0.5), ([4e-3, 2e-3], 1e-6)]
)
def test_what_is_above_a_cap_is_lost(compute_s, moved):
    """Device 0 is full with 0.15625 of the band: 1e6 bit / (4e8 bit/s x 16 ms). More is lost at
    the full price.
    """
    p = PruningProblem([1e6, 1e7], compute_s, 20e-3, [4e8, 1e8])
    a = allocate(p)
    share = a.share + np.array([moved, -moved])
    rho = p.rho_at(share)
    assert a.share[0] == approx(0.15625) and rho[0] == 0
    gap = certify(p, share, rho, a.multiplier).gap
    assert gap >= (p.objective(rho) - a.objective) / objective_scale(p, rho) - 1e-12 and gap > 1e-7
    with pytest.raises(UncertifiedError, match="duality gap"):
        certified_solution(p, share, rho, a.multiplier, "kkt")


@pytest.mark.parametrize(
    ("problem", "share"),
    [
        (PruningProblem([1e6, 0.0], 4e-3, 20e-3, 4e7), [0.3, 0.7]),
        (PruningProblem(1e6, 4e-3, [0.2, 0.2, -1e-3], 4e7), [0.2, 0.2, 0.6]),
    ],
)
def test_band_of_those_who_send_nothing_brings_nobody_back_earlier(problem, share):
    best = allocate(problem, "latency")
    last_s, _, proof = certify_latency(problem, np.array(share), best.rho)
    assert last_s > 1.5 * best.objective and proof.gap * last_s >= last_s - best.objective - 1e-12


def test_uploads_far_shorter_than_the_time_before():
    """Device 1 starts 3.5 s after device 0 and sends for 3 ns: of these seconds of 8 s keep seven
    digits only.
    """
    a = allocate(PruningProblem([2441.0, 73.0], [4.4, 7.9], np.inf, [3.9e3, 3.2e10]), "latency")
    upload_s = 73 / (3.2e10 * a.share[1])
    assert a.share[0] == approx(
        2441 / 3.9e3 / (3.5 + upload_s), rel=1e-12
    ) and a.share.sum() == approx(1, abs=1e-15)
    assert a.objective == approx(7.9 + upload_s, rel=1e-15)


@pytest.mark.parametrize("snr", [None, [10.0, 20.0, 30.0]])
@pytest.mark.parametrize("share", [-1e-10, -1e-20, -0.0, 0.0])
def test_a_share_of_nothing_is_never_back(share, snr):
    """A share that is below zero by rounding keeps its bound; an upload in less than no time is
    none.
    """
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7, 9e7], snr=snr, levels=[0.0, 0.9])
    others = replace(
        p, **{name: getattr(p, name)[1:] for name in VECTORS if getattr(p, name) is not None}
    )
    b = np.r_[share, allocate(others, "latency").share]
    assert p.finish_s(b, np.zeros(3))[0] == np.inf
    assert not certify_latency(p, b, np.zeros(3))[2].gap < 1.0
    assert certify_levels(p, np.full(3, share), np.zeros(3)).primal == np.inf
    task = EnergyProblem.of(replace(joules([100.0, 30.0, 10.0]), levels=None))
    assert task.air_s(b, np.full(3, 0.1))[0] == np.inf


def test_latency_prunes_nobody_more_than_rho_min():
    """Who is pruned more is back earlier, which no shares can reach; of a tenth here, or of all."""
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7], rho_min=0.1)
    a = allocate(p, "latency")
    assert certify_latency(p, a.share, a.rho)[2].residual < 1e-12
    for more in ([1e-7, 0.0], [1e-7, 1e-7], [0.9, 0.9]):
        assert certify_latency(p, a.share, a.rho + more)[2].complementarity == approx(max(more))
    proof = certify_latency(p, np.array([0.0, 1.0]), np.array([1.0, 0.1]))[
        2
    ]  # pruned until no share is needed
    assert proof.gap == np.inf and proof.complementarity == approx(0.9)


@pytest.mark.parametrize("method", ["kkt", "fair"])
def test_numbers_that_leave_the_range_of_doubles_are_named(method):
    far = PruningProblem(1e6, [0.01, 1e300], [0.9, 1e300], 5e6)
    with pytest.raises(
        ValueError,
        match=f"compute_s of device 1 is 1e\\+300, too far from .* for {method} to compute",
    ):
        allocate(far, method)
    tiny = PruningProblem(1e-300, 8e-3, 1e-100, 5.2e6, snr=50.0)
    with pytest.raises(
        ValueError, match=f"bits of device 0 is 1e-300, too far from .* for {method} to compute"
    ):
        allocate(tiny, method)
