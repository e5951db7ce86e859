"""Certificates of answers that are not the best: no perturbation passes for better than it is."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pytest import approx

from solvers import InfeasibleError, PruningProblem, UncertifiedError, allocate
from solvers.allocators.min_max_latency import certify_latency
from solvers.certificate import certified_solution, certify, objective_scale
from solvers.energy_terms import EnergyTerms
from solvers.min_energy.allocator import clocks, least_shares
from solvers.min_energy.energy_certificate import certified_energy, certify_energy
from solvers.min_energy.energy_problem import EnergyProblem
from solvers.resource_blocks.pruning_levels import certify_levels

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


def joules(gains, cycles=4e8):
    terms = EnergyTerms(cycles, 1e-28, 0.0, 2e9, 0.5, gains)
    rate_bps = 1e6 * np.log2(1.0 + 0.5 * np.asarray(gains))
    return PruningProblem(1e6, 0.0, 1.0, rate_bps, rho_max=0.0, energy=terms)


@pytest.mark.parametrize("factor", [1.001, 0.999, 0.5, 0.0, -1.0, np.nan])
def test_energy_certifies_the_price_that_it_returns(factor):
    a = allocate(joules([100.0, 30.0, 10.0]), "energy")
    task = EnergyProblem.of(a.problem)
    certified_energy(task, a.share, a.cpu_hz, a.power_w, a.multiplier)
    with pytest.raises(UncertifiedError, match="energy"):
        certified_energy(task, a.share, a.cpu_hz, a.power_w, factor * a.multiplier)


@pytest.mark.parametrize("price", [-1e-6, -1.0, np.nan])
def test_a_price_below_zero_proves_nothing_of_a_single_device(price):
    """It holds the whole band, so that b <= 1 holds it as well: any price below its own will do,
    but not below zero.
    """
    a = allocate(joules([100.0]), "energy")
    assert a.share[0] == 1.0
    with pytest.raises(UncertifiedError, match="energy"):
        certified_energy(EnergyProblem.of(a.problem), a.share, a.cpu_hz, a.power_w, price)


def test_band_has_no_price_where_nobody_sends():
    a = allocate(replace(joules([100.0, 30.0]), bits=0.0), "energy")
    assert a.multiplier == 0
    for price in (1.0, -1.0, np.nan):
        with pytest.raises(UncertifiedError, match="energy"):
            certified_energy(EnergyProblem.of(a.problem), a.share, a.cpu_hz, a.power_w, price)


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


@pytest.mark.parametrize("density", [False, True])
def test_a_device_out_of_reach_is_named(density):
    """200 dB at 0.2 W: given just the time that it needs it leaves 6e-9 of the band under a
    density, which will do, and
    nothing under noise of a fixed power, where choice is rounding; a hundred millionth more time
    leaves 1e-8."""
    snr = 0.2 * 10 ** (-np.array([90.0, 97.0, 104.0, 200.0]) / 10) / (10**-20.4 * 20e6)
    terms = EnergyTerms(12e6, 1e-28, 0.0, 3e9, 0.2, snr / 0.2)
    noise = {"snr": snr} if density else {}
    p = PruningProblem(
        1e6, 4e-3, 10.0, 20e6 * np.log1p(snr) / np.log(2), rho_max=0.0, energy=terms, **noise
    )
    with pytest.raises(
        InfeasibleError, match=r"device 3 is late with any share of the band; give .* s more time"
    ) as caught:
        allocate(p, "energy")
    late = replace(p, slack_s=p.slack_s + caught.value.extra_s)
    if not density:
        with pytest.raises(
            UncertifiedError, match=r"device 3 alone 100 %.*; give more time, or leave device 3 out"
        ):
            allocate(late, "energy")
        late = replace(late, slack_s=(1 + 1e-8) * late.slack_s)
    a = allocate(late, "energy")
    assert a.certificate.gap < 1e-8 and a.share[3] > 1 - 3e-8
    assert allocate(replace(late, slack_s=1.01 * late.slack_s), "energy").certificate.gap < 1e-12


def test_the_least_shares_of_all_bring_the_proof_closer():
    """From a third of the band to 1e-6 of it is left to be divided. Answers that are in time, at
    any price: what the
    smaller box proves is a bound of the least joules as well, and never the worse one."""
    rng = np.random.default_rng(5)
    p = replace(
        joules(10 ** rng.uniform(1, 4, 5), cycles=10 ** rng.uniform(5, 9, 5)),
        bits=10 ** rng.uniform(4, 6, 5),
    )
    least_s = extra_s(p)
    for hurry in (1.5, 1.01, 1 + 1e-3, 1 + 1e-6):
        p = replace(p, slack_s=least_s * hurry)
        best, task, low = allocate(p, "energy"), EnergyProblem.of(p), least_shares(p)
        for _ in range(50):
            share = low + (1.0 - low.sum()) * rng.dirichlet(np.full(5, 0.5))
            part = rng.random(5)
            shortest_s = task.air_s(share, task.terms.p_max_w)
            air_s = shortest_s + part * np.maximum(task.radio.longest_s - shortest_s, 0.0)
            power_w = np.minimum(task.radio.power(share, air_s), task.terms.p_max_w)
            price = best.multiplier * rng.choice([0.0, 0.5, 1.0, 2.0])
            answer = share, clocks(task, air_s), power_w, price
            spent, proof = certify_energy(task, *answer, closer=True)
            assert (
                proof.primal <= 1e-9 and proof.gap * spent >= spent - best.objective - 1e-9 * spent
            )
            assert certify_energy(task, *answer)[1].dual >= proof.dual


def extra_s(p):
    """The least time of p, s."""
    with pytest.raises(InfeasibleError) as caught:
        allocate(replace(p, slack_s=1e-9), "energy")
    return 1e-9 + caught.value.extra_s


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


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.booleans(), st.sampled_from([1, 0, 0.5, 2]))
def test_the_gap_is_no_less_than_the_joules_that_are_lost(seed, count, density, factor):
    """Any shares and air times that are in time, some at full power, some slow, with or without
    computing.
    """
    rng = np.random.default_rng(seed)
    snr, cycles = 10 ** rng.uniform(-0.5, 2, count), 4e8 * rng.integers(0, 2, count)
    terms = EnergyTerms(cycles, 1e-28, 2e8 * rng.integers(0, 2, count), 2e9, 0.5, snr / 0.5)
    rate_bps, noise = 4e6 * count * np.log2(1.0 + snr), {"snr": snr} if density else {}
    p = PruningProblem(
        1e6, 0.0, rng.uniform(1.0, 3.0, count), rate_bps, rho_max=0.0, energy=terms, **noise
    )
    try:
        best = allocate(p, "energy")
    except InfeasibleError:
        assume(False)
    task, low = EnergyProblem.of(p), p.share_bounds()[0]
    share = low + (1.0 - low.sum()) * rng.choice([1.0, 0.9]) * rng.dirichlet(np.ones(count))
    least_s = task.air_s(share, terms.spread(count).p_max_w)
    air_s = least_s + rng.choice([0.0, 0.5, 1.0], count) * np.maximum(
        task.radio.longest_s - least_s, 0.0
    )
    power_w = np.minimum(task.radio.power(share, air_s), task.radio.p_max)
    spent, proof = certify_energy(
        task, share, clocks(task, air_s), power_w, factor * best.multiplier
    )
    assert proof.primal <= 1e-9 and proof.gap >= (spent - best.objective) / spent - 1e-9


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize(
    ("bits", "slack_s"), [(0.0, 0.7), (1e6, -1.0)], ids=["sends nothing", "left out"]
)
def test_band_that_nobody_sends_in_is_not_used(density, bits, slack_s):
    """The best answer for 70 % of the band, and 30 % for a device that has no use for it."""
    gain, share = np.array([100.0, 30.0, 50.0]), 0.7
    terms = EnergyTerms(4e8, 1e-28, 0.0, 2e9, 0.5, gain)

    def problem(part):
        """Both noises, where there is only this part of the band: less rate, or less noise as
        well.
        """
        snr = 0.5 * gain / (part if density else 1.0)
        rate_bps = part * 1e6 * np.log2(1.0 + snr)
        mine = replace(terms, gain=gain / (part if density else 1.0))
        noise = {"snr": snr} if density else {}
        return PruningProblem(
            [1e6, 5e5, bits], 0.0, [0.7, 0.7, slack_s], rate_bps, energy=mine, **noise
        )

    whole, part = allocate(problem(1.0), "energy"), allocate(problem(share), "energy")
    task, shares = EnergyProblem.of(problem(1.0)), share * part.share
    shares[2] = 1.0 - shares.sum()
    assert part.objective > 1.3 * whole.objective
    with pytest.raises(UncertifiedError):
        certified_energy(task, shares, part.cpu_hz, part.power_w, part.multiplier / share)


def test_a_power_that_is_no_number_hides_nothing():
    """Device 0 sends with more than it has; what the device that is left out is said to send with
    is nan.
    """
    gain = np.array([100.0, 30.0, 50.0])
    terms = EnergyTerms(4e8, 1e-28, 0.0, 2e9, 0.5, gain)
    p = PruningProblem(
        [1e6, 5e5, 1e6], 0.0, [0.7, 0.7, -1.0], 1e6 * np.log2(1.0 + 0.5 * gain), energy=terms
    )
    a, task = allocate(p, "energy"), EnergyProblem.of(p)
    certified_energy(task, a.share, a.cpu_hz, a.power_w, a.multiplier)
    for power_w in (np.array([0.77, a.power_w[1], np.nan]), np.array([*a.power_w[:2], np.nan])):
        with pytest.raises(UncertifiedError, match="nan W"):
            certified_energy(task, a.share, a.cpu_hz, power_w, a.multiplier)


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
