"""Which bounds an answer breaks, by how much, and in words.

The bounds are the deadlines in seconds, the band, and those of share and rho. A bound that is
exceeded by no more than `FEASIBILITY_TOLERANCE`, relative to it, counts as kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from solvers.arrays import Array
from solvers.problem import FEASIBILITY_TOLERANCE, PruningProblem
from solvers.solution import InvalidAllocationError

NAMED = 8  # broken bounds of each kind that are spelt out
BrokenBound = tuple[str, tuple[int, ...]]  # words, with {} for each device, and their indices


def check_feasible(
    problem: PruningProblem, share: Array, rho: Array, method: str = "the allocator"
) -> None:
    """Raise InvalidAllocationError unless share [K] and rho [K] are finite and keep the bounds."""
    for name, values in (("shares", share), ("pruning ratios", rho)):
        if np.shape(values) != (problem.num_devices,):
            raise InvalidAllocationError(
                f"{method} returned {name} of shape {np.shape(values)}; "
                f"give one number for each of the {problem.num_devices} devices."
            )
        if not np.isfinite(values).all():
            k = int(np.argmin(np.isfinite(values)))
            raise InvalidAllocationError(
                f"{method} returned {name} with {values[k]} for device {{}}; give finite numbers.",
                (k,),
            )
    if violations(problem, share, rho)[1]:
        words, devices = joined(broken_bounds(problem, share, rho))
        raise InvalidAllocationError(
            f"{method} returned an allocation that breaks a bound: {words}.", devices
        )


def violations(
    problem: PruningProblem, share: Array, rho: Array, finish_s: Array | None = None
) -> tuple[float, tuple[str, ...]]:
    """Worst relative violation of a bound, and all of them in words.

    Args:
        problem: K devices.
        share: b [K].
        rho: pruned share [K].
        finish_s: time used of the slack [K], s; None: deadlines are no bounds.
    """
    worst = (
        float(share.sum()) - 1.0,
        -float(share.min()),
        float(share.max()) - 1.0,
        0.0 if finish_s is None else float(_lateness(problem, finish_s).max()),
        -float((rho - problem.rho_min).min()),
        float((rho - problem.rho_max).max()),
    )
    if all(excess <= FEASIBILITY_TOLERANCE for excess in worst):
        return max(0.0, *worst), ()
    broken = in_words(broken_bounds(problem, share, rho, finish_s))
    return float(np.nanmax([0.0, *worst])), tuple(broken)


def _lateness(problem: PruningProblem, finish_s: Array) -> Array:
    """What is late, relative to the slack [K]; 0 for those that are left out."""
    if problem.all_active:
        return finish_s / problem.slack_s - 1.0
    time_s = np.maximum(np.where(problem.feasible, problem.slack_s, 1.0), 1e-300)
    return np.where(problem.feasible, (finish_s - problem.slack_s) / time_s, 0.0)


def broken_bounds(
    problem: PruningProblem, share: Array, rho: Array, finish_s: Array | None = None
) -> Iterator[BrokenBound]:
    """Every broken bound; arguments as `violations`."""
    kinds = [
        (-share, share, "has share {:.4g}, below 0"),
        (share - 1.0, share, "has share {:.4g}, above 1"),
        (problem.rho_min - rho, rho, "has rho {:.4g}, below rho_min"),
        (rho - problem.rho_max, rho, "has rho {:.4g}, above rho_max"),
    ]
    if finish_s is not None:
        over_s, words = finish_s - problem.slack_s, "finishes {:.4g} s after its deadline"
        kinds.insert(0, (_lateness(problem, finish_s), over_s, words))
    if not share.sum() <= 1.0 + FEASIBILITY_TOLERANCE:
        yield f"the shares add up to {share.sum():.10g}, above 1", ()
    for excess, values, words in kinds:
        yield from broken_devices(excess, values, words)


def broken_devices(excess: Array, values: Array, words: str) -> Iterator[BrokenBound]:
    """One for each device whose excess [K] is beyond the tolerance, up to a few."""
    devices = np.flatnonzero(~(excess <= FEASIBILITY_TOLERANCE)).tolist()
    yield from (("device {} " + words.format(values[k]), (k,)) for k in devices[:NAMED])
    if len(devices) > NAMED:
        yield f"and so on for {len(devices) - NAMED} more devices", ()


def joined(broken: Iterable[BrokenBound]) -> BrokenBound:
    """Broken bounds as one, with the devices of all."""
    bounds = list(broken)
    return "; ".join(words for words, _ in bounds), tuple(k for _, ks in bounds for k in ks)


def in_words(broken: Iterable[BrokenBound]) -> Iterator[str]:
    """Broken bounds with the indices of the devices."""
    return (words.replace("{}", str(*devices)) for words, devices in broken)
