"""The certificate of least energy: what it proves and what it does not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from solvers import InfeasibleError, PruningProblem, UncertifiedError, allocate
from solvers.energy_terms import EnergyTerms
from solvers.min_energy.allocator import clocks, least_shares
from solvers.min_energy.energy_certificate import certified_energy, certify_energy
from solvers.min_energy.energy_problem import EnergyProblem


def joules(gains, cycles=4e8):
    terms = EnergyTerms(cycles, 1e-28, 0.0, 2e9, 0.5, gains)
    rate_bps = 1e6 * np.log2(1.0 + 0.5 * np.asarray(gains))
    return PruningProblem(1e6, 0.0, 1.0, rate_bps, rho_max=0.0, energy=terms)


def extra_s(p):
    """The least time of p, s."""
    with pytest.raises(InfeasibleError) as caught:
        allocate(replace(p, slack_s=1e-9), "energy")
    return 1e-9 + caught.value.extra_s


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


@pytest.mark.slow
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
        with pytest.raises(UncertifiedError, match="nan W") as refused:
            certified_energy(task, a.share, a.cpu_hz, power_w, a.multiplier)
        assert "device 22 has power nan W" in str(refused.value.of([20, 21, 22]))
