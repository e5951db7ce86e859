"""The allocations of a run, planned again and certified.

The scenario is set up from scenario.yaml of the run's folder. A plan can be made again where the
method's demand does not depend on its state, which is recorded of the last round only.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from edgesim.engine.vectorised.round_loop import SteppedEnvironment
from edgesim.errors import EdgesimError, counted
from edgesim.hierarchy.make_hierarchy import Hierarchy
from edgesim.network.cell import Cell
from edgesim.runs.error_sentences import named_devices
from edgesim.runs.setup.make_setup import set_up
from edgesim.runs.setup.setup import Setup
from edgesim.scenario.cells.interference_schema import MEASURED
from edgesim.scenario.loader import load
from edgesim.verification.changed_packages import by_the_same_packages
from edgesim.verification.check_result import FAILED, PASSED, SKIPPED, CheckResult
from edgesim.verification.device_states import put_back
from edgesim.verification.finish_times import FINISH, check_finish
from edgesim.verification.recorded_rounds import (
    RecordedRound,
    jobs_overlap,
    outside_bounds,
    recorded_rounds,
    rounds_of_edge,
)
from fl.contracts import RoundPlan

if TYPE_CHECKING:
    import pandas as pd

ALLOCATIONS = "allocations"
NO_PLANS = "there are no plans to compare with"
CLOSE = 1e-9  # of shares and ratios


class StateNeededError(EdgesimError):
    """A demand depends on the method's state."""


class NoState:
    """Stands for a state that was not recorded; whatever is asked of it, it raises."""

    def __getattr__(self, name: str) -> NoReturn:
        raise StateNeededError(f"a demand reads the state ({name})")

    def __bool__(self) -> NoReturn:
        raise StateNeededError("a demand reads the state")


def check_planned_rounds(
    folder: Path,
    tables: dict[str, pd.DataFrame],
    data: str | None,
    allow_code: bool,
    facts: dict[str, Any] | None = None,
) -> list[CheckResult]:
    """The two checks.

    Args:
        folder: of a finished run.
        tables: of the run.
        data: folder of the data files; None: EDGESIM_DATA.
        allow_code: a method or solver of the user's own may run.
        facts: of the run's last state, where it is whole.
    """
    rounds = recorded_rounds(tables)
    if jobs_overlap(tables["device_rounds"]):
        reason = "jobs overlap, or begin at several instants of a round or version"
        return [CheckResult(name, SKIPPED, reason) for name in (ALLOCATIONS, FINISH)]
    if problem := outside_bounds(rounds):
        return [CheckResult(ALLOCATIONS, FAILED, problem)]
    try:
        setup = set_up(load(folder / "scenario.yaml"), data=data, allow_code=allow_code)
    except EdgesimError as error:
        cause = str(error).removeprefix(f"{folder}{os.sep}")  # alike in runs of one scenario
        reason = f"shares and ratios keep their bounds; not planned again: {cause}"
        return [CheckResult(ALLOCATIONS, SKIPPED, reason), CheckResult(FINISH, SKIPPED, NO_PLANS)]
    if setup.hierarchy:
        checks = check_edges(setup, setup.hierarchy, tables)
    else:
        planned, plans = check_allocations(setup, rounds)
        checks = [planned, check_finish(setup, rounds, plans)]
    return by_the_same_packages(setup, facts, checks)


def check_edges(
    setup: Setup, hierarchy: Hierarchy, tables: dict[str, pd.DataFrame]
) -> list[CheckResult]:
    """The two checks of every edge's rounds; the first that fails, or all together."""
    found: list[list[CheckResult]] = []
    for edge, own in zip(hierarchy.edges, setup.edges, strict=True):
        rounds = rounds_of_edge(edge, hierarchy.local_rounds, tables)
        planned, plans = check_allocations(own, rounds)
        found.append([planned, check_finish(own, rounds, plans)])
    return [together(checks, hierarchy) for checks in zip(*found, strict=True)]


def together(checks: Sequence[CheckResult], hierarchy: Hierarchy) -> CheckResult:
    """One check of several edges as one line, that of the edges with the worst outcome."""
    worst = min(checks, key=lambda each: (FAILED, SKIPPED, PASSED).index(each.outcome))
    details = [
        f"edge {edge.number}: {each.detail}"
        for edge, each in zip(hierarchy.edges, checks, strict=True)
        if each.outcome == worst.outcome
    ]
    return CheckResult(worst.name, worst.outcome, "; ".join(details))


def check_allocations(
    setup: Setup, rounds: list[RecordedRound]
) -> tuple[CheckResult, dict[int, RoundPlan]]:
    """Plan every round again, with its certificate; also the plans by round."""
    if setup.scenario.allocation.interference == MEASURED:
        reason = "plans count with measured interference, which is not recorded of every round"
        detail = f"shares and ratios keep their bounds; not planned again: {reason}"
        return CheckResult(ALLOCATIONS, SKIPPED, detail), {}
    plans: dict[int, RoundPlan] = {}
    worst = 0.0
    for each in rounds:
        if not len(each.rows):
            continue
        cell = cell_at(setup, each.start_s)
        put_back(cell, each.states)
        devices = each.rows["device"].to_numpy(int)
        try:
            view = cell.view(each.g)
            plan = cell.plan(setup.method.demand(NoState(), view, devices), view)  # type: ignore[arg-type]  # raises where it is read
        except StateNeededError as error:
            detail = f"shares and ratios keep their bounds; not planned again: {error}"
            return CheckResult(ALLOCATIONS, SKIPPED, detail), {}
        except EdgesimError as error:
            problem = f"round {each.g} cannot be planned again: {error}"
            return CheckResult(ALLOCATIONS, FAILED, problem), {}
        if problem := _difference(each, plan):
            return CheckResult(ALLOCATIONS, FAILED, f"round {each.g}: {problem}"), {}
        plans[each.g] = plan
        worst = max(worst, 0.0 if math.isnan(plan.residual) else plan.residual)
    detail = f"{counted(len(plans), 'round')} planned again, worst residual {worst:.1e}"
    return CheckResult(ALLOCATIONS, PASSED, detail), plans


def cell_at(setup: Setup, time_s: float) -> Cell:
    """The cell at a simulated time."""
    return setup.cell(SteppedEnvironment(initial_time=time_s))


def _difference(each: RecordedRound, plan: RoundPlan) -> str:
    """How the recorded allocation differs from the one planned again; "": not at all."""
    left_out = set(each.rows["device"][each.rows["status"] == "infeasible"].tolist())
    if differ := left_out ^ set(plan.infeasible):
        return f"left out in one of the plans: {named_devices(sorted(differ))}"
    grants = {grant.device: grant for grant in plan.grants}
    for row in each.rows[each.rows["status"] != "infeasible"].to_dict("records"):
        grant = grants[row["device"]]
        for name in ("share", "rho"):
            again = getattr(grant, name)
            if not abs(row[name] - again) <= CLOSE:
                return f"device {row['device']}: {name} is {row[name]}, and the plan gives {again}"
    return ""
