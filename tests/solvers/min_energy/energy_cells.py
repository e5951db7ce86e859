"""Cells of which the energy is least by hand, and random ones."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from solvers import EnergyTerms, InfeasibleError, PruningProblem, allocate

HZ = 1e6  # the band


def cell(
    bits,
    cycles,
    time_s,
    gain,
    kappa=1e-28,
    f_min_hz=0.0,
    f_max_hz=2e9,
    p_max_w=0.5,
    density=False,
    **more,
):
    """A problem with `time_s` seconds for all computing and the upload."""
    cycles, gain = np.asarray(cycles), np.asarray(gain)
    snr, shape = gain * p_max_w, np.zeros(len(np.atleast_1d(bits)))
    return PruningProblem(
        bits=np.atleast_1d(bits) + shape,
        compute_s=cycles / f_max_hz,
        slack_s=time_s,
        rate_bps=HZ * np.log2(1.0 + snr),
        snr=snr + shape if density else None,
        rho_max=0.0,
        energy=EnergyTerms(cycles, kappa, f_min_hz, f_max_hz, p_max_w, gain),
        **more,
    )


def instance(seed, count, density, hurry):
    """hurry: how much of the time the least shares take, from 0 to 1, of the round that is just
    feasible.
    """
    rng = np.random.default_rng(seed)
    f_max_hz = rng.uniform(1e9, 3e9, count)
    p = cell(
        bits=np.where(rng.random(count) < 0.15, 0.0, 10 ** rng.uniform(4, 6.5, count)),
        cycles=np.where(rng.random(count) < 0.15, 0.0, 10 ** rng.uniform(7, 9, count)),
        time_s=rng.uniform(0.1, 0.3, count),
        gain=10 ** rng.uniform(0.5, 5, count),
        kappa=rng.choice([0.0, 1e-29, 1e-28, 1e-27], count),
        f_min_hz=f_max_hz * rng.choice([0.0, 0.1, 0.6, 1.0], count),
        f_max_hz=f_max_hz,
        p_max_w=10 ** rng.uniform(-2, 0, count),
        density=density,
    )
    least_s = least_extra_s(replace(p, slack_s=np.full(count, 1e-9)))
    return replace(
        p, slack_s=1e-9 + least_s / max(hurry, 1e-3) + rng.uniform(0, 0.1, count) * least_s
    )


def least_extra_s(p):
    try:
        allocate(p, "energy")
    except InfeasibleError as error:
        return error.extra_s
    return 1e-3  # nobody computes or sends


def problems(most=8):
    hurry = st.sampled_from([0.05, 0.3, 0.7, 0.95, 0.999])
    return st.builds(
        instance, st.integers(0, 2**32 - 1), st.integers(1, most), st.booleans(), hurry
    )


def widened(p, factor):
    """factor times the band at the same power and, under a density, the same noise density."""
    if p.snr is None:
        return replace(p, rate_bps=p.rate_bps * factor)
    snr, terms = p.snr / factor, p.energy
    rate_bps = p.rate_bps * factor * np.log1p(snr) / np.log1p(p.snr)
    return replace(p, rate_bps=rate_bps, snr=snr, energy=replace(terms, gain=terms.gain / factor))
