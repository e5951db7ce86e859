"""Levels, printed, equal, proportional: order and units do not matter, more band never hurts, and
where it does.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from solvers import PruningProblem, allocate

HALVES = (0.0, 0.25, 0.5, 0.75, 1.0)
PER_DEVICE = (
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
METHODS = ("equal", "proportional", "printed", "levels")


def instance(method, seed, count, density):
    """K devices that the method knows: for `printed` all compute and send, with weights of one and
    noise of a fixed
    power; for `levels` few; otherwise some send or compute nothing, have fixed bits, bounds, or no
    time."""
    rng = np.random.default_rng(seed)
    plain = method == "printed"
    some = lambda values, other=0.0: np.where(rng.random(count) < 0.2 * (not plain), other, values)  # noqa: E731
    return PruningProblem(
        bits=some(10 ** rng.uniform(5, 7, count)),
        compute_s=some(10 ** rng.uniform(-4, -2, count)),
        slack_s=some(rng.uniform(10e-3, 30e-3, count), -1e-3),
        rate_bps=10 ** rng.uniform(7, 9, count),
        weight=None if plain else rng.uniform(0.5, 2, count),
        rho_min=some(rng.uniform(0, 0.3, count)) * (method in ("equal", "proportional")),
        bits_fixed=some(10 ** rng.uniform(1, 4, count)) * (not plain),
        snr=10 ** rng.uniform(-1, 3, count) if density and not plain else None,
        levels=HALVES if method == "levels" else None,
    )


def problems(method, most=8):
    return st.builds(
        instance, st.just(method), st.integers(0, 2**32 - 1), st.integers(1, most), st.booleans()
    )


def permuted(p, order):
    changed = {name: getattr(p, name)[order] for name in PER_DEVICE if getattr(p, name) is not None}
    return replace(p, **changed)


def rescaled(p, bits, seconds):
    return replace(
        p, bits=p.bits * bits, bits_fixed=p.bits_fixed * bits, rate_bps=p.rate_bps * bits / seconds,
        compute_s=p.compute_s * seconds, slack_s=p.slack_s * seconds,
    )  # fmt: skip


def widened(p, factor):
    """factor times the band: its rate grows, and under a density its noise."""
    if p.snr is None:
        return replace(p, rate_bps=p.rate_bps * factor)
    return replace(p, rate_bps=p.rate_at(np.full(p.num_devices, factor)), snr=p.snr / factor)


def same(method, a, b, order=slice(None)):
    """Answers agree; of levels that are equally good in all, the objectives do."""
    assert b.objective == approx(a.objective, rel=1e-9, abs=1e-12)
    if method != "levels":
        assert b.share == approx(a.share[order], rel=1e-9, abs=1e-14)
        assert b.rho == approx(a.rho[order], rel=1e-9, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_devices_does_not_matter(method):
    @settings(max_examples=60)
    @given(problems(method), st.randoms())
    def check(p, random):
        order = np.arange(p.num_devices)
        random.shuffle(order)
        same(method, allocate(p, method), allocate(permuted(p, order), method), order)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_units_do_not_matter(method):
    @settings(max_examples=60)
    @given(problems(method), st.floats(-9, 9), st.floats(-9, 9))
    def check(p, bits, seconds):
        same(method, allocate(p, method), allocate(rescaled(p, 10.0**bits, 10.0**seconds), method))

    check()


@pytest.mark.parametrize("method", ("equal", "proportional", "printed"))
def test_more_band_prunes_nobody_more(method):
    """Of the formula as printed as well: its shares all rise with the band, in bounds or not."""

    @settings(max_examples=60)
    @given(problems(method), st.floats(1, 4))
    def check(p, factor):
        narrow, wide = allocate(p, method), allocate(widened(p, factor), method)
        assert (wide.rho <= narrow.rho + 1e-9 * np.maximum(1.0, np.abs(narrow.rho))).all()

    check()


@pytest.mark.slow
@settings(max_examples=60)
@given(problems("levels"), st.floats(1, 4))
def test_more_band_never_raises_the_sum_of_levels(p, factor):
    narrow, wide = allocate(p, "levels"), allocate(widened(p, factor), "levels")
    assert (
        max(narrow.certificate.gap, wide.certificate.gap) <= 1e-9
    )  # branch and bound: both are the best
    assert wide.objective <= narrow.objective * (1 + 1e-9) + 1e-12


def test_more_band_may_raise_the_level_of_one_device():
    """Unpruned uploads of 0.2 and 1.1 Mbit in 10 ms at 100 Mbit/s: 20 and 110 % of the band, so
    device 1 sends nothing.

    In 1.2 times the band it needs 92 %: sent, as it weighs more, and the 8 % left are too little
    for device 0 even at
    its level of 0.3 (12 %), which is pruned altogether though it was not before.
    """
    p = PruningProblem(
        [2e5, 1.1e6], 0.0, 10e-3, 1e8, [1.0, 1.3], levels=[[0.0, 0.3, 1.0], [0.0, 1.0, np.nan]]
    )
    assert allocate(p, "levels").rho.tolist() == [0.0, 1.0]
    assert allocate(widened(p, 1.2), "levels").rho.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("method", ("equal", "proportional"))
def test_more_band_for_all_does_not_move_a_share(method):
    """They are blind to the channel: band that one device has no use for goes to no other."""
    p = PruningProblem([1e5, 1e7], 0.0, 20e-3, [1e9, 1e8])
    a, b = allocate(p, method), allocate(widened(p, 3.0), method)
    assert a.share.tolist() == b.share.tolist() and b.rho[0] == 0.0 < b.rho[1] < a.rho[1]
    assert allocate(p).objective < a.objective


def test_one_devices_gain_is_anothers_loss_with_proportional():
    """More bits of device 0 take band from device 1, which is pruned more though nothing of its
    own has changed.
    """
    few, many = (PruningProblem([bits, 1e6], 4e-3, 20e-3, 1e8) for bits in (1e6, 4e6))
    assert allocate(many, "proportional").rho[1] > allocate(few, "proportional").rho[1]


def test_the_printed_form_gains_where_it_leaves_its_bounds():
    """More band lowers its sum of rho without end, below zero where the exact sum stays at zero."""
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e8, 6e8])
    sums = [allocate(widened(p, factor), "printed").rho.sum() for factor in (1.0, 2.0, 4.0)]
    assert 0 > sums[0] > sums[1] > sums[2] and allocate(p).objective == 0.0
