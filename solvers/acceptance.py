"""Solutions with their certificates, where these are good enough for what the method claims."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from solvers.arrays import Array
from solvers.bound_violations import (
    BrokenBound,
    broken_bounds,
    check_feasible,
    joined,
    violations,
)
from solvers.certificate import certify
from solvers.problem import FEASIBILITY_TOLERANCE, PruningProblem
from solvers.solution import Certificate, Solution, UncertifiedError

OPTIMALITY_TOLERANCE = 1e-8  # an answer that claims to be optimal must be this close, relative


def certified_solution(
    problem: PruningProblem,
    share: Array,
    rho: Array,
    multiplier: float,
    method: str,
    stationarity: float = OPTIMALITY_TOLERANCE,
) -> Solution:
    """The solution of least weighted pruning with its certificate; see `accepted_solution`."""
    proof = certify(problem, share, rho, multiplier)
    return accepted_solution(problem, share, rho, multiplier, proof, method, stationarity)


def accepted_solution(
    problem: PruningProblem,
    share: Array,
    rho: Array,
    multiplier: float,
    proof: Certificate,
    method: str,
    stationarity: float = OPTIMALITY_TOLERANCE,
    claims_gap: bool = True,
) -> Solution:
    """The solution, if its certificate is good.

    Args:
        problem: K devices.
        share: b [K].
        rho: pruned share [K].
        multiplier: lambda, of the band.
        proof: the certificate of these numbers.
        method: name of the method.
        stationarity: largest dual residual that is accepted.
        claims_gap: whether the duality gap is part of the claim.

    Raises:
        UncertifiedError: primal above 1e-9, complementarity or gap above 1e-8, or dual above
            `stationarity`.
    """
    gap = abs(proof.gap) if claims_gap else 0.0
    tight = gap <= OPTIMALITY_TOLERANCE and proof.complementarity <= OPTIMALITY_TOLERANCE
    # nan is no proof
    if not (proof.primal <= FEASIBILITY_TOLERANCE and tight and proof.dual <= stationarity):
        bounds: Iterable[BrokenBound] = ()
        if proof.broken:
            bounds = broken_bounds(problem, share, rho, problem.finish_s(share, rho))
        with np.errstate(all="ignore"):  # as in the certificate
            words, devices = joined(bounds)
        broken = f" ({words})" if words else ""
        raise UncertifiedError(
            f"The answer of {method} has residual {proof.residual:.2g} and duality gap "
            f"{proof.gap:.2g}, more than the allowed {OPTIMALITY_TOLERANCE:g}{broken}; check that "
            "the quantities are SI units of sensible size, or use another method.",
            devices,
        )
    return solution_of(problem, share, rho, multiplier, proof, method)


def feasible_solution(
    problem: PruningProblem, share: Array, rho: Array, multiplier: float, method: str
) -> Solution:
    """The solution of a method that claims no optimality; a device may be late.

    Raises:
        InvalidAllocationError: names the bound that is broken.
    """
    check_feasible(problem, share, rho, method)
    primal, broken = violations(problem, share, rho)
    nan, claim = float("nan"), "the bounds are kept; nothing about optimality"
    proof = Certificate(primal, nan, primal, nan, nan, broken, claim)
    return solution_of(problem, share, rho, multiplier, proof, method)


def compared_solution(
    problem: PruningProblem, share: Array, rho: Array, multiplier: float, method: str
) -> Solution:
    """The solution with its full certificate, good or not: for comparison only."""
    proof = certify(problem, share, rho, multiplier)
    proof = replace(proof, claim="nothing; for comparison only")
    return solution_of(problem, share, rho, multiplier, proof, method)


def solution_of(
    problem: PruningProblem,
    share: Array,
    rho: Array,
    multiplier: float,
    proof: Certificate,
    method: str,
) -> Solution:
    """The solution, with the objective sum w rho and the devices that are left out."""
    left_out = () if problem.all_active else tuple(np.flatnonzero(~problem.feasible).tolist())
    objective = problem.objective(rho)
    return Solution(share, rho, float(multiplier), proof, left_out, method, objective, problem)
