"""Least energy: by hand, and what always holds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx
from scipy.optimize import minimize

from solvers import EnergyTerms, allocate
from solvers.min_energy.allocator import least_shares
from solvers.min_energy.energy_problem import EnergyProblem
from tests.solvers.min_energy.energy_cells import cell, instance, problems, widened


def test_sending_alone():
    """1e6 bit in half a second on 1 MHz are 2 bit/s/Hz: p = (2^2 - 1) / g = 0.3 W and 0.15 J."""
    a = allocate(cell(1e6, 0.0, 0.5, 10.0), "energy")
    assert a.power_w == approx([0.3]) and a.objective == approx(0.15) and a.share == approx([1.0])
    assert a.multiplier == approx(0.5 * 4 * 2 * np.log(2) / 10)  # -dE/db = t 2^x x ln 2 / (b g)


@pytest.mark.parametrize("density", [False, True])
def test_two_alike(density):
    """Half the band each: 4 bit/s/Hz, p = n (2^4 - 1) / g with n = 1, or n = 1/2 as half the noise
    is collected.
    """
    a = allocate(cell([1e6, 1e6], 0.0, 0.5, 100.0, density=density), "energy")
    assert a.share == approx([0.5, 0.5]) and a.power_w == approx(
        [0.075 if density else 0.15] * 2, rel=1e-12
    )


@pytest.mark.parametrize("density", [False, True])
def test_computing_and_sending_divide_the_time(density):
    """x = ln 4 nats: psi = 4 (ln 4 - 1) + 1. If 2 kappa C^3 / tau^3 = psi / g, t = 0.5 s and tau =
    0.4 s are best.

    b = 1, so that the two noises agree. The clock is 4e8 / 0.4 = 1 GHz, the power 3 / 100 W.
    """
    psi, cycles = 4 * (np.log(4) - 1) + 1, 4e8
    kappa = psi / 100 * 0.4**3 / (2 * cycles**3)
    a = allocate(cell(1e6, cycles, 0.9, 100.0, kappa=kappa, density=density), "energy")
    assert a.cpu_hz == approx([1e9], rel=1e-9) and a.power_w == approx([0.03], rel=1e-9)
    assert a.objective == approx(kappa * cycles * 1e18 + 0.03 * 0.5, rel=1e-13)


def test_a_slow_clock_is_not_taken_below_f_min():
    """kappa so large that 1 GHz is too fast; f_min = 1.6 GHz holds it: tau = 0.25 s, t = 0.65 s."""
    a = allocate(cell(1e6, 4e8, 0.9, 100.0, kappa=1e-26, f_min_hz=1.6e9), "energy")
    assert a.cpu_hz == approx([1.6e9]) and a.power_w == approx([(2 ** (1 / 0.65) - 1) / 100])


def test_without_energy_of_computing_the_clock_is_full():
    a = allocate(cell(1e6, 4e8, 0.7, 100.0, kappa=0.0), "energy")
    assert a.cpu_hz == approx([2e9]) and a.power_w == approx([0.03])  # t = 0.5 s


@pytest.mark.parametrize("method", ["energy", "convex-energy"])
@pytest.mark.parametrize("density", [False, True])
def test_a_quarter_of_the_time_on_the_air(method, density):
    """With a gain of 25 per watt p = 3 / 25 W, 0.03 W on average: as above 0.5 s are best."""
    psi, cycles = 4 * (np.log(4) - 1) + 1, 4e8
    kappa = psi / 100 * 0.4**3 / (2 * cycles**3)
    p = cell(1e6, cycles, 0.9, 25.0, kappa=kappa, density=density)
    a = allocate(replace(p, energy=replace(p.energy, air_share=0.25)), method)
    close = 1e-9 if method == "energy" else 1e-4
    assert a.cpu_hz == approx([1e9], rel=close) and a.power_w == approx([0.12], rel=close)
    assert a.objective == approx(kappa * cycles * 1e18 + 0.25 * 0.12 * 0.5, rel=1e-8)


@pytest.mark.slow
@settings(deadline=None)
@given(problems(), st.floats(0.05, 1.0))
def test_a_share_on_the_air_is_a_lower_mean_power(p, air_share):
    """As devices of a times the power, all of the time; by their meaning the joules are p a t, and
    the bits arrive at the power p of the air in the time t that computing leaves.
    """
    terms = p.energy
    part = allocate(replace(p, energy=replace(terms, air_share=air_share)), "energy")
    mean = replace(terms, p_max_w=air_share * terms.p_max_w, gain=terms.gain / air_share)
    whole = allocate(replace(p, energy=mean), "energy")
    assert part.objective == approx(whole.objective, rel=1e-9)
    sends = p.bits > 0.0
    air_s = np.where(sends, p.slack_s - terms.cycles / part.cpu_hz, 0.0)
    joules = terms.kappa * terms.cycles * part.cpu_hz**2 + part.power_w * air_share * air_s
    assert part.objective == approx(joules.sum(), rel=1e-8)
    noise = 1.0 if p.snr is None else np.where(sends, part.share, 1.0)
    level = np.log1p(terms.gain * part.power_w / noise) / np.log1p(terms.gain * terms.p_max_w)
    assert p.rate_bps * part.share * level * air_s == approx(np.where(sends, p.bits, 0.0), rel=1e-7)
    assert (part.power_w <= terms.p_max_w * (1.0 + 1e-12)).all()


def test_who_sends_nothing_computes_slowly():
    a = allocate(cell([0.0, 1e6], [4e8, 0.0], 0.5, 10.0), "energy")
    assert (
        a.share.tolist() == [0, 1]
        and a.cpu_hz == approx([8e8, 2e9])
        and a.power_w == approx([0, 0.3])
    )
    assert a.objective == approx(1e-28 * 4e8 * 8e8**2 + 0.15)


@pytest.mark.slow
@settings(deadline=None)
@given(problems())
def test_every_answer_is_certified_and_in_time(p):
    a, task = allocate(p, "energy"), EnergyProblem.of(p)
    assert (
        a.certificate.residual <= 1e-11 and a.certificate.gap <= 1e-11 and not a.certificate.broken
    )
    assert a.share.sum() <= 1 + 1e-14
    used_s = task.computing_s(a.cpu_hz) + task.air_s(a.share, a.power_w)
    busy = task.sends  # who sends has all of the time to use
    assert used_s[busy] == approx(task.time_s[busy], rel=1e-9)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(problems(4))
def test_no_other_solver_finds_less(p):
    """SLSQP on the shares, air and computing times themselves; the problem is convex, so where it
    starts is free.
    """
    a, task = allocate(p, "energy"), EnergyProblem.of(p)
    if not task.sends.any():
        return
    radio, count = task.radio, int(task.sends.sum())
    computing = a.objective - float((a.power_w * task.air_s(a.share, a.power_w)).sum())
    silent = computing - float(
        (task.terms.kappa * task.terms.cycles * a.cpu_hz**2)[task.sends].sum()
    )

    def power(b, t):
        with np.errstate(over="ignore"):
            return np.minimum(radio.power(b, t), 1e3 * radio.p_max)

    def joules(z):
        b, t, tau = z.reshape(3, count)
        sending = power(b, t * radio.time_s) * t * radio.time_s
        return (
            float((sending + radio.work / (tau * radio.time_s) ** 2).sum()) + silent
        ) / a.objective

    def spare(z):  # power, relative
        return 1 - power(z[:count], z[count : 2 * count] * radio.time_s) / radio.p_max

    shortest = 0.5 * radio.s / np.log1p(radio.snr) / radio.time_s
    least = 0.5 * least_shares(p)[task.sends]
    low = np.concatenate([least, shortest, np.maximum(radio.tau_min / radio.time_s, 1e-9)])
    high = np.concatenate([np.ones(2 * count), np.maximum(radio.tau_max / radio.time_s, 1e-9)])
    rules = [
        {"type": "ineq", "fun": lambda z: 1 - z[:count].sum()},
        {"type": "ineq", "fun": lambda z: 1 - z[count : 2 * count] - z[2 * count :]},
        {"type": "ineq", "fun": spare},
    ]
    b, t = a.share[task.sends], task.air_s(a.share, a.power_w)[task.sends] / radio.time_s
    tau = task.computing_s(a.cpu_hz)[task.sends] / radio.time_s
    start = np.clip(np.concatenate([b * 0.98, t * 0.98, tau * 1.02]), low, high)
    options = {"maxiter": 300, "ftol": 1e-13}
    found = minimize(
        joules,
        start,
        method="SLSQP",
        bounds=list(zip(low, high, strict=True)),
        constraints=rules,
        options=options,
    )
    worst = min(float(np.min(rule["fun"](found.x))) for rule in rules)
    if worst > -1e-9:
        assert found.fun >= 1 - 1e-7


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(problems(), st.randoms())
def test_permuted_devices_get_permuted_answers(p, random):
    order = np.arange(p.num_devices)
    random.shuffle(order)
    terms = EnergyProblem.of(p).terms
    moved = EnergyTerms(**{name: getattr(terms, name)[order] for name in vars(terms)})
    columns = {
        name: getattr(p, name)[order] for name in ("bits", "compute_s", "slack_s", "rate_bps")
    }
    snr = None if p.snr is None else p.snr[order]
    a, b = allocate(p, "energy"), allocate(replace(p, **columns, snr=snr, energy=moved), "energy")
    assert b.share == approx(a.share[order], rel=1e-7, abs=1e-12) and b.objective == approx(
        a.objective, rel=1e-12
    )
    assert b.cpu_hz == approx(a.cpu_hz[order], rel=1e-6) and b.power_w == approx(
        a.power_w[order], rel=1e-6
    )


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(problems(), st.floats(-6, 6), st.floats(-6, 6), st.floats(-6, 6))
def test_units_do_not_matter(p, bits, seconds, joules):
    bits, seconds, joules = 10.0**bits, 10.0**seconds, 10.0**joules
    t, watts = p.energy, joules / seconds
    terms = EnergyTerms(
        t.cycles, t.kappa * joules * seconds**2, t.f_min_hz / seconds, t.f_max_hz / seconds,
        t.p_max_w * watts, t.gain / watts,
    )  # fmt: skip
    scaled = replace(
        p, bits=p.bits * bits, rate_bps=p.rate_bps * bits / seconds,
        compute_s=p.compute_s * seconds, slack_s=p.slack_s * seconds, energy=terms,
    )  # fmt: skip
    a, b = allocate(p, "energy"), allocate(scaled, "energy")
    assert b.objective == approx(a.objective * joules, rel=1e-9) and b.share == approx(
        a.share, rel=1e-6, abs=1e-9
    )


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(problems(), st.floats(1, 3), st.floats(0, 0.2))
def test_more_band_or_time_never_costs_more(p, factor, extra_s):
    least = allocate(p, "energy").objective
    assert allocate(widened(p, factor), "energy").objective <= least * (1 + 1e-10)
    assert allocate(replace(p, slack_s=p.slack_s + extra_s), "energy").objective <= least * (
        1 + 1e-10
    )


@pytest.mark.parametrize("seed", range(6))
def test_the_multiplier_is_the_slope(seed):
    p = instance(seed, 5, seed % 2, 0.4)
    a = allocate(p, "energy")
    more, less = (allocate(widened(p, 1 + sign * 1e-5), "energy").objective for sign in (1, -1))
    assert a.multiplier == approx((less - more) / 2e-5, rel=1e-4)
