"""Rates where noise is a density: the inverse of the rate, and its limit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from solvers import PruningProblem


@pytest.mark.slow
@given(st.floats(-6, 6), st.floats(-9, 0), st.floats(3, 12))
def test_share_for_rate_inverts_rate_at(snr, share, rate_bps):
    snr, share = 10.0**snr, 10.0**share
    p = PruningProblem(1.0, 1.0, 1.0, 10.0**rate_bps, snr=snr)
    v = np.log1p(snr / share)
    flat = (
        1e-15 * v / max(v + np.expm1(-v), 0.4 * v * v)
    )  # how much of the share one ulp of the rate is
    assert p.share_for_rate(p.rate_at([share])) == approx([share], rel=10 * flat)
    assert p.rate_at([1.0]) == approx(p.rate_bps, rel=1e-15)
    assert np.isinf(p.share_for_rate(p.rate_bps * snr / np.log1p(snr) * (1 + 1e-9)))
