"""Solutions are accepted with a good certificate, and refused where one thing is a little off."""

from dataclasses import replace

import numpy as np
import pytest

from solvers import InvalidAllocationError, PruningProblem, UncertifiedError, allocate
from solvers.acceptance import (
    OPTIMALITY_TOLERANCE,
    accepted_solution,
    certified_solution,
    feasible_solution,
)
from solvers.certificate import certify

NOISE = {"fixed": None, "density": [3.0, 10.0, 30.0]}


def problem(noise, **more):
    return PruningProblem(1e6, 4e-3, 20e-3, [4e7, 6e7, 9e7], [1, 2, 1.5], snr=NOISE[noise], **more)


def spoilt(a, kind):
    """Share, rho and multiplier of an allocation with one thing wrong."""
    share, rho, price = a.share.copy(), a.rho.copy(), a.multiplier
    if kind == "moved":
        share += 1e-4 * (np.arange(3) - 1)
        share = np.abs(share)
        rho = a.problem.rho_at(share)
    elif kind == "price":
        price *= 1 + 1e-6
    elif kind == "idle":
        share *= 1 - 1e-6
        rho = a.problem.rho_at(share)
    elif kind == "late":
        rho -= 1e-6 * (rho > 0)
    elif kind == "lavish":
        rho += 1e-6 * (rho < 1)
    else:
        share *= 1 + 1e-6
    return share, rho, price


@pytest.mark.parametrize("kind", ["moved", "price", "idle", "late", "lavish", "overfull"])
@pytest.mark.parametrize("noise", NOISE)
def test_least_sum(noise, kind):
    a = allocate(problem(noise))
    assert certify(a.problem, a.share, a.rho, a.multiplier).residual < 1e-12
    with pytest.raises(UncertifiedError, match="duality gap"):
        certified_solution(a.problem, *spoilt(a, kind), "kkt")


@pytest.mark.parametrize("kind", ["overfull", "below", "above"])
def test_those_that_claim_feasibility_only(kind):
    p = problem("fixed", rho_min=0.1, rho_max=0.99)
    a = allocate(p, "equal")
    share = a.share * (1 + 1e-6) if kind == "overfull" else a.share
    rho = {"below": np.full(3, 0.05), "above": np.ones(3)}.get(kind, a.rho)
    with pytest.raises(InvalidAllocationError, match="breaks a bound"):
        feasible_solution(p, share, rho, float("nan"), "equal")


def test_devices_of_broken_bounds_can_be_named_by_other_numbers():
    """The sentence kept the indices of the problem; device 0 is pruned altogether."""
    a = allocate(problem("fixed"))
    with pytest.raises(UncertifiedError) as caught:
        certified_solution(a.problem, a.share / 2, a.rho, a.multiplier, "kkt")
    said = str(caught.value.of([0, 7, 8]).of(range(10, 20)))  # of an edge, and of all edges
    named = [part.split(" ")[0] for part in said.split("device ")[1:]]
    assert named == ["17", "18"] and said.count("s after its deadline") == 2


def test_nan_is_no_proof():
    a = allocate(problem("fixed"))
    for part in ("primal", "dual", "complementarity", "gap"):
        with pytest.raises(UncertifiedError):
            accepted_solution(
                a.problem,
                a.share,
                a.rho,
                a.multiplier,
                replace(a.certificate, **{part: np.nan}),
                "kkt",
            )
    with pytest.raises(
        UncertifiedError, match="duality gap -1e-06"
    ):  # better than what is possible
        accepted_solution(
            a.problem, a.share, a.rho, a.multiplier, replace(a.certificate, gap=-1e-6), "kkt"
        )


def test_the_tolerance_is_the_promised_one():
    assert OPTIMALITY_TOLERANCE == 1e-8
