"""Allocations where the latency threshold may be too short: it is stretched, or refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fl.contracts import Array
from solvers import Allocation, InfeasibleError, PruningProblem
from solvers.deadline_feasibility import seconds_rounded_up


def allocate(
    allocator: Callable[[PruningProblem], Allocation],
    problem: PruningProblem,
    budget_s: float,
    when_infeasible: str,
    before_s: float,
    least_extra_s: float = 0.0,
) -> tuple[Allocation, float]:
    """(solution, time beyond T_th that it was stretched by, at least the given one, s).

    Args:
        allocator: solves the problem.
        problem: its slack is that of the threshold and ``before_s``.
        budget_s: T_th, s.
        when_infeasible: stretch, or stop.
        before_s: by which the threshold is stretched in the problem, s.
        least_extra_s: by which it is stretched at least, s.

    Raises:
        solvers.InfeasibleError: no threshold would do, or it may not be stretched.
    """
    if least_extra_s > before_s:
        wider_s = least_extra_s - before_s
        problem, before_s = replace(problem, slack_s=problem.slack_s + wider_s), least_extra_s
    try:
        return allocator(problem), least_extra_s
    except InfeasibleError as short:
        if math.isinf(short.extra_s):
            raise  # no threshold would do, such as with fewer resource blocks than devices
        extra_s = before_s + short.extra_s
        if when_infeasible == "stop":
            missing = seconds_rounded_up(extra_s)
            message = f"the threshold of {budget_s:g} s is {missing} s too short"
            raise InfeasibleError(
                message if before_s else short.sentence, short.devices, extra_s
            ) from short
        stretched = replace(problem, slack_s=problem.slack_s + short.extra_s)
        return allocator(stretched), extra_s


def refuse_late(
    problem: PruningProblem, answer: Allocation, devices: Array, before_s: float, budget_s: float
) -> None:
    """Raise InfeasibleError for a late plan of a solver without deadline, such as equal.

    Args:
        problem: of K devices.
        answer: its solution.
        devices: their numbers, int [K].
        before_s: by which the threshold is stretched in the problem, s.
        budget_s: T_th, s.
    """
    over_s = problem.finish_s(answer.share, answer.rho) - (problem.slack_s - before_s)
    late = np.flatnonzero(over_s > 1e-6 * budget_s)
    if late.size:
        worst_s = float(over_s.max())
        message = (
            f"device{'s' * (late.size > 1)} {{}} would be up to {worst_s:.6g} s later "
            f"than the threshold of {budget_s:g} s"
        )
        raise InfeasibleError(message, tuple(devices[late].tolist()), worst_s)
