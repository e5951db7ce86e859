"""The solver that a scenario names, as a function of a pruning problem."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

import solvers
from edgesim.errors import ScenarioKeyError
from edgesim.extensions.entry_points import added_names, find_function, more_names
from edgesim.network.planning.planner import Allocator
from edgesim.scenario.allocation.allocation_schema import AllocationSection
from edgesim.scenario.loader import Scenario
from fl.errors import did_you_mean
from solvers import PruningProblem, allocate

SOLVER = ("allocation", "solver")
RUN_SOLVERS = tuple(name for name in solvers.METHODS if name != "printed")  # printed breaks bounds


def make_allocator(scenario: Scenario, allow_code: bool) -> Allocator:
    """The solver that the scenario names, as a function of a pruning problem.

    Args:
        scenario: the checked scenario.
        allow_code: the solver may be the user's own, ``./file.py:name``.

    Raises:
        ScenarioKeyError: there is no such solver, or it does not take what the scenario gives.
    """
    section = scenario.allocation
    name = section.solver
    check_options(section)
    solver = find_function("solvers", scenario, name, SOLVER, allow_code, "a problem")
    if solver is not None:
        return partial(allocate, method=solver)
    if name == "printed":
        problem = "is printed, which breaks its bounds and is for comparison only; use kkt"
        raise ScenarioKeyError(SOLVER, problem)
    if name not in RUN_SOLVERS:
        allowed = f"{', '.join(RUN_SOLVERS)} or ./file.py:function{more_names('solvers')}"
        near = did_you_mean(name, [*RUN_SOLVERS, *added_names("solvers")])
        problem = f"is {name}; allowed are {allowed}{near}"
        raise ScenarioKeyError(SOLVER, problem)
    if scenario.budget.latency_threshold_s is None and name not in solvers.WITHOUT_DEADLINE:
        free = ", ".join(sorted(solvers.WITHOUT_DEADLINE))
        problem = f"is {name}, which needs budget.latency_threshold; give one, or use one of {free}"
        raise ScenarioKeyError(SOLVER, problem)
    if section.levels is not None:
        return partial(allocate_levels, levels=section.levels)
    return partial(allocate, method=name, blocks=section.resource_blocks, alpha=section.alpha)


def check_options(section: AllocationSection) -> None:
    """Refuse resource blocks and levels where the solver does not take them."""
    solver, blocks = section.solver, section.resource_blocks
    if blocks is not None and solver not in solvers.IN_BLOCKS:
        takes = ", ".join(solvers.IN_BLOCKS)
        problem = f"is {blocks}, which the solver {solver} does not take; remove it, or use {takes}"
        raise ScenarioKeyError(("allocation", "resource_blocks"), problem)
    if section.alpha is not None and solver not in solvers.WITH_ALPHA:
        takes = ", ".join(solvers.WITH_ALPHA)
        problem = f"is not read by the solver {solver}; remove it, or use {takes}"
        raise ScenarioKeyError(("allocation", "alpha"), problem)
    if section.levels is not None and solver != "levels":
        problem = f"is not read by the solver {solver}; remove it, or use levels"
        raise ScenarioKeyError(("allocation", "levels"), problem)
    if section.levels is None and solver == "levels":
        problem = "is levels, which needs allocation.levels; write for instance levels: [0, 0.5]"
        raise ScenarioKeyError(SOLVER, problem)


def allocate_levels(problem: PruningProblem, levels: tuple[float, ...]) -> solvers.Allocation:
    """Solve a pruning problem whose ratios are among the levels.

    Raises:
        ScenarioKeyError: a device has no level within the bounds that its method sets.
    """
    try:
        problem = replace(problem, levels=np.array(levels))
    except ValueError as error:
        reason = str(error).rstrip(".")
        raise ScenarioKeyError(("allocation", "levels"), f"cannot be used: {reason}") from error
    return allocate(problem, method="levels")
