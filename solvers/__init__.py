"""Who gets which share of the band and prunes how much: `allocate(PruningProblem(...))`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from solvers.allocation import Allocation, Certificate, Infeasible, InvalidAllocation, Uncertified
from solvers.allocators.equal import equal
from solvers.allocators.fair import fair
from solvers.allocators.kkt import kkt
from solvers.allocators.min_max_latency import latency
from solvers.allocators.paper_formula import printed
from solvers.allocators.proportional import proportional
from solvers.certificate import feasible
from solvers.cvxpy_reference.convex import convex, convex_fair, convex_latency
from solvers.cvxpy_reference.energy import convex_energy
from solvers.min_energy.allocator import energy
from solvers.min_energy.energy_terms import EnergyTerms
from solvers.problem import PruningProblem
from solvers.problem_checks import extreme
from solvers.resource_blocks.kkt_blocks import kkt_blocks
from solvers.resource_blocks.min_max_blocks import fair_blocks, latency_blocks
from solvers.resource_blocks.pruning_levels import levels

METHODS = {
    "kkt": kkt,
    "fair": fair,
    "latency": latency,
    "energy": energy,
    "levels": levels,
    "equal": equal,
    "proportional": proportional,
    "printed": printed,
    "convex": convex,
    "convex-fair": convex_fair,
    "convex-latency": convex_latency,
    "convex-energy": convex_energy,
}

IN_BLOCKS = {
    "kkt": kkt_blocks,
    "fair": fair_blocks,
    "latency": latency_blocks,
}  # (problem, blocks) -> Allocation

ABOUT = {
    "kkt": ("least total pruning, exact and certified", "Liu, eqs. (54), (58), with all bounds"),
    "fair": (
        "least pruning of the most pruned device, ties by the sum",
        "ours, beside Liu, Remark 3",
    ),
    "latency": ("the last device is back earliest, at the least pruning", "Liu, eqs. (28), (29)"),
    "energy": (
        "least joules within the threshold, over band, clock and power",
        "Yang et al., IEEE TWC 2021",
    ),
    "levels": (
        "least total pruning to allowed levels; says how near the best",
        "multiple-choice knapsack, HiGHS",
    ),
    "equal": (
        "equal shares, least pruning that meets the threshold",
        "Liu, Section V, equal resource",
    ),
    "proportional": (
        "shares in proportion to the bits to send, least pruning that is in time",
        "ours, a baseline",
    ),
    "printed": (
        "the paper's formula without bounds; for comparison, not for runs",
        "Liu, eqs. (54), (58)",
    ),
    "convex": (
        "the same problem as kkt by cvxpy and Clarabel: the reference",
        "Liu, eqs. (43)-(47)",
    ),
    "convex-fair": ("the same problem as fair by cvxpy and Clarabel", "ours, beside Liu, Remark 3"),
    "convex-latency": ("the same problem as latency by cvxpy and Clarabel", "Liu, eqs. (28), (29)"),
    "convex-energy": (
        "the same problem as energy by cvxpy and Clarabel",
        "Yang et al., IEEE TWC 2021",
    ),
}  # name -> (one line, source)

__all__ = [
    "ABOUT",
    "IN_BLOCKS",
    "METHODS",
    "Allocation",
    "Certificate",
    "EnergyTerms",
    "Infeasible",
    "InvalidAllocation",
    "PruningProblem",
    "Uncertified",
    "allocate",
]


def allocate(
    problem: PruningProblem, method: str | Callable = "kkt", blocks: int | None = None
) -> Allocation:
    """Band shares and pruning ratios of least total pruning within the latency budget.

    Minimise sum_k w_k rho_k subject to sum_k b_k <= 1 and the deadlines: Liu, eqs. (47), (53), with the bounds that
    (54) leaves out.

    Args:
        problem: K devices; bits [K], compute_s [K], slack_s [K], rate_bps [K] and bounds, see `PruningProblem`.
        method: `kkt` (exact, fast), `fair` (the most pruned device is pruned least), `latency` (the last is back
            earliest), `energy` (least joules), `levels` (rho one of given levels), `equal` (equal shares),
            `proportional` (shares by the bits to send), `printed` (the paper's formula, unclipped, for comparison
            only), `convex`, `convex-fair`, `convex-latency`, `convex-energy` (cvxpy, the reference); or a function of
            the problem that returns (share, rho) or an Allocation; its answer must keep the bounds, a device may
            finish late.
        blocks: N; every share is a whole number of resource blocks of 1 / N. None: shares of any size.
    Returns:
        Allocation with share b [K] in [0, 1], rho [K] in [rho_min, rho_max], the multiplier, a Certificate.
    Raises:
        Infeasible: the least shares do not fit into the band; says how much more time would do.
        Uncertified: the answer is off by more than 1e-8 (of `convex-energy` 1e-4).
        InvalidAllocation: a function broke a bound.
        ValueError: no such method, one that does not apply to this problem, or numbers that leave the range of doubles.
    Example:
        >>> a = allocate(PruningProblem(bits=1e6, compute_s=4e-3, slack_s=20e-3, rate_bps=[4e7, 6e7]))
        >>> a.share.round(4), a.rho.round(4)
        (array([0.035, 0.965]), array([0.9722, 0.0598]))
    """
    if not isinstance(problem, PruningProblem):
        raise ValueError(f"problem is {problem!r:.60}; give a PruningProblem.")
    if callable(method) and blocks is None:
        return _checked(problem, method)
    if callable(method):
        raise ValueError(
            "blocks is for the methods by name; a function decides itself what it hands out."
        )
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(
            f"There is no allocation method {method!r}; choose {', '.join(METHODS)} or pass a function."
        )
    if blocks is not None and method not in IN_BLOCKS:
        raise ValueError(
            f"{method} does not know whole blocks; leave blocks away or choose {', '.join(IN_BLOCKS)}."
        )
    try:
        with np.errstate(
            all="ignore"
        ):  # what is not finite is refused, by a certificate at the latest
            return (
                METHODS[method](problem) if blocks is None else IN_BLOCKS[method](problem, blocks)
            )
    except ArithmeticError as error:
        raise extreme(method, problem) from error


def _checked(problem: PruningProblem, function: Callable) -> Allocation:
    """Run a user's own allocator and check what it returns."""
    name = getattr(function, "__name__", type(function).__name__)
    answer = function(problem)
    multiplier, chosen = float("nan"), {}
    if isinstance(answer, Allocation):
        share, rho, multiplier = answer.share, answer.rho, answer.multiplier
        chosen = {
            kind: _chosen(problem, getattr(answer, kind), kind, name)
            for kind in ("cpu_hz", "power_w")
        }
    elif isinstance(answer, tuple) and len(answer) == 2:
        share, rho = answer
    else:
        raise InvalidAllocation(
            f"{name} returned {type(answer).__name__}; return (share, rho) or an Allocation."
        )
    if np.iscomplexobj(share) or np.iscomplexobj(rho):
        raise InvalidAllocation(f"{name} returned complex shares or ratios; give real numbers.")
    try:
        share, rho = np.asarray(share, dtype=float), np.asarray(rho, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidAllocation(f"{name} returned shares or ratios that are not numbers.") from None
    return replace(feasible(problem, share, rho, multiplier, name), **chosen)


def _chosen(problem: PruningProblem, values, kind: str, name: str) -> np.ndarray | None:
    """Clocks or powers [K] of a user's own allocator; None where it chooses none."""
    if values is None:
        return None
    values = np.asarray(values, dtype=float)
    if values.shape != (problem.num_devices,) or not (np.isfinite(values) & (values >= 0)).all():
        raise InvalidAllocation(
            f"{name} returned {kind} {values!r:.60}; give {problem.num_devices} finite numbers that are not negative."
        )
    return values
