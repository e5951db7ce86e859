"""Problems of `fair` and `latency`: two devices by hand, and random ones."""

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from solvers import InfeasibleError, PruningProblem, allocate
from solvers.marginal_gains import marginal_gain

A, G, Q, R = 20e-3, 4e-3, 1e6, (4e7, 6e7)  # two devices, also in test_allocation.py


SNR = (10.0, 1e3)


METHODS = ("fair", "latency")


DIGITS = 2e-14  # the last digits of the band: who gets them is a matter of rounding


def problem(**more):
    return PruningProblem(**({"bits": Q, "compute_s": G, "slack_s": A, "rate_bps": R} | more))


def instance(seed, count, density, floors=False, caps=False, fixed=False):
    """K devices over three decades of size and rate; some without computation, upload, fixed bits
    or time.
    """
    rng = np.random.default_rng(seed)
    some = lambda values: np.where(rng.random(count) < 0.2, 0.0, values)  # noqa: E731
    rate_bps, snr = 10 ** rng.uniform(6, 9, count), 10 ** rng.uniform(-1, 5, count)
    return PruningProblem(
        bits=some(10 ** rng.uniform(4, 7, count)),
        compute_s=some(10 ** rng.uniform(-5, -1.5, count)),
        slack_s=rng.uniform(-1e-3, 3e-2, count),
        rate_bps=rate_bps,
        weight=rng.uniform(0.2, 5, count),
        rho_min=rng.uniform(0, 0.3, count) * floors,
        rho_max=1 - rng.uniform(0, 0.6, count) * caps,
        bits_fixed=some(10 ** rng.uniform(1, 5, count)) * fixed,
        snr=snr if density else None,
    )


def problems(most=12):
    flag = st.booleans()
    return st.builds(
        instance, st.integers(0, 2**32 - 1), st.integers(1, most), flag, flag, flag, flag
    )


def stretched(p):
    """The problem, or with just more than the least time that makes it feasible."""
    try:
        allocate(p, "fair")
    except InfeasibleError as error:
        return replace(p, slack_s=p.slack_s + 1.01 * error.extra_s)
    return p


def last_digits(p, a):
    """rho [K] that the last digits of the band are worth: much for a device that has hardly any
    share.

    These are the digits of the sum, and what the last digit of rho is worth to those for whom band
    is hardly of use.
    """
    steep = marginal_gain(p, a.share) / p.weight
    return 1e-12 + (DIGITS + 1e-15 * (1.0 / steep[steep > 0]).sum()) * steep


def splits(count, blocks):
    """All ways to hand at most `blocks` to `count` devices."""
    for cut in itertools.product(range(blocks + 1), repeat=count):
        if sum(cut) <= blocks:
            yield np.array(cut)
