"""`allocate`: two devices by every method, own allocators, and input that is not allowed."""

from dataclasses import replace

import numpy as np
import pytest
from pytest import approx

from solvers import (
    METHODS,
    EnergyTerms,
    InvalidAllocationError,
    PruningProblem,
    UncertifiedError,
    allocate,
)
from solvers.acceptance import certified_solution
from solvers.certificate import certify

A, G, Q = 20e-3, 4e-3, 1e6
# two devices, computed by hand: r, G, exact b, exact rho, lambda, printed b (None: the same)
TABLE = {
    "interior": (
        (4e7, 6e7),
        G,
        (0.0349921, 0.9650079),
        (0.97216217, 0.05975341),
        0.7911166939,
        None,
    ),
    "clip below and above": (
        (5e6, 4e8),
        G,
        (0.84375, 0.15625),
        (0.9170252, 0),
        0.0967085473,
        (-3.566, 4.566),
    ),
    "cap": (
        (4e7, 3e8),
        G,
        (0.79166667, 0.20833333),
        (0.43786982, 0),
        0.6302300340,
        (-0.329, 1.329),
    ),
    "slack band": ((4e8, 6e8), G, (0.15625, 0.1041667), (0, 0), 0.0, "rho below 0"),
    "G above A": (
        (4e7, 6e7),
        30e-3,
        (0.4817745, 0.5182255),
        (0.7557744, 0.6782550),
        0.3212216166,
        None,
    ),
}


def problem(r, compute_s=G, **more):
    return PruningProblem(bits=Q, compute_s=compute_s, slack_s=A, rate_bps=r, **more)


@pytest.mark.parametrize("row", TABLE)
@pytest.mark.parametrize("method, digits", [("kkt", 1e-10), ("convex", 1e-7)])
def test_exact_columns_of_the_table(row, method, digits):
    r, compute_s, b, rho, multiplier, _ = TABLE[row]
    a = allocate(problem(r, compute_s), method)
    assert a.share == approx(b, abs=5e-8 + digits)  # the table has 7 or 8 digits
    assert a.rho == approx(rho, abs=5e-8 + digits)
    assert a.multiplier == approx(multiplier, abs=5e-11 + 10 * digits)
    assert a.objective == approx(sum(rho), abs=1e-7 + digits)
    assert a.certificate.gap < 1e-8 and not a.certificate.broken and a.infeasible == ()


def test_multiplier_of_convex_where_nobody_needs_the_whole_band_to_send():
    p = problem(
        (1e8, 2e8), 15e-3
    )  # 0.5 and 0.25 of the band to send, more because of the computation
    a, b = allocate(p), allocate(p, "convex")
    assert a.share.sum() == approx(1) and (a.rho > 0).all()
    assert b.multiplier == approx(a.multiplier, rel=1e-6) and b.rho == approx(a.rho, abs=1e-7)


@pytest.mark.parametrize("row", TABLE)
def test_printed_column_of_the_table(row):
    r, compute_s, b, rho, _, printed_b = TABLE[row]
    a = allocate(problem(r, compute_s), "printed")
    assert a.share.sum() == approx(1.0)
    if printed_b is None:
        assert (
            a.share == approx(b, abs=1e-7)
            and a.rho == approx(rho, abs=1e-7)
            and a.certificate.broken == ()
        )
    elif isinstance(printed_b, str):
        assert (a.rho < 0).any() and any("below rho_min" in words for words in a.certificate.broken)
    else:
        assert a.share == approx(printed_b, abs=1e-3)
        assert any(
            "device 0 has share -" in words and "below 0" in words for words in a.certificate.broken
        )
        assert any(
            "device 1 has share" in words and "above 1" in words for words in a.certificate.broken
        )
        assert a.certificate.residual > 0.1


def test_printed_refuses_what_the_formula_does_not_know():
    with pytest.raises(ValueError, match="neither weights nor bits_fixed"):
        allocate(problem((4e7, 6e7), weight=[1, 2]), "printed")
    with pytest.raises(ValueError, match="compute_s > 0"):
        allocate(problem((4e7, 6e7), 0.0), "printed")


def test_equal_shares_and_the_pruning_of_47():
    a = allocate(problem((4e7, 6e7)), "equal")
    assert a.share == approx([0.5, 0.5])
    assert a.rho == approx([1 - A / (G + Q / 2e7), 1 - A / (G + Q / 3e7)])
    assert np.isnan(a.certificate.gap) and a.certificate.primal == 0


def test_equal_without_a_deadline_prunes_nothing_and_with_a_cap_is_late():
    free = allocate(PruningProblem(Q, G, np.inf, (4e7, 6e7), rho_min=0.1), "equal")
    assert free.rho == approx([0.1, 0.1])
    p = problem((4e7, 6e7), rho_max=0.2)
    late = allocate(p, "equal")
    assert late.rho == approx([0.2, 0.2]) and (p.finish_s(late.share, late.rho) > A).all()
    assert late.certificate.residual == 0  # late, but no bound is broken


def test_equal_where_the_fixed_bits_alone_are_late():
    a = allocate(problem((4e7, 6e7), bits_fixed=1e6, rho_max=0.9), "equal")  # 1e6 / 3e7 s is 33 ms
    assert a.rho == approx([0.9, 0.9])


def test_a_device_without_time_is_left_out():
    p = PruningProblem(Q, G, [A, 0.0, A, -1e-3], [4e7, 6e7, 6e7, 6e7], rho_max=[1, 0.7, 1, 0.6])
    pair = allocate(problem((4e7, 6e7)))
    for method in ("kkt", "convex", "equal", "printed"):
        a = allocate(p, method)
        assert a.infeasible == (1, 3)
        assert a.share[[1, 3]].tolist() == [0, 0] and a.rho[[1, 3]].tolist() == [0.7, 0.6]
    assert allocate(p, "equal").share.tolist() == [0.5, 0, 0.5, 0]
    a = allocate(p)
    assert a.share[[0, 2]] == approx(pair.share) and a.objective == approx(pair.objective)


def test_nobody_has_time():
    for method in ("kkt", "convex", "equal", "printed"):
        a = allocate(PruningProblem(Q, G, [0.0, -1.0], 4e7), method)
        assert a.infeasible == (0, 1) and a.share.sum() == 0 and a.objective == 0


def test_unknown_method_and_missing_deadline():
    with pytest.raises(ValueError, match=r"choose kkt, .*printed.* or pass a function"):
        allocate(problem((4e7, 6e7)), "magic")
    for method in ("kkt", "convex"):
        with pytest.raises(ValueError, match="slack_s of device 1 is inf"):
            allocate(PruningProblem(Q, G, [A, np.inf], 4e7), method)


@pytest.mark.parametrize("given", [None, 3, {"bits": 1e6}])
def test_what_is_no_problem_is_said(given):
    for method in (*METHODS, lambda p: None):
        with pytest.raises(ValueError, match=r"^problem is .*; give a PruningProblem\.$"):
            allocate(given, method)


def test_own_allocator_is_run_and_checked():
    def halves(p):
        share = np.full(p.num_devices, 1 / p.num_devices)
        return share, p.rho_at(share)

    p = problem((4e7, 6e7))
    a = allocate(p, halves)
    assert a.method == "halves" and a.rho == approx(allocate(p, "equal").rho)
    assert allocate(p, lambda p: allocate(p, "kkt")).rho == approx(allocate(p).rho)


def test_own_allocator_keeps_its_clocks_and_powers():
    p = problem((4e7, 6e7))
    own = replace(allocate(p, "equal"), cpu_hz=np.array([1e9, 2e9]), power_w=np.array([0.1, 0.2]))
    a = allocate(p, lambda p: own)
    assert a.cpu_hz.tolist() == [1e9, 2e9] and a.power_w.tolist() == [0.1, 0.2]
    assert allocate(p, lambda p: replace(own, power_w=None)).power_w is None
    for wrong in ([1e9], [1e9, np.nan], [1e9, -1.0], [1e9, 0.0]):
        with pytest.raises(
            InvalidAllocationError, match=r"returned cpu_hz array.* give 2 finite numbers"
        ):
            allocate(p, lambda p, wrong=wrong: replace(own, cpu_hz=np.array(wrong)))


@pytest.mark.parametrize(
    "more, words",
    [
        ({"cpu_hz": np.array([1e9, 3e9])}, "cpu_hz with 3e\\+09 for device 1, above its 2e\\+09"),
        ({"power_w": np.array([0.3, 0.2])}, "power_w with 0.3 for device 0, above its 0.2"),
        ({"cpu_hz": "fast"}, "returned cpu_hz 'fast'; give 2 finite numbers above 0"),
        ({"power_w": np.array([0.1, 0.1j])}, "returned power_w array.*; give 2 finite numbers"),
    ],
)
def test_own_allocator_has_no_more_clock_or_power_than_the_devices(more, words):
    p = replace(problem((4e7, 6e7)), energy=EnergyTerms(8e6, 1e-28, 0.0, 2e9, 0.2, 100.0))
    own = replace(
        allocate(p, "equal"), cpu_hz=np.array([2e9, 1e9]), power_w=np.array([0.2 + 1e-12, 0.1])
    )
    assert allocate(p, lambda p: own).cpu_hz.tolist() == [2e9, 1e9]
    with pytest.raises(InvalidAllocationError, match=words):
        allocate(p, lambda p: replace(own, **more))


@pytest.mark.parametrize(
    "answer, words",
    [
        (([0.6, 0.5], [0, 0]), "add up to 1.1, above 1"),
        (([-0.1, 0.5], [0, 0]), "device 0 has share -0.1, below 0"),
        (([0.5, 0.5], [0, 1.2]), "device 1 has rho 1.2, above rho_max"),
        (([0.5, 0.5], [-0.1, 0]), "device 0 has rho -0.1, below rho_min"),
        (([0.5, np.nan], [0, 0]), "shares with nan for device 1"),
        (([0.5, 0.5], [0, np.inf]), "pruning ratios with inf for device 1"),
        (([0.5], [0, 0]), "2 devices"),
        ((["a", "b"], [0, 0]), "not numbers"),
        (7, "return \\(share, rho\\)"),
    ],
)
def test_own_allocator_that_breaks_a_bound(answer, words):
    with pytest.raises(InvalidAllocationError, match=words):
        allocate(problem((4e7, 6e7)), lambda p: answer)


@pytest.mark.parametrize(
    "field, value, words",
    [
        ("rate_bps", [1e6, 0], "rate_bps of device 1 is 0; it must be finite and positive"),
        ("bits", [-1, 1], "bits of device 0"),
        ("compute_s", np.nan, "compute_s of device 0 is nan"),
        ("slack_s", [1, np.nan], "slack_s of device 1"),
        ("weight", [1, 0], "weight of device 1"),
        ("rho_min", 0.6, "between 0 and rho_max"),
        ("rho_max", 1.5, "between 0 and 1"),
        ("bits_fixed", np.inf, "bits_fixed of device 0"),
        ("bits", "many", "give a number"),
        ("bits", [1, 2, 3], "shapes"),
    ],
)
def test_bad_input_is_named(field, value, words):
    fields = {"bits": Q, "compute_s": G, "slack_s": A, "rate_bps": (4e7, 6e7), "rho_max": 0.5} | {
        field: value
    }
    with pytest.raises(ValueError, match=words):
        PruningProblem(**fields)


def test_a_problem_cannot_be_changed_from_outside():
    r = np.array([4e7, 6e7])
    p = problem(r)
    r[0] = 1.0
    assert p.rate_bps[0] == 4e7
    with pytest.raises(ValueError, match="read-only"):
        p.bits[0] = 2.0


@pytest.mark.parametrize("spoilt", ["share", "multiplier", "band", "late", "lavish"])
def test_the_certificate_sees_a_wrong_answer(spoilt):
    p = problem((4e7, 6e7, 3e8))
    a = allocate(p)
    share, rho, multiplier = a.share.copy(), a.rho.copy(), a.multiplier
    if spoilt == "share":  # feasible, but not the best
        share += [1e-3, -1e-3, 0]
        rho = p.rho_at(share)
    elif spoilt == "multiplier":
        multiplier *= 1.001
    elif spoilt == "band":
        share, rho = 0.999 * share, p.rho_at(0.999 * share)
    elif spoilt == "late":
        rho -= 1e-6
    else:
        rho += [0, 1e-6, 0]
    proof = certify(p, share, rho, multiplier)
    assert (proof.primal > 1e-7) == (spoilt == "late")
    assert (proof.complementarity > 1e-7) == (spoilt in ("band", "lavish"))
    assert (proof.dual > 1e-7) == (spoilt in ("share", "multiplier", "band"))
    assert proof.residual > 1e-7
    with pytest.raises(UncertifiedError, match="duality gap"):
        certified_solution(p, share, rho, multiplier, "wrong")


def test_the_gap_is_the_distance_to_a_lower_bound():
    p = problem((4e7, 6e7), weight=(1, 2))
    a, b = allocate(p), np.array([0.5, 0.5])
    grid = np.linspace(0, 1, 200_001)  # the dual function by brute force
    dual = -a.multiplier
    for k in range(2):
        one = PruningProblem(Q, G, A, np.full(len(grid), p.rate_bps[k]))
        dual += (p.weight[k] * one.rho_at(grid) + a.multiplier * grid).min()
    assert a.objective == approx(dual, abs=1e-9)
    proof = certify(p, b, p.rho_at(b), a.multiplier)
    objective = p.objective(p.rho_at(b))
    assert proof.gap == approx((objective - dual) / max(objective, 1.5), rel=1e-6)
    assert proof.gap * (1 + 1e-12) >= (objective - a.objective) / max(objective, 1.5) > 1e-3
