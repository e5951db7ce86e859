"""`allocate`: band shares and pruning ratios of one round, by the method of a given name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from solvers.acceptance import feasible_solution
from solvers.allocators.alpha_fair import alpha_fair
from solvers.allocators.discrete_levels import levels
from solvers.allocators.equal import equal
from solvers.allocators.fair import fair
from solvers.allocators.kkt import kkt
from solvers.allocators.min_max_latency import latency
from solvers.allocators.paper_formula import printed
from solvers.allocators.proportional import proportional
from solvers.analysis.explanation import explain
from solvers.analysis.sensitivity import Sensitivity, is_differentiable, sensitivity
from solvers.arrays import Array, numbers
from solvers.cvxpy_reference.latency_and_energy_methods import convex_energy, convex_latency
from solvers.cvxpy_reference.pruning_methods import convex, convex_alpha_fair, convex_fair
from solvers.min_energy.allocator import energy
from solvers.problem import FEASIBILITY_TOLERANCE, PruningProblem
from solvers.problem_checks import range_error
from solvers.resource_blocks.kkt_blocks import kkt_blocks
from solvers.resource_blocks.min_max_blocks import fair_blocks, latency_blocks
from solvers.solution import InvalidAllocationError, Solution

METHODS: dict[str, Callable[[PruningProblem], Solution]] = {
    "kkt": kkt,
    "fair": fair,
    "alpha-fair": alpha_fair,
    "latency": latency,
    "energy": energy,
    "levels": levels,
    "equal": equal,
    "proportional": proportional,
    "printed": printed,
    "convex": convex,
    "convex-fair": convex_fair,
    "convex-alpha-fair": convex_alpha_fair,
    "convex-latency": convex_latency,
    "convex-energy": convex_energy,
}

IN_BLOCKS: dict[str, Callable[[PruningProblem, int], Solution]] = {
    "kkt": kkt_blocks,
    "fair": fair_blocks,
    "latency": latency_blocks,
}

ABOUT = {
    "kkt": ("least total pruning, exact and certified", "Liu, eqs. (54), (58), with all bounds"),
    "fair": ("least pruning of the most pruned device, ties by the sum", "beside Liu, Remark 3"),
    "alpha-fair": (
        "between kkt (alpha 0) and fair (alpha inf): the largest sum of U(1 - rho)",
        "Mo and Walrand, IEEE/ACM ToN 2000",
    ),
    "latency": ("the last device is back earliest, at the least pruning", "Liu, eqs. (28), (29)"),
    "energy": (
        "least joules within the threshold, over band, clock and power",
        "Yang et al., IEEE TWC 2021",
    ),
    "levels": (
        "least total pruning to allowed levels, with the distance to a bound",
        "multiple-choice knapsack, HiGHS",
    ),
    "equal": (
        "equal shares, least pruning that meets the threshold",
        "Liu, Section V, equal resource",
    ),
    "proportional": (
        "shares in proportion to the bits to send, least pruning that is in time",
        "a baseline of this project",
    ),
    "convex": (
        "the same problem as kkt by cvxpy and Clarabel: the reference",
        "Liu, eqs. (43)-(47)",
    ),
    "convex-fair": ("the same problem as fair by cvxpy and Clarabel", "beside Liu, Remark 3"),
    "convex-alpha-fair": (
        "the same problem as alpha-fair by cvxpy and Clarabel",
        "Mo and Walrand, IEEE/ACM ToN 2000",
    ),
    "convex-latency": ("the same problem as latency by cvxpy and Clarabel", "Liu, eqs. (28), (29)"),
    "convex-energy": (
        "the same problem as energy by cvxpy and Clarabel",
        "Yang et al., IEEE TWC 2021",
    ),
}  # name -> (one line, source); `printed` is for comparison in Python and not for runs

WITH_LAWS = ("kkt", "equal", "proportional")  # methods for other rates than Shannon's
KNOWN_TO_FEW = {"full_power_share": "power control", "law": "law of link adaptation"}
WITH_ALPHA: dict[str, Callable[..., Solution]] = {
    "alpha-fair": alpha_fair,
    "convex-alpha-fair": convex_alpha_fair,
}
WITHOUT_DEADLINE = frozenset({"equal", "proportional", "latency", "convex-latency"})


@dataclass(frozen=True, eq=False, repr=False)
class Allocation(Solution):
    """A `Solution` that can be explained and differentiated: what `allocate` returns."""

    def explain(self) -> str:
        """Which constraint binds for which device; see `solvers.analysis.explanation`."""
        return explain(self)

    @property
    def is_differentiable(self) -> bool:
        """Whether `sensitivity` knows the slopes of this answer."""
        return is_differentiable(self)

    def sensitivity(self, bandwidth_hz: float = float("nan")) -> Sensitivity:
        """What a little more band or time is worth; see `solvers.analysis.sensitivity`."""
        return sensitivity(self, bandwidth_hz)


def allocate(
    problem: PruningProblem,
    method: str | Callable[[PruningProblem], Any] = "kkt",
    blocks: int | None = None,
    alpha: float | None = None,
) -> Allocation:
    """Band shares and pruning ratios of least total pruning within the latency budget.

    Minimise sum_k w_k rho_k subject to sum_k b_k <= 1 and the deadlines: Liu, eqs. (47), (53),
    with the bounds that (54) leaves out.

    Args:
        problem: K devices; bits [K], compute_s [K], slack_s [K], rate_bps [K] and bounds, see
            `PruningProblem`.
        method: `kkt` (exact, fast), `fair` (the most pruned device is pruned least), `latency`
            (the last is back earliest), `energy` (least joules), `levels` (rho one of given
            levels), `equal` (equal shares), `proportional` (shares by the bits to send),
            `alpha-fair` (between kkt and fair, by alpha), `printed` (the paper's formula,
            unclipped, for comparison only), `convex`, `convex-fair`, `convex-alpha-fair`,
            `convex-latency`, `convex-energy` (cvxpy, the reference); or a function
            of the problem that returns (share, rho) or an Allocation. The answer of a function
            must keep the bounds, but a device may finish late.
        blocks: N; every share is a whole number of resource blocks of 1 / N. None: shares of any
            size.
        alpha: of `alpha-fair`, at least 0, or inf; None: 1.

    Returns:
        Allocation with share b [K] in [0, 1], rho [K] in [rho_min, rho_max], the multiplier and
        a Certificate.

    Raises:
        InfeasibleError: the least shares do not fit into the band; says how much more time would
            be enough.
        UncertifiedError: the answer is off by more than 1e-8 (of `convex-energy` 1e-4).
        InvalidAllocationError: the answer of a function breaks a bound.
        ValueError: no such method, one that does not apply to this problem, or numbers that leave
            the range of doubles.

    Example:
        >>> problem = PruningProblem(bits=1e6, compute_s=4e-3, slack_s=20e-3, rate_bps=[4e7, 6e7])
        >>> a = allocate(problem)
        >>> a.share.round(4), a.rho.round(4)
        (array([0.035, 0.965]), array([0.9722, 0.0598]))
    """
    if not isinstance(problem, PruningProblem):
        raise ValueError(f"problem is {problem!r:.60}; give a PruningProblem.")
    if callable(method):
        for name, value in (("blocks", blocks), ("alpha", alpha)):
            if value is not None:
                raise ValueError(
                    f"{name} is for the methods by name; a function decides itself what it hands "
                    "out."
                )
        return Allocation(**vars(_checked(problem, method)))
    if not isinstance(method, str) or method not in METHODS:
        names = ", ".join(METHODS)
        raise ValueError(
            f"There is no allocation method {method!r}; choose {names} or pass a function."
        )
    for name, what in KNOWN_TO_FEW.items():
        known = method in WITH_LAWS and blocks is None
        if getattr(problem, name) is not None and not known:
            raise ValueError(
                f"{method} knows no {what}; leave {name} away, or take {', '.join(WITH_LAWS)} in "
                "shares of any size."
            )
    if blocks is not None and method not in IN_BLOCKS:
        names = ", ".join(IN_BLOCKS)
        raise ValueError(
            f"{method} does not know whole blocks; leave blocks away or choose {names}."
        )
    if alpha is not None and method not in WITH_ALPHA:
        names = ", ".join(WITH_ALPHA)
        raise ValueError(f"{method} reads no alpha; leave alpha away or choose {names}.")
    try:
        # what is not finite is refused, by a certificate at the latest
        with np.errstate(all="ignore"):
            if blocks is not None:
                found = IN_BLOCKS[method](problem, blocks)
            elif alpha is not None:
                found = WITH_ALPHA[method](problem, alpha)
            else:
                found = METHODS[method](problem)
    except ArithmeticError as error:
        raise range_error(method, problem) from error
    return Allocation(**vars(found))


def _checked(problem: PruningProblem, function: Callable[[PruningProblem], Any]) -> Solution:
    """The answer of a user's own allocator, where it keeps the bounds."""
    name = getattr(function, "__name__", type(function).__name__)
    answer = function(problem)
    if isinstance(answer, Solution):
        share, rho, multiplier = answer.share, answer.rho, answer.multiplier
        cpu_hz, power_w = answer.cpu_hz, answer.power_w
    elif isinstance(answer, tuple) and len(answer) == 2:
        share, rho = answer
        multiplier, cpu_hz, power_w = float("nan"), None, None
    else:
        raise InvalidAllocationError(
            f"{name} returned {type(answer).__name__}; return (share, rho) or an Allocation."
        )
    if np.iscomplexobj(share) or np.iscomplexobj(rho):
        raise InvalidAllocationError(
            f"{name} returned complex shares or ratios; give real numbers."
        )
    try:
        share, rho = np.asarray(share, dtype=float), np.asarray(rho, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidAllocationError(
            f"{name} returned shares or ratios that are not numbers."
        ) from None
    return replace(
        feasible_solution(problem, share, rho, multiplier, name),
        cpu_hz=_chosen(problem, cpu_hz, "cpu_hz", name),
        power_w=_chosen(problem, power_w, "power_w", name),
    )


def _chosen(problem: PruningProblem, values: Any, kind: str, name: str) -> Array | None:
    """Clocks or powers [K] of a user's own allocator; None where it chooses none."""
    if values is None:
        return None
    try:
        chosen = numbers(kind, values)
    except ValueError:  # text, or complex numbers
        chosen = np.array(np.nan)
    is_clock = kind == "cpu_hz"  # of 0 Hz no work ends; who sends nothing has no power
    good = np.isfinite(chosen) & ((chosen > 0) if is_clock else (chosen >= 0))
    if chosen.shape != (problem.num_devices,) or not good.all():
        raise InvalidAllocationError(
            f"{name} returned {kind} {values!r:.60}; give {problem.num_devices} finite numbers "
            f"{'above 0' if is_clock else 'that are not negative'}."
        )
    if problem.energy is not None:
        terms = problem.energy.spread(problem.num_devices)
        most = terms.f_max_hz if is_clock else terms.p_max_w
        above = chosen > most * (1.0 + FEASIBILITY_TOLERANCE)
        if above.any():
            k = int(np.argmax(above))
            raise InvalidAllocationError(
                f"{name} returned {kind} with {chosen[k]:g} for device {{}}, above its "
                f"{most[k]:g}.",
                (k,),
            )
    return chosen
