"""Rates of link adaptation: values by hand, concavity, and exact allocations against cvxpy."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers import PruningProblem, allocate
from solvers.certificate import certify
from solvers.rate_laws.efficiency_laws import CappedLaw, HullLaw

BAND_HZ = 16.8912e6
STAIRS = HullLaw(np.array([0.25, 1.0, 3.0, 10.0]), np.array([0.25, 0.8, 1.5, 2.5]))
TRUNCATED = CappedLaw(0.4, 10**2.2, 0.1)
CONTROLLED = CappedLaw(1.0, 3.0)
LAWS = {"hull": STAIRS, "truncated": TRUNCATED, "power control": CONTROLLED, "shannon": CappedLaw()}


def three(law, snr=(1.0, 10.0, 100.0), **changes):
    """2 Mbit, G 10 ms, A 60 ms over 16.8912 MHz."""
    snr = np.array(snr)
    given = {"bits": 2e6, "compute_s": 0.01, "slack_s": 0.06} | changes
    return PruningProblem(rate_bps=BAND_HZ * law.efficiency(snr), snr=snr, law=law, **given)


def test_a_hull_keeps_the_corners_of_its_majorant():
    """(2, 0.6) lies below the line from (1, 0.5) to (4, 2); (5, 2) brings no bit."""
    law = HullLaw(np.array([1.0, 2.0, 4.0, 5.0]), np.array([0.5, 0.6, 2.0, 2.0]))
    assert law.snr.tolist() == [4.0] and law.bits.tolist() == [2.0]
    assert law.efficiency(np.array([0.0, 2.0, 4.0, 9.0])).tolist() == [0.0, 1.0, 2.0, 2.0]


def test_rates_by_hand():
    """c = 3: the whole band has g = 3, half of it 6, between the corners 3 and 10."""
    problem = three(STAIRS, (3.0,))
    assert problem.rate_at(np.array([1.0])) == pytest.approx(1.5 * BAND_HZ)
    assert problem.rate_at(np.array([0.5])) == pytest.approx(0.5 * (1.5 + 3 / 7) * BAND_HZ)
    kink = [problem.slope_at(np.array([1.0]), more)[0] / BAND_HZ for more in (False, True)]
    assert kink == pytest.approx([1.5 - 3 / 7, 1.5 - 3 * 0.35])
    assert TRUNCATED.efficiency(np.array([10**2.2, 1e9])) == pytest.approx([2.926926, 2.926926])
    limit = 3.0 * BAND_HZ  # R' is 0 below g = 0.25, where eta = g
    assert problem.share_for_rate(np.array([limit, 1.001 * limit])) == pytest.approx([12, np.inf])
    assert TRUNCATED.efficiency(np.array([0.05])) == pytest.approx(0.2 * np.log2(1.1))


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@given(snr=st.floats(1e-3, 1e5), shares=st.lists(st.floats(1e-6, 1.0), min_size=3, max_size=3))
def test_the_rate_is_concave_and_increasing_and_its_inverse_is_its_inverse(law, snr, shares):
    problem = three(law, (snr,))
    a, middle, b = np.array([min(shares)]), np.array([sum(shares) / 3]), np.array([max(shares)])
    low, mid, high = (float(problem.rate_at(each)[0]) for each in (a, middle, b))
    line = low + (high - low) * float((middle - a)[0] / max((b - a)[0], 1e-300))
    assert low <= high * (1 + 1e-12) and mid >= line * (1 - 1e-9)
    assert problem.slope_at(a)[0] >= problem.slope_at(a, more=True)[0] >= 0.0
    needs = problem.share_for_rate(np.array([low]))
    assert needs[0] <= a[0] * (1 + 1e-9)
    assert problem.rate_at(needs)[0] == pytest.approx(low, rel=1e-9)


def test_allocations_agree_with_two_independent_solvers():
    """Truncated and power-controlled rates, to the digits of a dual bisection and cvxpy."""
    found = allocate(three(TRUNCATED))
    assert found.share == pytest.approx([0.0238984, 0.1963648, 0.7797367], abs=1e-7)
    assert found.rho.sum() == pytest.approx(1.81963214, abs=1e-8)
    kinks = allocate(three(CONTROLLED, (0.3, 1.0, 100.0)))
    assert kinks.share == pytest.approx([0.1, 1 / 3, 0.5666667], abs=1e-7)
    assert kinks.rho == pytest.approx([0.9003362, 0.6801830, 0.4758675], abs=1e-7)
    assert max(found.certificate.residual, kinks.certificate.residual) <= 1e-12


def test_without_a_cap_the_law_is_shannons():
    capped, shannon = three(CappedLaw()), np.array([1.0, 10.0, 100.0])
    plain = PruningProblem(2e6, 0.01, 0.06, BAND_HZ * np.log2(1 + shannon), snr=shannon)
    assert allocate(capped).rho.sum() == pytest.approx(allocate(plain).rho.sum(), rel=1e-12)
    found = allocate(plain)
    assert found.share == pytest.approx([0.1626856, 0.5583831, 0.2789313], abs=1e-7)
    assert found.rho == pytest.approx([0.7748729, 0.0, 0.0], abs=1e-7)


@pytest.mark.parametrize(("alpha", "cap_db", "most"), [(0.4, 15, 2.011123), (0.6, 22, 4.390389)])
def test_the_caps_of_uplink_and_downlink(alpha, cap_db, most):
    """TR 36.942, A.2: 0.4 log2(1 + 31.62) and 0.6 log2(1 + 158.49), printed as 2.0 and 4.4."""
    law = CappedLaw(alpha, 10.0 ** (cap_db / 10.0), 0.1)
    found = law.efficiency(10.0 ** (np.array([cap_db, cap_db + 5.0]) / 10.0))
    assert found == pytest.approx([most, most], abs=1e-6)


@pytest.mark.parametrize("snr", [(1.0, 10.0, 100.0), (0.1, 0.5, 30.0), (3.0, 3.0, 3.0)])
def test_a_hull_against_a_convex_program(snr):
    """rho >= 1 - A R / (R G + q), which is convex in R, and R below every line of the hull."""
    problem = three(STAIRS, snr)
    share, rate = cp.Variable(3), cp.Variable(3)
    slope, intercept = STAIRS.lines
    lines = [rate <= a * share + s * np.array(snr) for s, a in zip(slope, intercept, strict=True)]
    q, g_s, a_s = 2e6 / BAND_HZ, 0.01, 0.06
    pruned = 1 - a_s / g_s + (a_s * q / g_s) * cp.inv_pos(g_s * rate + q)
    least = cp.Problem(
        cp.Minimize(cp.sum(cp.pos(pruned))), [*lines, cp.sum(share) <= 1, share >= 0, rate >= 0]
    ).solve(solver=cp.CLARABEL)
    found = allocate(problem)
    assert found.rho.sum() == pytest.approx(least, abs=1e-6)
    assert found.certificate.residual <= 1e-12


def test_the_certificate_rejects_what_is_not_optimal():
    problem, best = three(STAIRS), allocate(three(STAIRS))
    share = best.share + np.array([0.02, -0.02, 0.0])
    proof = certify(problem, share, problem.rho_at(share), best.multiplier)
    assert max(proof.dual, proof.gap) > 1e-4
    price = certify(problem, best.share, best.rho, 1.2 * best.multiplier)
    assert max(price.dual, price.gap) > 1e-4


def test_other_methods_refuse_a_law_in_one_sentence():
    for method, blocks in (("fair", None), ("convex", None), ("kkt", 50)):
        with pytest.raises(ValueError, match="knows no law of link adaptation"):
            allocate(three(STAIRS), method=method, blocks=blocks)
    for bad in ([0.0, 1.0], [2.0, 1.0]):
        with pytest.raises(ValueError, match="hull"):
            HullLaw(np.array(bad), np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="law is given without snr"):
        PruningProblem(1.0, 1.0, 1.0, 1.0, law=STAIRS)
    with pytest.raises(ValueError, match="least < cap"):
        CappedLaw(1.0, 0.1, 0.2)
