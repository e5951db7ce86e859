"""Shares at a price under a rate with kinks: against a fine grid, and whole allocations."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from solvers import PruningProblem, allocate
from solvers.rate_laws.best_response import best_response
from solvers.rate_laws.efficiency_laws import CappedLaw, HullLaw

LAWS = {
    "hull": HullLaw(np.array([0.25, 1.0, 3.0, 10.0]), np.array([0.25, 0.8, 1.5, 2.5])),
    "truncated": CappedLaw(0.4, 10**2.2, 0.1),
    "power control": CappedLaw(1.0, 3.0),
    "shannon": CappedLaw(),
}


def problem(law, snr, compute_s, bits_fixed=0.0):
    """2 Mbit, A 60 ms over 16.8912 MHz."""
    snr = np.asarray(snr, dtype=float)
    rate_bps = 16.8912e6 * law.efficiency(snr)
    given = {"bits_fixed": bits_fixed, "rho_max": 1.0}
    return PruningProblem(2e6, compute_s, 0.06, rate_bps, snr=snr, law=law, **given)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("price", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("compute_s", [0.01, 0.0])
def test_no_share_of_a_grid_is_better(law, price, compute_s):
    each = problem(law, [2.0], compute_s)
    low, cap = each.share_bounds()
    grid = np.linspace(low, cap, 40_001)
    cost = each.rho_at(grid).ravel() + price * grid.ravel()
    best = best_response(each, price, low, cap)
    assert float(each.rho_at(best)[0] + price * best[0]) <= cost.min() + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@given(
    snr=st.lists(st.floats(1e-2, 1e4), min_size=1, max_size=6),
    compute_s=st.sampled_from([0.0, 1e-4, 0.01, 0.05]),
    bits_fixed=st.sampled_from([0.0, 1e4]),
)
@example(snr=[0.125], compute_s=0.0, bits_fixed=0.0)  # half of the band is of no use
def test_allocations_are_certified(law, snr, compute_s, bits_fixed):
    each = problem(law, snr, compute_s, bits_fixed)
    try:
        found = allocate(each)
    except ValueError as short:  # the fixed bits alone need more than the band
        assert bits_fixed and "device" in str(short)
        return
    assert found.certificate.residual <= 1e-8 and found.share.sum() <= 1.0 + 1e-12


def test_a_law_of_another_class_is_refused():
    class Other:
        least = 0.0

        def snr_for_bits(self, bits):
            return np.where(bits <= 1.0, bits, np.inf)

        def efficiency(self, snr):
            return np.minimum(snr, 1.0)

        def tangents(self, snr):
            return np.zeros_like(snr), np.zeros_like(snr)

        def snr_for_ratio(self, ratio):
            return np.where(ratio <= 1.0, 1.0 / ratio, 0.0)

    with pytest.raises(ValueError, match="law is a Other"):
        best_response(problem(Other(), [2.0], 0.01), 1.0, np.zeros(1), np.ones(1))
