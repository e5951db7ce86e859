"""The cvxpy statements: DPP, built once and solved again, exact on what is linear or known by
hand.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pytest import approx

from solvers import PruningProblem, UncertifiedError, allocate
from solvers.cvxpy_reference import statements

ALL = [
    *(
        (statements.largest_utility, (3, density, alpha))
        for density in (False, True)
        for alpha in (1.0, 2.0, np.inf)
    ),
    *(
        (statements.largest_sum, (3, density, alpha))
        for density in (False, True)
        for alpha in (0.0, 0.5)
    ),
    *((statements.least_time, (3, density)) for density in (False, True)),
    *((statements.least_energy, (3, density)) for density in (False, True)),
]


@pytest.mark.parametrize(("build", "kind"), ALL)
def test_every_statement_is_dpp(build, kind):
    """Only then does a re-solve skip the construction."""
    statement = build(*kind)
    assert statement.task.is_dcp(dpp=True)
    assert build(*kind) is statement


def test_a_statement_is_solved_again_with_other_numbers(monkeypatch):
    """The second problem is another one of the same size: nothing of the first may stay behind."""
    first = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7, 5e7])
    second = PruningProblem([1e6, 2e6, 5e5], 8e-3, 30e-3, [4e8, 6e7, 5e6], weight=[1, 2, 1])
    for method, reference in (
        ("kkt", "convex"),
        ("fair", "convex-fair"),
        ("latency", "convex-latency"),
    ):
        allocate(first, reference)
        built = []
        monkeypatch.setattr(statements, "Statement", lambda *a, built=built: built.append(a))
        again = allocate(second, reference)
        monkeypatch.undo()
        assert built == [] and again.objective == approx(
            allocate(second, method).objective, rel=1e-8
        )


@pytest.mark.parametrize("snr", [None, (10.0, 1e3)])
@pytest.mark.parametrize("method", ["convex", "convex-fair", "convex-latency"])
def test_an_answer_does_not_depend_on_what_was_solved_before(method, snr):
    p, other = (
        PruningProblem(1e6, 4e-3, 20e-3, rate, snr=snr) for rate in ((4e7, 6e7), (5e6, 4e8))
    )
    for build, _ in ALL:
        build.cache_clear()
    first = allocate(p, method)
    allocate(other, method)
    again = allocate(p, method)
    assert again.share.tolist() == first.share.tolist() and again.multiplier == first.multiplier


def test_little_and_much_curvature_in_one_problem():
    """Uploads of 0.25 us and of 25 ms beside 0.3 s and 4 ms of computing: the second is curved 1e7
    times less.
    """
    p = PruningProblem([10.0, 1e6], [0.3, 4e-3], 20e-3, [4e7, 4e7])
    curvature = p.compute_s / (p.bits / p.rate_bps)
    assert curvature[0] > 1.0 > curvature[1]
    assert allocate(p, "convex").objective == approx(allocate(p).objective, rel=1e-8)


@pytest.mark.parametrize("snr", [None, (10.0, 1e3)])
def test_latency_by_hand_and_by_clarabel(snr):
    p = PruningProblem(1e6, 4e-3, np.inf, (4e7, 6e7), snr=snr)
    a = allocate(p, "convex-latency")
    if snr is None:
        assert a.objective == approx(4e-3 + 1e6 / 4e7 + 1e6 / 6e7, rel=1e-9)
    assert np.ptp(p.finish_s(a.share, a.rho)) < 1e-9


def test_no_answer_is_none():
    statement = statements.least_energy(2, False)
    names = ("nats", "time", "longest", "busy_max", "full_power", "cost", "work")
    values = {name: np.zeros(2) for name in names} | {"band": 0.0}
    assert len(list(statement.answers(values | {"full_power": np.full(2, 9.0)}))) > 0
    assert (
        list(statement.answers(values | {"full_power": np.full(2, -9.0)})) == []
    )  # no band is enough
    assert list(statement.answers(values | {"cost": np.array([1.0, np.inf])})) == []


@pytest.mark.slow
@pytest.mark.parametrize("method", ["convex", "convex-fair"])
def test_threads_do_not_mix_up_their_problems(method):
    """Four threads and one model of three devices: the numbers of each must stay its own."""
    rates = np.random.default_rng(6).uniform(4e7, 2e8, (24, 3))
    problems = [PruningProblem(1e6, 4e-3, 20e-3, row) for row in rates]
    alone = [allocate(p, method).share.tolist() for p in problems]
    with ThreadPoolExecutor(4) as threads:
        together = [a.share.tolist() for a in threads.map(lambda p: allocate(p, method), problems)]
    assert together == alone


@pytest.mark.parametrize("less", [1e-9, 1e-10, 1e-12, -1e-12, -1e-10])
def test_a_band_that_the_least_shares_all_but_fill(less):
    """Half and half at rho_max but for a hair, which is worth most to device 0, whose weight is
    the larger by far.
    """
    slack_s = [4e-3 + 0.5e6 / (4e7 * b) for b in (0.5, 0.5 - less)]
    p = PruningProblem([1e6, 1e6], 8e-3, slack_s, 4e7, [1e3, 1e-6], rho_max=0.5)
    a, b = allocate(p), allocate(p, "convex")
    assert b.objective == approx(a.objective, rel=1e-8) and b.share == approx(a.share, abs=1e-12)


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize(
    ("reference", "method"),
    [("convex", "kkt"), ("convex-fair", "fair"), ("convex-latency", "latency")],
)
def test_gains_over_six_decades_are_certified(reference, method, density):
    """10 MHz, 0.1 W, 4e-21 W/Hz: 24 dB below the noise up to 34 dB above it, 4 devices or 12."""
    for seed, count in enumerate((4, 12)):
        rng = np.random.default_rng(seed)
        gain = 10 ** rng.uniform(-14.0, -8.0, count)
        gain[:2] = 1e-14, 1e-8
        snr = 0.1 * gain / (4e-21 * 1e7)
        p = PruningProblem(
            1e6, 10 ** rng.uniform(-3, -1, count), 2.0, 1e7 * np.log2(1 + snr),
            rho_max=0.999, snr=snr if density else None,
        )  # fmt: skip
        a, b = allocate(p, method), allocate(p, reference)
        assert b.objective == approx(a.objective, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize(
    ("reference", "method"),
    [("convex", "kkt"), ("convex-alpha-fair", "alpha-fair"), ("convex-latency", "latency")],
)
def test_a_refusal_is_one_sentence_that_names_the_exact_method(monkeypatch, reference, method):
    monkeypatch.setattr(statements, "SETTINGS", ())
    p = PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7])
    with pytest.raises(UncertifiedError) as refused:
        allocate(p, reference)
    assert str(refused.value) == (
        f"{reference} finds no answer that its certificate accepts, as may be where the inputs "
        f"of devices lie many decades apart; use {method}."
    )
