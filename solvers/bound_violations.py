"""Which bounds an answer breaks, by how much, and in words: the deadline in seconds, the band, the bounds of b and rho.

A bound that is exceeded by no more than `ALLOWED`, relative to it, counts as kept: here and in every certificate.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from solvers.problem import ALLOWED, Array, PruningProblem
from solvers.solution import InvalidAllocationError

NAMED = 8  # broken bounds that are spelt out, of each kind


def check_feasible(
    problem: PruningProblem, share: Array, rho: Array, method: str = "the allocator"
) -> None:
    """Raise InvalidAllocationError unless share [K] and rho [K] are finite, in their bounds, and fit into the band."""
    for name, values in (("shares", share), ("pruning ratios", rho)):
        if np.shape(values) != (problem.num_devices,):
            raise InvalidAllocationError(
                f"{method} returned {name} of shape {np.shape(values)}; "
                f"give one number for each of the {problem.num_devices} devices."
            )
        if not np.isfinite(values).all():
            k = int(np.argmin(np.isfinite(values)))
            raise InvalidAllocationError(
                f"{method} returned {name} with {values[k]} for device {k}; give finite numbers."
            )
    _, broken = violations(problem, share, rho)
    if broken:
        raise InvalidAllocationError(
            f"{method} returned an allocation that breaks a bound: {'; '.join(broken)}."
        )


def violations(
    problem: PruningProblem, share: Array, rho: Array, finish_s: Array | None = None
) -> tuple[float, tuple[str, ...]]:
    """Worst relative violation of a bound, and all of them in words. finish_s [K]: checked against slack_s, s."""
    return judged(problem, share, rho, finish_s, float(share.sum()), rho - problem.rho_min)


def judged(
    problem: PruningProblem,
    share: Array,
    rho: Array,
    finish_s: Array | None,
    used: float,
    above: Array,
) -> tuple[float, tuple[str, ...]]:
    """The same, knowing the sum of the shares and what rho is above rho_min [K]."""
    late = 0.0 if finish_s is None else _latest(problem, finish_s)
    worst = (
        used - 1.0, -float(share.min()), float(share.max()) - 1.0, late,
        -float(above.min()), float((rho - problem.rho_max).max()),
    )  # fmt: skip
    if all(excess <= ALLOWED for excess in worst):
        return max(0.0, *worst), ()
    return float(np.nanmax([0.0, *worst])), tuple(_broken(problem, share, rho, finish_s))


def _latest(problem: PruningProblem, finish_s: Array) -> float:
    """The worst of what is late, relative to the slack."""
    if problem.usual:
        return float((finish_s / problem.slack_s).max()) - 1.0
    return float(_late(problem, finish_s).max())


def _late(problem: PruningProblem, finish_s: Array) -> Array:
    """What is late, relative to the slack [K]; 0 for those that are left out."""
    time_s = np.maximum(np.where(problem.feasible, problem.slack_s, 1.0), 1e-300)
    return np.where(problem.feasible, (finish_s - problem.slack_s) / time_s, 0.0)


def _broken(
    problem: PruningProblem, share: Array, rho: Array, finish_s: Array | None
) -> Iterator[str]:
    """Every broken bound in words."""
    kinds = [
        (-share, share, "has share {:.4g}, below 0"),
        (share - 1.0, share, "has share {:.4g}, above 1"),
        (problem.rho_min - rho, rho, "has rho {:.4g}, below rho_min"),
        (rho - problem.rho_max, rho, "has rho {:.4g}, above rho_max"),
    ]
    if finish_s is not None:
        kinds.insert(
            0,
            (
                _late(problem, finish_s),
                finish_s - problem.slack_s,
                "finishes {:.4g} s after its deadline",
            ),
        )
    if not share.sum() <= 1.0 + ALLOWED:
        yield f"the shares add up to {share.sum():.10g}, above 1"
    for excess, values, words in kinds:
        devices = np.flatnonzero(~(excess <= ALLOWED))
        yield from (f"device {k} " + words.format(values[k]) for k in devices[:NAMED])
        if len(devices) > NAMED:
            yield f"and so on for {len(devices) - NAMED} more devices"
