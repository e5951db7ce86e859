"""Whole resource blocks: the exact integer optimum, by enumeration, by scipy's milp and by hand."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pytest import approx
from scipy.optimize import Bounds, LinearConstraint, milp

from solvers import InfeasibleError, PruningProblem, allocate
from solvers.resource_blocks.integer_block_search import least_max, least_sum
from solvers.resource_blocks.kkt_blocks import certify_blocks


def instance(seed, count, bounds, density):
    rng = np.random.default_rng(seed)
    some = lambda values: np.where(rng.random(count) < 0.2, 0.0, values)  # noqa: E731
    return PruningProblem(
        bits=some(10 ** rng.uniform(5, 7, count)),
        compute_s=some(10 ** rng.uniform(-4, -1.5, count)),
        slack_s=rng.uniform(-2e-3, 3e-2, count),
        rate_bps=10 ** rng.uniform(7, 9, count),
        weight=rng.uniform(0.2, 5, count),
        rho_max=1 - rng.uniform(0, 0.3, count) * bounds,
        bits_fixed=some(10 ** rng.uniform(2, 4, count)),
        snr=10 ** rng.uniform(-1, 3, count) if density else None,
    )


def problems(most=6):
    return st.builds(
        instance, st.integers(0, 2**32 - 1), st.integers(1, most), st.booleans(), st.booleans()
    )


def stretched(p, blocks):
    try:
        allocate(p, blocks=blocks)
    except InfeasibleError as error:
        assume(np.isfinite(error.extra_s))  # fewer blocks than devices that send
        return replace(p, slack_s=p.slack_s + error.extra_s)
    return p


def costs(p, blocks):
    """w rho(n / N) [K, N + 1], inf where n blocks are late even at rho_max."""
    n = np.arange(blocks + 1)[:, None] / blocks
    rho = np.stack([p.rho_at(row) for row in np.broadcast_to(n, (blocks + 1, p.num_devices))])
    late = (p.finish_s(n, rho) > p.slack_s * (1 + 1e-9)) & p.feasible
    return np.where(late, np.inf, np.where(p.feasible, p.weight * rho, 0.0)).T


def ways(count, blocks):
    """All ways to hand at most `blocks` blocks to `count` devices."""
    if count == 0:
        yield ()
        return
    for n in range(blocks + 1):
        yield from ((n, *rest) for rest in ways(count - 1, blocks - n))


@pytest.mark.slow
@settings(max_examples=60)
@given(problems(), st.integers(1, 12))
def test_enumeration_finds_nothing_better(p, blocks):
    p = stretched(p, blocks)
    a, table = allocate(p, blocks=blocks), costs(p, blocks)
    best = min(
        sum(row[i] for row, i in zip(table, n, strict=True)) for n in ways(p.num_devices, blocks)
    )
    assert a.objective == approx(best, rel=1e-12, abs=1e-12 * p.weight.max())
    assert a.share * blocks == approx(np.rint(a.share * blocks)) and a.share.sum() <= 1 + 1e-12


@pytest.mark.slow
@settings(max_examples=25)
@given(problems(most=12), st.integers(10, 60))
def test_milp_finds_nothing_better(p, blocks):
    p = stretched(p, blocks)
    a, table = allocate(p, blocks=blocks), costs(p, blocks)
    scale, (k, n) = np.ptp(table[np.isfinite(table)]) or 1.0, np.nonzero(np.isfinite(table))
    rules = [
        LinearConstraint((k == np.arange(p.num_devices)[:, None]).astype(float), 1, 1),
        LinearConstraint(n[None, :].astype(float), -np.inf, blocks),
    ]
    found = milp(
        table[k, n] / scale,
        integrality=1,
        bounds=Bounds(0, 1),
        constraints=rules,
        options={"mip_rel_gap": 0},
    )
    assert a.objective <= found.fun * scale + 1e-9 * p.weight.max()


@pytest.mark.slow
@given(problems(), st.integers(1, 40))
def test_certified_permuted_and_never_better_than_any_shares(p, blocks):
    p = stretched(p, blocks)
    a, free = allocate(p, blocks=blocks), allocate(p)
    assert a.certificate.residual <= 1e-9 and np.isnan(a.certificate.gap)
    assert a.objective >= free.objective - 1e-9 * p.weight.max()
    fine = allocate(p, blocks=1000 * blocks)
    assert fine.objective <= a.objective + 1e-12 * p.weight.max()
    order = np.arange(p.num_devices)[::-1]
    names = ("bits", "compute_s", "slack_s", "rate_bps", "weight", "rho_max", "bits_fixed")
    flipped = PruningProblem(
        **{name: getattr(p, name)[order] for name in names},
        snr=None if p.snr is None else p.snr[order],
    )
    assert allocate(flipped, blocks=blocks).objective == approx(a.objective, rel=1e-12)


def test_four_blocks_by_hand():
    """G = 0: rho = 1 - n / 4 x r A / q. Device 0 gains 0.2 a block for 4 blocks, device 1 0.3 for
    its first three.
    """
    p = PruningProblem(1e6, 0.0, 20e-3, [4e7, 6e7])
    a = allocate(p, blocks=4)
    assert a.share.tolist() == [0.25, 0.75] and a.rho == approx([0.8, 0.1])
    assert a.multiplier == approx(4 * 0.2)  # one more block for device 0
    assert allocate(p, blocks=5).share.tolist() == [
        0.2,
        0.8,
    ]  # 0.16 and 0.24 a block, but the fifth brings only 0.04


def test_the_least_time_in_which_the_fewest_blocks_fit():
    """rho_max = 0.5: 0.5e6 bit in one of two blocks, 2e7 bit/s: 25 ms and 2 ms of computing."""
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 4e7], rho_max=0.5)
    with pytest.raises(InfeasibleError, match="in 2 blocks") as caught:
        allocate(p, blocks=2)
    assert caught.value.extra_s == approx(7e-3, rel=1e-9) and caught.value.devices == (0, 1)
    a = allocate(replace(p, slack_s=p.slack_s + caught.value.extra_s), blocks=2)
    assert a.rho == approx(0.5, abs=1e-9) and a.share.tolist() == [0.5, 0.5]
    with pytest.raises(InfeasibleError):
        allocate(replace(p, slack_s=p.slack_s + caught.value.extra_s * (1 - 1e-6)), blocks=2)


@pytest.mark.parametrize("method", ["kkt", "fair", "latency"])
@pytest.mark.parametrize("blocks", [0, -3, 2.5, True, "ten", 10**10, np.nan, [3]])
def test_the_number_of_blocks_is_named(blocks, method):
    with pytest.raises(
        ValueError, match=r"blocks is .*give a whole number of resource blocks from 1"
    ):
        allocate(PruningProblem(1e6, 4e-3, 20e-3, 4e7), method, blocks=blocks)


def test_fewer_blocks_than_devices_that_must_send():
    with pytest.raises(InfeasibleError, match="no time is enough: give more blocks") as caught:
        allocate(PruningProblem(1e6, 4e-3, 1.0, [4e7, 4e7], rho_max=0.5), blocks=1)
    assert caught.value.extra_s == np.inf


def test_who_does_not_know_blocks():
    p = PruningProblem(1e6, 4e-3, 20e-3, 4e7)
    with pytest.raises(ValueError, match="equal does not know whole blocks"):
        allocate(p, "equal", blocks=4)
    with pytest.raises(ValueError, match="blocks is for the methods by name"):
        allocate(p, lambda p: None, blocks=4)


@pytest.mark.parametrize(
    "spoilt, part", [("moved", "dual"), ("idle", "complementarity"), ("split", "primal")]
)
def test_the_certificate_sees_a_wrong_answer(spoilt, part):
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7, 9e7])
    share = allocate(p, blocks=10).share
    giver, taker = share.argmax(), share.argmin()
    step = np.zeros(3)
    step[giver] = -0.1 if spoilt != "split" else -0.05
    step[taker] = -step[giver] if spoilt != "idle" else 0.0
    proof, _ = certify_blocks(p, share + step, p.rho_at(share + step), 10)
    assert getattr(proof, part) > 1e-3 and proof.residual > 1e-3


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 8), st.booleans())
def test_any_convex_costs_against_enumeration(seed, count, blocks, ties):
    rng = np.random.default_rng(seed)
    gains = rng.integers(0, 4, (count, blocks)) if ties else rng.random((count, blocks))
    table = (
        5.0 * rng.random((count, 1))
        - np.c_[np.zeros(count), np.cumsum(np.sort(gains)[:, ::-1], axis=1)]
    )
    cost = lambda n: table[np.arange(count), np.clip(n, 0, blocks)]  # noqa: E731
    low = np.zeros(count, dtype=int)
    low[0] = rng.integers(0, blocks + 1)
    cap = np.maximum(low, rng.integers(0, blocks + 1, count))
    ways = [
        np.array(n)
        for n in product(*(range(a, b + 1) for a, b in zip(low, cap, strict=True)))
        if sum(n) <= blocks
    ]
    least, worst = least_sum(cost, low, cap, blocks), least_max(cost, low, cap, blocks)
    for n in (least, worst):
        assert n.sum() <= blocks and (n >= low).all() and (n <= cap).all()
    assert cost(least).sum() == approx(min(cost(n).sum() for n in ways), abs=1e-12)
    top = min(cost(n).max() for n in ways)
    assert cost(worst).max() == top and worst.sum() == min(
        n.sum() for n in ways if cost(n).max() == top
    )
