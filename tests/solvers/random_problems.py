"""Random pruning problems with noise of a fixed power, for properties of solvers."""

import numpy as np
from hypothesis import strategies as st

from solvers import PruningProblem

FIELDS = ("bits", "compute_s", "slack_s", "rate_bps", "weight", "rho_min", "rho_max", "bits_fixed")


def changed(p, **new):
    return PruningProblem(**{name: new.get(name, getattr(p, name)) for name in FIELDS})


def instance(seed, count, floors, caps, fixed):
    """K devices over three decades of size and rate; some without computation, upload, fixed bits
    or time.
    """
    rng = np.random.default_rng(seed)
    some = lambda values: np.where(rng.random(count) < 0.2, 0.0, values)  # noqa: E731
    return PruningProblem(
        bits=some(10 ** rng.uniform(4, 7, count)),
        compute_s=some(10 ** rng.uniform(-5, -1.5, count)),
        slack_s=rng.uniform(-1e-3, 3e-2, count),
        rate_bps=10 ** rng.uniform(6, 9, count),
        weight=rng.uniform(0.2, 5, count),
        rho_min=rng.uniform(0, 0.3, count) * floors,
        rho_max=1 - rng.uniform(0, 0.6, count) * caps,
        bits_fixed=some(10 ** rng.uniform(1, 5, count)) * fixed,
    )


def problems(most=12):
    flag = st.booleans()
    return st.builds(instance, st.integers(0, 2**32 - 1), st.integers(1, most), flag, flag, flag)
