"""Least energy over band, clock and power: by hand, against SLSQP and cvxpy, and what holds
always.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx
from scipy.optimize import minimize

from solvers import EnergyTerms, InfeasibleError, PruningProblem, UncertifiedError, allocate
from solvers.deadline_feasibility import seconds_rounded_up
from solvers.min_energy import band_price as energy_price
from solvers.min_energy.allocator import least_shares
from solvers.min_energy.energy_certificate import certified_energy, certify_energy
from solvers.min_energy.energy_problem import EnergyProblem

HZ = 1e6  # the band


def cell(
    bits,
    cycles,
    time_s,
    gain,
    kappa=1e-28,
    f_min_hz=0.0,
    f_max_hz=2e9,
    p_max_w=0.5,
    density=False,
    **more,
):
    """A problem with `time_s` seconds for all computing and the upload."""
    cycles, gain = np.asarray(cycles), np.asarray(gain)
    snr, shape = gain * p_max_w, np.zeros(len(np.atleast_1d(bits)))
    return PruningProblem(
        bits=np.atleast_1d(bits) + shape,
        compute_s=cycles / f_max_hz,
        slack_s=time_s,
        rate_bps=HZ * np.log2(1.0 + snr),
        snr=snr + shape if density else None,
        rho_max=0.0,
        energy=EnergyTerms(cycles, kappa, f_min_hz, f_max_hz, p_max_w, gain),
        **more,
    )


def instance(seed, count, density, hurry):
    """hurry: how much of the time the least shares take, from 0 to 1, of the round that is just
    feasible.
    """
    rng = np.random.default_rng(seed)
    f_max_hz = rng.uniform(1e9, 3e9, count)
    p = cell(
        bits=np.where(rng.random(count) < 0.15, 0.0, 10 ** rng.uniform(4, 6.5, count)),
        cycles=np.where(rng.random(count) < 0.15, 0.0, 10 ** rng.uniform(7, 9, count)),
        time_s=rng.uniform(0.1, 0.3, count),
        gain=10 ** rng.uniform(0.5, 5, count),
        kappa=rng.choice([0.0, 1e-29, 1e-28, 1e-27], count),
        f_min_hz=f_max_hz * rng.choice([0.0, 0.1, 0.6, 1.0], count),
        f_max_hz=f_max_hz,
        p_max_w=10 ** rng.uniform(-2, 0, count),
        density=density,
    )
    least_s = least_extra_s(replace(p, slack_s=np.full(count, 1e-9)))
    return replace(
        p, slack_s=1e-9 + least_s / max(hurry, 1e-3) + rng.uniform(0, 0.1, count) * least_s
    )


def least_extra_s(p):
    try:
        allocate(p, "energy")
    except InfeasibleError as error:
        return error.extra_s
    return 1e-3  # nobody computes or sends


def problems(most=8):
    hurry = st.sampled_from([0.05, 0.3, 0.7, 0.95, 0.999])
    return st.builds(
        instance, st.integers(0, 2**32 - 1), st.integers(1, most), st.booleans(), hurry
    )


# -- hand-computed


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


def test_who_sends_nothing_computes_slowly():
    a = allocate(cell([0.0, 1e6], [4e8, 0.0], 0.5, 10.0), "energy")
    assert (
        a.share.tolist() == [0, 1]
        and a.cpu_hz == approx([8e8, 2e9])
        and a.power_w == approx([0, 0.3])
    )
    assert a.objective == approx(1e-28 * 4e8 * 8e8**2 + 0.15)


# -- what holds always


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


@settings(max_examples=40, deadline=None)
@given(problems())
def test_the_reference_agrees(p):
    a = allocate(p, "energy")
    try:
        b = allocate(p, "convex-energy")
    except UncertifiedError:
        return
    assert (
        a.certificate.gap <= 1e-11
    )  # Clarabel's own limit is in its certificate; it may be a little late as well
    assert a.objective == approx(b.objective, rel=1e-8)


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


def widened(p, factor):
    """factor times the band at the same power and, under a density, the same noise density."""
    if p.snr is None:
        return replace(p, rate_bps=p.rate_bps * factor)
    snr, terms = p.snr / factor, p.energy
    rate_bps = p.rate_bps * factor * np.log1p(snr) / np.log1p(p.snr)
    return replace(p, rate_bps=rate_bps, snr=snr, energy=replace(terms, gain=terms.gain / factor))


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


# -- certificates, limits and errors


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("spoilt", ["share", "band", "clock", "power", "price", "late"])
def test_the_certificate_rejects(spoilt, density):
    p = cell([1e6, 5e5], [4e8, 2e8], 0.9, [100.0, 30.0], density=density)
    a, task = allocate(p, "energy"), EnergyProblem.of(p)
    share, cpu_hz, power_w, price = a.share.copy(), a.cpu_hz.copy(), a.power_w.copy(), a.multiplier
    assert certify_energy(task, share, cpu_hz, power_w, price)[1].gap < 1e-13
    if spoilt == "share":  # another split at the same times
        air_s = task.air_s(share, power_w)
        share += [1e-3, -1e-3]
        power_w = task.radio.power(share, air_s)
    elif spoilt == "band":
        air_s = task.air_s(share, power_w)
        share = 0.999 * share
        power_w = task.radio.power(share, air_s)
    elif spoilt == "clock":  # faster than needed, and back earlier
        cpu_hz = 1.01 * cpu_hz
    elif spoilt == "power":
        power_w = 1.01 * power_w
    elif spoilt == "price":
        price = 1.01 * price
    else:
        power_w = 0.99 * power_w
    joules, proof = certify_energy(task, share, cpu_hz, power_w, price)
    assert (proof.primal > 1e-6) == (spoilt == "late")
    assert proof.residual > 1e-7 and (
        spoilt == "late" or proof.gap * joules >= joules - a.objective
    )
    with pytest.raises(UncertifiedError, match="energy"):
        certified_energy(task, share, cpu_hz, power_w, price)


def test_the_certificate_counts_unused_band():
    """One device that only sends, on 99 % of the band, at the price of this share: nothing else is
    wrong.
    """
    p = cell(1e6, 0.0, 0.5, 10.0)
    a, task, share = allocate(p, "energy"), EnergyProblem.of(p), np.array([0.99])
    price = -float(task.radio.slopes(share, np.array([0.5]))[0][0])
    joules, proof = certify_energy(
        task, share, a.cpu_hz, task.radio.power(share, np.array([0.5])), price
    )
    assert proof.complementarity == approx(0.01 * price / joules, rel=1e-9) and proof.dual < 1e-12
    assert proof.gap * joules >= joules - a.objective > 0.0


def test_the_least_time_is_all_at_full_power_and_clock():
    p = cell([1e6, 5e5], [4e8, 2e8], 1e-6, [100.0, 30.0])
    with pytest.raises(InfeasibleError, match="At full clock and power") as caught:
        allocate(p, "energy")
    assert (
        caught.value.extra_s > 0
        and f"{seconds_rounded_up(caught.value.extra_s)} s more time" in str(caught.value)
    )
    a = allocate(replace(p, slack_s=p.slack_s + caught.value.extra_s), "energy")
    assert a.cpu_hz == approx([2e9, 2e9]) and a.power_w == approx([0.5, 0.5], rel=1e-6)
    late = allocate(
        replace(p, slack_s=np.inf), "latency"
    )  # the same question: how early can all be back?
    assert late.objective == approx(1e-6 + caught.value.extra_s, rel=1e-9) and a.share == approx(
        late.share, rel=1e-6
    )


def test_a_device_without_time_is_left_out():
    p = cell([1e6, 1e6], 0.0, [0.5, -0.1], 10.0)
    a = allocate(p, "energy")
    assert (
        a.infeasible == (1,)
        and a.share.tolist() == [1, 0]
        and a.power_w == approx([0.3, 0])
        and a.rho[1] == 0
    )
    assert a.objective == approx(0.15)


def test_pruned_no_more_than_rho_min():
    """Half of 2e6 bit and of 8e8 cycles: what `cell` does with 1e6 bit and 4e8 cycles."""
    whole = replace(cell(1e6, 4e8, 0.9, 100.0), rho_max=0.3)
    p = replace(whole, bits=2e6, compute_s=2 * whole.compute_s, rho_min=0.5, rho_max=1.0)
    a, b = allocate(p, "energy"), allocate(whole, "energy")
    assert a.objective == approx(b.objective) and a.rho.tolist() == [0.5] and b.rho.tolist() == [0]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("cycles", [1e8, -1.0], "cycles of device 1 is -1"),
        ("kappa", np.nan, "kappa of device 0 is nan"),
        (
            "f_min_hz",
            [0.0, 5e9],
            "f_min_hz of device 1 is 5e\\+09; it must be between 0 and f_max_hz",
        ),
        ("f_max_hz", 0.0, "f_max_hz of device 0 is 0; it must be finite and positive"),
        ("p_max_w", [0.1, np.inf], "p_max_w of device 1 is inf"),
        ("gain", 0.0, "gain of device 0"),
        ("gain", "much", "gain is 'much'"),
        ("cycles", [1.0, 2.0, 3.0], "shapes"),
    ],
)
def test_bad_terms_are_named(field, value, words):
    terms = {
        "cycles": 1e8,
        "kappa": 1e-28,
        "f_min_hz": [0.0, 0.0],
        "f_max_hz": 2e9,
        "p_max_w": 0.1,
        "gain": 100.0,
    }
    with pytest.raises(ValueError, match=words):
        EnergyTerms(**terms | {field: value})


def test_bad_problems_are_named():
    p = cell([1e6, 1e6], 4e8, 0.9, 100.0)
    with pytest.raises(ValueError, match="give the problem energy=EnergyTerms"):
        allocate(replace(p, energy=None), "energy")
    with pytest.raises(ValueError, match="slack_s of device 1 is inf"):
        allocate(replace(p, slack_s=[0.9, np.inf]), "energy")
    with pytest.raises(ValueError, match="energy has 3 devices and the problem 2"):
        allocate(replace(p, energy=EnergyTerms([1e8] * 3, 1e-28, 0.0, 2e9, 0.5, 100.0)), "energy")
    with pytest.raises(ValueError, match="snr of device 0 is 7"):
        allocate(replace(p, snr=7.0), "energy")


@pytest.mark.parametrize(
    ("name", "value"),
    [("cycles", [4e8, 1e308]), ("kappa", [1e-28, 1e308]), ("slack_s", [0.9, 1e308])],
)
@pytest.mark.parametrize("density", [False, True])
def test_numbers_that_leave_the_range_of_doubles_are_named(name, value, density):
    p = cell([1e6, 5e5], 4e8, 0.9, 100.0, density=density)
    changes = {name: value} if name == "slack_s" else {"energy": replace(p.energy, **{name: value})}
    with pytest.raises(
        ValueError,
        match=f"{name} of device 1 is 1e\\+308, too far from the other numbers for energy",
    ):
        allocate(replace(p, **changes), "energy")


def test_without_a_step_together_there_is_the_search_one_by_one(monkeypatch):
    """The same answers by the slower search alone."""
    problems = [instance(seed, 6, bool(seed % 2), (0.3, 0.95)[seed % 3 == 0]) for seed in range(24)]
    usual = [allocate(p, "energy") for p in problems]
    monkeypatch.setattr(energy_price, "newton_search", lambda radio, low: None)
    for a, b in zip(usual, (allocate(p, "energy") for p in problems), strict=True):
        assert b.certificate.gap <= 1e-11 and b.objective == approx(a.objective, rel=1e-12)
        assert b.multiplier == approx(a.multiplier, rel=1e-9) and b.share == approx(
            a.share, rel=1e-9, abs=1e-15
        )


@pytest.mark.parametrize("density", [False, True])
def test_most_problems_are_solved_together(density, monkeypatch):
    """Without a turn of the slower search, which takes some five times as long."""
    problems = [instance(seed, 8, density, 0.3) for seed in range(40)]
    slow, found = energy_price.bracket_search, []
    monkeypatch.setattr(energy_price, "bracket_search", lambda *a: found.append(a) or slow(*a))
    for p in problems:
        allocate(p, "energy")
    assert len(found) <= 4


def test_turns_that_step_to_and_fro_end(monkeypatch):
    """Two devices at the bend of full power: `together` gives up and the answer is the other
    search's.
    """
    monkeypatch.setattr(energy_price, "TURNS", 1)
    a = allocate(cell([1e6, 5e5], [4e8, 2e8], 0.9, [100.0, 30.0]), "energy")
    assert a.certificate.gap < 1e-13


def test_what_the_first_search_gives_and_is_refused_is_searched_for_in_the_other_way(monkeypatch):
    p = cell([1e6, 5e5], 4e8, 0.9, [100.0, 30.0])
    expected = allocate(p, "energy")
    together = energy_price.newton_search

    def off(radio, low):
        share, air_s, price = together(radio, low)
        return share[::-1], air_s, price

    monkeypatch.setattr(energy_price, "newton_search", off)
    assert allocate(p, "energy").objective == approx(expected.objective, rel=1e-9)
    monkeypatch.setattr(energy_price, "bracket_search", off)
    with pytest.raises(UncertifiedError):
        allocate(p, "energy")
