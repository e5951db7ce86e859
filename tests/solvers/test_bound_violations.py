"""Broken bounds in the errors about a user's own allocator."""

import numpy as np
import pytest

from solvers import InvalidAllocationError, PruningProblem
from solvers.bound_violations import check_feasible


def test_broken_bounds_of_several_devices_keep_their_order_under_other_numbers():
    p = PruningProblem(bits=1e6, compute_s=0.0, slack_s=1.0, rate_bps=[4e7, 5e7, 6e7], rho_max=0.9)
    with pytest.raises(InvalidAllocationError) as caught:
        check_feasible(p, np.array([-0.1, 0.5, 0.2]), np.array([0.0, 0.0, 1.0]), "mine")
    begin = "mine returned an allocation that breaks a bound: "
    assert str(caught.value) == (
        f"{begin}device 0 has share -0.1, below 0; device 2 has rho 1, above rho_max."
    )
    in_a_cell = caught.value.of([0, 7, 8])  # of an edge, whose devices have numbers of their own
    assert str(in_a_cell.of(range(10, 20))) == (
        f"{begin}device 10 (index 0 of its arrays) has share -0.1, below 0; "
        "device 18 (index 2 of its arrays) has rho 1, above rho_max."
    )
