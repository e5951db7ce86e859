"""Allocations of devices whose power falls with their share: by hand, and against cvxpy."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers import PruningProblem, allocate
from solvers.certificate import certify
from solvers.rate_laws.best_response import best_response
from solvers.rate_laws.efficiency_laws import CappedLaw, HullLaw

BAND_HZ = 16.8912e6
STAIRS = HullLaw(np.array([0.25, 1.0, 3.0, 10.0]), np.array([0.25, 0.8, 1.5, 2.5]))
TRUNCATED = CappedLaw(0.4, 10**2.2, 0.1)
LAWS = {"shannon": None, "hull": STAIRS, "truncated": TRUNCATED}


def controlled(law, snr, kink, **changes):
    """2 Mbit, G 10 ms, A 60 ms over 16.8912 MHz."""
    snr = np.array(snr)
    bits = np.log2(1.0 + snr) if law is None else law.efficiency(snr)
    given = {"bits": 2e6, "compute_s": 0.01, "slack_s": 0.06} | changes
    return PruningProblem(rate_bps=BAND_HZ * bits, snr=snr, law=law, full_power_share=kink, **given)


def test_links_far_below_the_noise_have_a_plan():
    """c = 1e-20: 1 + c is 1, and log(1 + c) is c. Rates are c B / ln 2 over any share."""
    snr = np.full(2, 1e-20)
    rate_bps = 1e6 * snr / np.log(2.0)
    problem = PruningProblem(1e-15, 0.01, 0.06, rate_bps, snr=snr, full_power_share=np.ones(2))
    found = allocate(problem)
    assert found.share == pytest.approx([0.5, 0.5])
    assert found.certificate.residual <= 1e-9


def test_the_rate_by_hand():
    """c = 1, k = 1 / 4: log2(1 + 4) / 4 at the kink, half of it at half, then b log2(1 + 1 / b)."""
    problem = controlled(None, [1.0], [0.25])
    rates = [problem.rate_at(np.array([b]))[0] / BAND_HZ for b in (0.125, 0.25, 0.5, 1.0)]
    assert rates == pytest.approx([np.log2(5) / 8, np.log2(5) / 4, np.log2(3) / 2, 1.0])
    slopes = [problem.slope_at(np.array([0.25]), more)[0] / BAND_HZ for more in (False, True)]
    # log2(1 + g), and log2(1 + g) - g / ((1 + g) ln 2)
    assert slopes == pytest.approx([np.log2(5), np.log2(5) - 0.8 / np.log(2)])


def test_two_devices_on_their_kinks():
    """g_psd = 3: kinks at c / 3, and the third has no more than 3 over the whole band either.

    To the digits of a dual bisection.
    """
    snr = np.array([0.3, 1.0, 3.0])
    found = allocate(controlled(None, snr, snr / 3.0))
    assert found.share == pytest.approx([0.1, 1 / 3, 0.5666667], abs=1e-7)
    assert found.rho == pytest.approx([0.9003362, 0.6801830, 0.4758675], abs=1e-7)
    assert found.certificate.residual <= 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@given(
    snr=st.floats(1e-3, 1e5),
    kink=st.floats(1e-6, 1.0),
    shares=st.lists(st.floats(1e-6, 1.0), min_size=3, max_size=3),
)
def test_the_rate_is_concave_and_increasing_and_its_inverse_is_its_inverse(law, snr, kink, shares):
    problem = controlled(law, [snr], [kink])
    a, middle, b = np.array([min(shares)]), np.array([sum(shares) / 3]), np.array([max(shares)])
    low, mid, high = (float(problem.rate_at(each)[0]) for each in (a, middle, b))
    line = low + (high - low) * float((middle - a)[0] / max((b - a)[0], 1e-300))
    assert low <= high * (1 + 1e-12) and mid >= line * (1 - 1e-9)
    assert problem.slope_at(a)[0] >= problem.slope_at(a, more=True)[0] >= 0.0
    needs = problem.share_for_rate(np.array([low]))
    assert needs[0] <= a[0] * (1 + 1e-9)
    assert problem.rate_at(needs)[0] == pytest.approx(low, rel=1e-9)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("price", [0.3, 3.0, 30.0])
def test_a_response_is_the_best_of_a_million_shares(law, price):
    problem = controlled(law, [0.4, 5.0, 60.0], [0.3, 0.02, 0.9])
    low, cap = problem.share_bounds()
    found = best_response(problem, price, low, cap)
    for k in range(3):
        grid = np.append(np.linspace(low[k], cap[k], 10**5), problem.full_power_share[k])
        one = controlled(law, problem.snr[[k]], problem.full_power_share[[k]])
        worth = one.rho_at(grid[:, None])[:, 0] + price * grid
        inside = (grid >= low[k]) & (grid <= cap[k])
        mine = one.rho_at(found[[k]])[0] + price * found[k]
        assert low[k] <= found[k] <= cap[k] and mine <= worth[inside].min() + 1e-9


@pytest.mark.parametrize("law", [None, STAIRS], ids=["shannon", "hull"])
@pytest.mark.parametrize("kink", [(0.05, 0.2, 0.6), (0.4, 0.4, 0.4), (1.0, 0.01, 1e-5)])
def test_allocations_against_a_convex_program(law, kink):
    """rho >= 1 - A R / (R G + q), convex in R; R below the line to the kink and the law beyond."""
    snr = np.array([1.0, 10.0, 30.0])
    problem = controlled(law, snr, kink)
    share, rate = cp.Variable(3), cp.Variable(3)
    kinks, unit = np.array(kink), problem.rate_at(np.array(kink)) / BAND_HZ
    below = [rate <= cp.multiply(unit / kinks, share)]
    if law is None:
        below.append(rate <= -cp.rel_entr(share, share + snr) / np.log(2.0))
    else:
        slope, intercept = law.lines
        below += [rate <= a * share + s * snr for s, a in zip(slope, intercept, strict=True)]
    q, g_s, a_s = 2e6 / BAND_HZ, 0.01, 0.06
    pruned = 1 - a_s / g_s + (a_s * q / g_s) * cp.inv_pos(g_s * rate + q)
    bounds = [cp.sum(share) <= 1, share >= 0, rate >= 0]
    least = cp.Problem(cp.Minimize(cp.sum(cp.pos(pruned))), below + bounds)
    value = least.solve(solver=cp.CLARABEL)
    found = allocate(problem)
    assert found.rho.sum() == pytest.approx(value, abs=2e-6)
    assert found.certificate.residual <= 1e-12 and found.certificate.gap <= 1e-9


def test_all_power_at_any_share_is_no_power_control():
    snr = np.array([1.0, 10.0, 100.0])
    for law in LAWS.values():
        free, tiny = controlled(law, snr, None), controlled(law, snr, 1e-9)
        assert allocate(tiny).share == pytest.approx(allocate(free).share, abs=1e-7)


def test_the_certificate_rejects_what_is_not_optimal():
    problem = controlled(None, [0.3, 1.0, 3.0], [0.1, 1 / 3, 1.0])
    best = allocate(problem)
    share = best.share + np.array([0.01, -0.01, 0.0])
    proof = certify(problem, share, problem.rho_at(share), best.multiplier)
    assert max(proof.dual, proof.gap) > 1e-4


def test_other_methods_and_bad_kinks_are_refused_in_one_sentence():
    problem = controlled(None, [1.0, 2.0], 0.5)
    for method, blocks in (("energy", None), ("fair", None), ("latency", None), ("kkt", 50)):
        with pytest.raises(ValueError, match="knows no power control"):
            allocate(problem, method=method, blocks=blocks)
    for kink in (0.0, 1.5, -1.0, np.nan):
        with pytest.raises(ValueError, match="full_power_share"):
            controlled(None, [1.0, 2.0], kink)
    with pytest.raises(ValueError, match="given without snr"):
        PruningProblem(1.0, 1.0, 1.0, 1.0, full_power_share=0.5)
