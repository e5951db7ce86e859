"""Least energy: what its certificate rejects, limits, and errors."""

from dataclasses import replace

import numpy as np
import pytest
from pytest import approx

from solvers import EnergyTerms, InfeasibleError, UncertifiedError, allocate
from solvers.deadline_feasibility import seconds_rounded_up
from solvers.min_energy.energy_certificate import certified_energy, certify_energy
from solvers.min_energy.energy_problem import EnergyProblem
from tests.solvers.min_energy.energy_cells import cell


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
        ("air_share", [1.0, 1.5], "air_share of device 1 is 1.5; it must be at most 1"),
        ("air_share", 0.0, "air_share of device 0 is 0"),
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
