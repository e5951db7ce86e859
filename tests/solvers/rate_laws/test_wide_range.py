"""Allocations over wide ranges of gains, thresholds and device counts, with many on their kinks."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.adaptation.link_adaptation import schemes
from solvers import InfeasibleError, PruningProblem, allocate
from solvers.rate_laws.efficiency_laws import CappedLaw, HullLaw

STAIRS = HullLaw(np.array([0.25, 1.0, 3.0, 10.0]), np.array([0.25, 0.8, 1.5, 2.5]))
LAWS = {
    "64qam": HullLaw(*schemes("64qam")),
    "stairs": STAIRS,
    "truncated": CappedLaw(0.4, 10**2.2, 0.1),
    "power control": CappedLaw(1.0, 3.0),
    "shannon": CappedLaw(),
    "density": None,
}
NOISE_W_PER_HZ = 1e-20
COMPUTE_PARTS = (0.0, 1e-9, 1e-6, 1e-3, 0.3)  # of the threshold: the smaller, the more on kinks


@st.composite
def cells(draw, law, most=2000):
    """A cell of up to ``most`` devices whose gains spread from 1e-14 to 1e-6 at the widest."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    count = draw(st.sampled_from([k for k in (1, 2, 3, 10, 60, 2000) if k <= most]))
    least, spread = draw(st.sampled_from([(-14, 8), (-14, 0), (-11, 2), (-6, 0)]))
    threshold_s = 10.0 ** draw(st.integers(-4, 4))
    band_hz = 10.0 ** draw(st.integers(5, 8))
    snr = 0.2 * 10 ** (least + spread * rng.random(count)) / (NOISE_W_PER_HZ * band_hz)
    bits_per_hz = np.log2(1.0 + snr) if law is None else law.efficiency(snr)
    bits = band_hz * threshold_s * 10.0 ** draw(st.integers(-6, 4))
    compute_s = threshold_s * draw(st.sampled_from(COMPUTE_PARTS)) * rng.uniform(0.5, 1.0, count)
    fixed = draw(st.sampled_from([0.0, 0.0, 1e-9])) * bits
    kink = draw(st.sampled_from([None, 1.0, 1.0 / count, 1e-6]))
    return PruningProblem(
        bits,
        np.where(rng.random(count) < draw(st.sampled_from([0.0, 0.5])), 0.0, compute_s),
        threshold_s * draw(st.sampled_from([1.0, rng.uniform(0.5, 1.0, count)])),
        band_hz * np.maximum(bits_per_hz, 1e-300),
        weight=draw(st.sampled_from([1.0, 10.0 ** rng.uniform(-2, 2, count)])),
        rho_max=draw(st.sampled_from([1.0, 1.0, 0.9])),
        bits_fixed=fixed,
        snr=snr,
        law=law,
        full_power_share=kink,
    )


def allocated(problem, method="kkt"):
    """The certified answer; None where the least shares do not fit."""
    try:
        return allocate(problem, method)
    except InfeasibleError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@settings(max_examples=60)
@given(data=st.data())
def test_every_answer_is_certified(law, data):
    problem = data.draw(cells(law))
    if (found := allocated(problem)) is not None:
        proof = found.certificate
        assert max(proof.residual, proof.gap) <= 1e-8
        assert (found.share >= 0.0).all() and found.share.sum() <= 1.0 + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@settings(max_examples=40)
@given(data=st.data(), part=st.floats(1e-9, 1.0))
def test_no_device_gives_band_to_another_with_a_gain(law, data, part):
    """Independent of marginal gains: a part of one share is moved to another device."""
    problem = data.draw(cells(law, most=10))
    found = allocated(problem)
    if found is None or problem.num_devices < 2:
        return
    low, _ = problem.share_bounds()
    given_away = part * np.maximum(found.share - low, 0.0)
    less = problem.rho_at(found.share - given_away)
    for k, moved in enumerate(given_away):
        more = problem.rho_at(found.share + moved)
        change = problem.weight[k] * (less[k] - found.rho[k])
        gain = problem.weight * (found.rho - more)
        assert np.delete(gain, k).max() <= change + 1e-9 * problem.mean_weight


@pytest.mark.parametrize("seed", [29, 42, 158, 166])
def test_the_last_step_of_a_search_ends_on_a_kink(seed):
    """Computing takes next to no time: a device goes from kink to kink at all but one price."""
    rng = np.random.default_rng(seed)
    snr, compute_s = 10 ** rng.uniform(-2, 1, 3), rng.choice([1e-9, 1e-8, 1e-7, 1e-6])
    rate_bps = 16.8912e6 * STAIRS.efficiency(snr)
    found = allocate(PruningProblem(2e6, compute_s, 0.06, rate_bps, snr=snr, law=STAIRS))
    assert max(found.certificate.residual, found.certificate.gap) <= 1e-8
    ratio = snr / found.share  # of three devices only one is between two corners
    assert np.sum(np.min(np.abs(ratio[:, None] / STAIRS.snr - 1.0), axis=1) <= 1e-9) >= 2


@pytest.mark.parametrize("method", ["fair", "alpha-fair", "latency", "equal", "proportional"])
@settings(max_examples=20)
@given(data=st.data())
def test_the_other_methods_over_the_same_range(method, data):
    """Without a law, or power control, which `equal` and `proportional` alone understand."""
    laws = list(LAWS.values()) if method in ("equal", "proportional") else [None]
    problem = data.draw(cells(data.draw(st.sampled_from(laws)), most=60))
    if method not in ("equal", "proportional") and problem.full_power_share is not None:
        return
    if (found := allocated(problem, method)) is not None:
        proof = found.certificate
        assert np.nanmax([proof.residual, proof.gap]) <= 1e-6
        assert found.share.sum() <= 1.0 + 1e-12


@pytest.mark.slow
@settings(max_examples=15)
@given(
    snr=st.lists(st.floats(-3.0, 4.0), min_size=2, max_size=4),
    compute_s=st.floats(1e-3, 0.05),
    bits=st.floats(1e5, 1e8),
)
def test_a_hull_costs_no_more_than_a_convex_program_finds(snr, compute_s, bits):
    """rho >= 1 - A R / (R G + q), convex in R, and R below every line of the hull."""
    snr, band_hz, slack_s = 10 ** np.array(snr), 16.8912e6, 0.06
    rate_bps = band_hz * STAIRS.efficiency(snr)
    problem = PruningProblem(bits, compute_s, slack_s, rate_bps, snr=snr, law=STAIRS)
    share, rate = cp.Variable(len(snr)), cp.Variable(len(snr))
    lines = [rate <= a * share + s * snr for s, a in zip(*STAIRS.lines, strict=True)]
    q, parts = bits / band_hz, slack_s / compute_s
    pruned = 1 - parts + parts * cp.inv_pos(rate * (compute_s / q) + 1)
    bounds = [cp.sum(share) <= 1, share >= 0, rate >= 0]
    least = cp.Problem(cp.Minimize(cp.sum(cp.pos(pruned))), lines + bounds)
    value = least.solve(solver=cp.CLARABEL)
    assert allocate(problem).rho.sum() == pytest.approx(value, abs=1e-5)
