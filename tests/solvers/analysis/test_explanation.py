"""What binds for whom, in words."""

from dataclasses import replace

import numpy as np
import pytest

from solvers import EnergyTerms, PruningProblem, allocate


def test_everybody_in_one_cell():
    p = PruningProblem(
        bits=[1e6, 1e6, 1e6, 1e6, 1e6],
        compute_s=4e-3,
        slack_s=[20e-3, 20e-3, 20e-3, -1e-3, 20e-3],
        rate_bps=[4e7, 6e7, 3e9, 6e7, 1e5],
        rho_max=[0.8, 1, 1, 1, 1],
    )
    a = allocate(p)
    words = a.explain().split("\n")
    assert words[0] == "Device 3: no time is left for what can be pruned (A <= 0): left out."
    assert words[1] == "Device 2: the full model, within the deadline."
    assert words[2].startswith("Device 1: pruned just so far that the deadline is met")
    assert words[3].startswith("Device 0: held at rho_max")
    assert words[4].startswith("Device 4: pruned altogether")
    assert words[5].startswith(f"The band is full; its price is {a.multiplier:.4g}")
    assert (
        words[6].startswith("kkt claims: no shares and ratios have a lesser weighted sum")
        and len(words) == 7
    )


def test_fixed_bits_are_sent_whatever_is_pruned():
    """0.4 Mbit over half of 40 Mbit/s takes all of the 20 ms: device 0 holds half of the band
    though pruned to 1.
    """
    a = allocate(PruningProblem(1e6, 4e-3, 20e-3, 4e7, [1e-3, 1.0], bits_fixed=[4e5, 0.0]))
    assert a.rho[0] == 1.0 and a.share == pytest.approx([0.5, 0.5])
    words = a.explain().split("\n")
    assert words[0].startswith("Device 1: pruned just so far") and words[1].startswith(
        "Device 0: held at rho_max"
    )
    assert "nothing is sent" not in a.explain()


@pytest.mark.parametrize("method", ["kkt", "convex", "fair", "convex-fair"])
def test_the_whole_band_of_one_device_has_its_price(method):
    """As in `test_sensitivity`: A r q / (r G + q)^2, of a device that would take more than the
    whole band.
    """
    words = allocate(PruningProblem([1e6, 0.0], 4e-3, 20e-3, 4e7), method).explain()
    assert "its price is 0.5945: 1 % more would lower the objective by 0.00595." in words


def test_idle_band_and_many_devices():
    words = allocate(PruningProblem(1e6, 4e-3, 20e-3, np.full(20, 4e9))).explain()
    assert words.startswith(
        "Devices 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more: the full model"
    )
    assert (
        "Of the band 68.8 % is idle; nobody has a use for it, its price is 0." in words
    )  # 20 / (4e9 x 16 ms) / 1e-6


def test_a_method_without_a_price_and_a_late_device():
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e8], rho_max=0.3)
    words = allocate(p, "equal").explain()
    assert words.startswith("Device 0: late even so") and "this method puts no price on it" in words
    assert "nothing about optimality" in words


def test_what_is_broken_is_repeated():
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 3e8])
    assert "Broken: device 0 has share -0.3288, below 0" in allocate(p, "printed").explain()


def test_who_sends_nothing_is_bound_by_time_alone():
    words = allocate(PruningProblem([0.0, 1e6], [40e-3, 4e-3], 20e-3, 4e7)).explain().split("\n")
    assert "Device 0: nothing to send: pruned until the deadline is met, time alone binds." in words
    assert "Device 1: pruned just so far that the deadline is met: time and band bind." in words


def test_latency_keeps_rho_min_and_its_price_is_in_seconds():
    """Two alike: 1 Mbit over half of 40 Mbit/s takes 50 ms, and 1 % more band saves 0.5 ms."""
    words = allocate(PruningProblem([1e6, 1e6], 4e-3, 20e-3, 4e7), "latency").explain()
    assert words.startswith(
        "Devices 0, 1: late: latency keeps rho_min, and a deadline is no bound of it."
    )
    assert "its price is 0.05 s: 1 % more would lower the last finish by 0.0005 s." in words


@pytest.mark.parametrize(("method", "blocks"), [("kkt", 4), ("levels", None)])
def test_whole_blocks_and_levels_have_no_price_of_one_per_cent(method, blocks):
    """1 Mbit in 20 ms at 50 Mbit/s needs the band: the fifth block of 4 would be 1 / 4 of rho of
    device 1, and the second whole band all of it.
    """
    levels = [0.0, 0.5, 1.0] if blocks is None else None
    words = allocate(
        PruningProblem([1e6, 1e6], 0.0, 20e-3, 5e7, levels=levels), method, blocks=blocks
    ).explain()
    assert "The band is full; its price is 1, but a little more may lower nothing" in words


def test_energy_names_the_limits():
    """1 Mbit in 1 s less the computing: device 0 must not go below f_min, device 1 has no time for
    less than f_max.
    """
    terms = EnergyTerms([1e8, 1e9], 1e-28, [1e9, 0.0], 2e9, 0.5, [100.0, 30.0])
    p = PruningProblem(
        1e6, 0.0, [0.5, 0.5], 20e6 * np.log2([51.0, 16.0]), rho_max=0.0, energy=terms
    )
    a = allocate(p, "energy")
    words = a.explain().split("\n")
    assert "Device 0: the clock is at f_min." in words and a.cpu_hz[0] == pytest.approx(1e9)
    assert "Devices 0, 1: the deadline binds, all of the time is used." in words
    assert any(
        f"its price is {a.multiplier:.4g} J: 1 % more would lower the energy by " in line
        for line in words
    )
    short = allocate(replace(p, slack_s=1e-3), "latency").objective
    tight = replace(p, slack_s=short * (1 + 1e-12))
    words = allocate(tight, "energy").explain()
    assert "the clock is at f_max." in words and "Devices 0, 1: the power is at p_max." in words


def test_late_by_one_per_cent_is_late():
    """Two alike that send 1 Mbit over half of 40 Mbit/s: 50 ms and 4 ms of computing, in 53.5 ms
    or in 54 ms.
    """
    short, enough = (PruningProblem([1e6, 1e6], 4e-3, slack_s, 4e7) for slack_s in (53.5e-3, 54e-3))
    assert allocate(short, "latency").explain().startswith("Devices 0, 1: late")
    assert (
        allocate(enough, "latency")
        .explain()
        .startswith("Devices 0, 1: the full model, within the deadline.")
    )


def test_of_your_own_allocator_no_reason_is_said_that_is_not_known():
    """A tenth of the band each: 1 Mbit at 4 Gbit/s needs no pruning, at 40 Mbit/s 1 - 0.8 / 1.016;
    and nobody else has a use for the band of device 2.
    """

    def own(p):
        return np.full(4, 0.1) * [1, 1, 0, 1], np.array([0.9, 1.0 - 0.08 / 1.016, 1.0, 1.0])

    words = allocate(PruningProblem(1e6, 4e-3, 20e-3, [4e9, 4e7, 4e7, 4e7]), own).explain()
    assert words.split("\n")[:3] == [
        "Device 1: pruned just so far that the deadline is met: time and band bind.",
        "Device 2: pruned altogether: nothing is sent.",
        "Devices 0, 3: pruned more than the deadline asks for with this share.",
    ]


def test_of_a_price_that_your_own_allocator_gives_nothing_is_promised():
    """It has no blocks or levels, and may leave half of the band idle that device 0 could use."""
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7])

    def own(p):
        return allocate(p)

    def idle(p):
        return replace(allocate(p), share=np.array([0.0, 0.5]), rho=np.array([1.0, 0.6]))

    words = allocate(p, own).explain()
    assert f"The band is full; its price is {allocate(p).multiplier:.4g}, says own.\n" in words
    assert "Device 0: pruned altogether: nothing is sent.\n" in allocate(p, idle).explain()
