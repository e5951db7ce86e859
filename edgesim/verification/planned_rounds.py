"""The allocations of a run, planned again and certified, and its finish times against Liu (28).

The scenario is set up from scenario.yaml of the run's folder. A plan can be made again where the
method's demand does not depend on its state, which is recorded of the last round only.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from edgesim.engine.vectorised.round_loop import SteppedEnvironment
from edgesim.errors import EdgesimError, counted
from edgesim.hierarchy.edge_cells import EdgeCell
from edgesim.hierarchy.make_hierarchy import Hierarchy
from edgesim.network.cell import Cell
from edgesim.presence.absences import LOST
from edgesim.runs.error_sentences import named_devices
from edgesim.runs.setup.make_setup import set_up
from edgesim.runs.setup.setup import Setup
from edgesim.scenario.cells.interference_schema import MEASURED
from edgesim.scenario.loader import load
from edgesim.verification.changed_packages import by_the_same_packages
from edgesim.verification.check_result import (
    FAILED,
    PASSED,
    SKIPPED,
    TOLERANCE,
    CheckResult,
    first_difference,
)
from edgesim.verification.device_states import STATES, put_back
from fl.contracts import Array, RoundPlan

if TYPE_CHECKING:
    import pandas as pd

ALLOCATIONS, FINISH = "allocations", "finish, Liu (28)"
NO_PLANS = "there are no plans to compare with"
CLOSE = 1e-9  # of shares and ratios
MAX_RESIDUAL = 1e-3  # relative; far above what a solver accepts of its own certificate


class StateNeededError(EdgesimError):
    """A demand depends on the method's state."""


class NoState:
    """Stands for a state that was not recorded; whatever is asked of it, it raises."""

    def __getattr__(self, name: str) -> NoReturn:
        raise StateNeededError(f"a demand reads the state ({name})")

    def __bool__(self) -> NoReturn:
        raise StateNeededError("a demand reads the state")


@dataclass(frozen=True)
class RecordedRound:
    """What the tables say of round g.

    Args:
        g: number of the round.
        start_s: simulated time of its start, s.
        rows: of device_rounds, by device.
        residual: of the certificate.
        states: of devices with a state when the round begins; None: it is the first round, or there
            are none.
    """

    g: int
    start_s: float
    rows: pd.DataFrame
    residual: float
    states: pd.DataFrame | None = None


def recorded_rounds(tables: dict[str, pd.DataFrame]) -> list[RecordedRound]:
    """The rounds of a run, in order."""
    rounds, rows = tables["rounds"], tables["device_rounds"]
    start_s = [0.0, *rounds["time_s"].tolist()[:-1]]
    ends = np.searchsorted(rows["round"].to_numpy(), np.arange(len(rounds) + 1))
    states = dict(list(tables[STATES].groupby("round"))) if STATES in tables else {}
    return [
        RecordedRound(
            g, start_s[g], rows.iloc[ends[g] : ends[g + 1]], float(residual), states.get(g - 1)
        )
        for g, residual in enumerate(rounds["solver_residual"].tolist())
    ]


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
        reason = "jobs of several versions overlap, each in its slot of the band"
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
    return [_together(checks, hierarchy) for checks in zip(*found, strict=True)]


def _together(checks: Sequence[CheckResult], hierarchy: Hierarchy) -> CheckResult:
    """One check of several edges as one line."""
    worst = next((each for each in checks if each.outcome == FAILED), checks[0])
    details = [
        f"edge {edge.number}: {each.detail}"
        for edge, each in zip(hierarchy.edges, checks, strict=True)
        if each.outcome == worst.outcome
    ]
    return CheckResult(worst.name, worst.outcome, "; ".join(details))


def rounds_of_edge(
    edge: EdgeCell, local_rounds: int, tables: dict[str, pd.DataFrame]
) -> list[RecordedRound]:
    """The rounds of an edge, with its own numbers of rounds and devices."""
    rows, spans = tables["device_rounds"], tables["spans"]
    rows, spans = rows[rows["edge"] == edge.number], spans[spans["edge"] == edge.number]
    begun = spans[spans["phase"] != "idle"].groupby(["round", "edge_round"])["start_s"].min()
    place = {k: n for n, k in enumerate(edge.members.tolist())}
    return [
        RecordedRound(
            g * local_rounds + local,
            float(begun.get((g, local), 0.0)),
            own.assign(device=own["device"].map(place)).reset_index(drop=True),
            math.nan,
        )
        for (g, local), own in rows.groupby(["round", "edge_round"])
    ]


def jobs_overlap(rows: pd.DataFrame) -> bool:
    """Has a job gone on while a version was made, or a device begun two in one?"""
    if "job" not in rows or "edge" in rows:  # the edges of a hierarchy make rounds
        return False
    crossed = (rows["version_in"] != rows["round"]).any()
    return bool(crossed or rows.duplicated(["round", "device"]).any())


def outside_bounds(rounds: list[RecordedRound]) -> str:
    """The first round whose shares sum to more than 1, or whose certificate is too weak."""
    for each in rounds:
        bands = [each.rows]
        if "edge" in each.rows:  # each round of each edge has its own
            bands = [rows for _, rows in each.rows.groupby(["edge", "edge_round"])]
        # The sector of a device that sent nothing is not known, nor the one that granted a share
        # where devices are handed over: `sector` is that of the last upload.
        by = "device" if "handovers" in each.rows else "sector"
        if "sector" in each.rows:
            bands = [rows for band in bands for place, rows in band.groupby(by) if place >= 0]
        total = max((math.fsum(rows["share"]) for rows in bands), default=0.0)
        if total > 1.0 + 1e-12:
            return f"round {each.g}: the shares sum to {total}"
        if each.residual > MAX_RESIDUAL:
            return f"round {each.g}: the residual of the certificate is {each.residual:g}"
    return ""


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


def check_finish(
    setup: Setup, rounds: list[RecordedRound], plans: dict[int, RoundPlan]
) -> CheckResult:
    """Cycles over clock plus bits over rate, Liu (24), (25): the finish time of every upload.

    It holds where the channel stands still, the band is divided for a whole round, the downlink
    takes no time, and uploads have no slots and no repetitions of their own; cycles and bits are
    those that were charged.
    """
    network, away = setup.scenario.network, setup.absences
    moving = {
        "the channel changes": not setup.channel.static,
        "uploads of other sectors disturb each other": network.layout.kind != "single",
        "the band is divided anew within a round": network.uplink.share != "fixed",
        "the downlink takes time": network.downlink.mode != "ideal",
        "uploads wait for their slots": setup.channel.services[0] is not None,
        "lost blocks are drawn": network.adaptation is not None
        and network.adaptation.errors == "drawn",
        "processors are throttled, or run other programs": any(
            each.thermal or each.load for each in setup.hardware.values()
        ),
        "jobs go on after an absence": away is not None
        and {*away.on_leave, *away.on_failure} != {LOST},
        "the plans could not be made again": not plans,
    }
    if reasons := [reason for reason, holds in moving.items() if holds]:
        return CheckResult(FINISH, SKIPPED, reasons[0])
    count, gain = 0, setup.channel.gains(0.0)
    for each in rounds:
        rows = each.rows[each.rows["status"].isin(("arrived", "late"))]
        rows = rows[np.isfinite(rows["finish_s"])]
        if not len(rows):
            continue
        grants = {grant.device: grant for grant in plans[each.g].grants}
        used = [grants[k] for k in rows["device"].tolist()]
        clock = np.array([grant.cpu_hz for grant in used])
        power_w = np.array([grant.power_w for grant in used])
        sent = rows["device"].to_numpy(), rows["share"].to_numpy(), power_w, gain[rows["device"]]
        rate = setup.channel.flow_bps(0.0, *sent)
        expected_s = rows["cycles"].to_numpy() / clock + _seconds(rows["bits_up"].to_numpy(), rate)
        at = first_difference(rows["finish_s"], expected_s)
        if at is not None:
            k, found = rows["device"].iloc[at], rows["finish_s"].iloc[at]
            problem = f"{found} s, and (28) gives {expected_s[at]} s"
            return CheckResult(FINISH, FAILED, f"round {each.g}, device {k}: {problem}")
        count += len(rows)
    return CheckResult(FINISH, PASSED, f"{counted(count, 'upload')} within {TOLERANCE:g}")


def _seconds(bits: Array, rate_bps: Any) -> Array:
    """0 where there is nothing to send."""
    return np.divide(bits, rate_bps, out=np.zeros(len(bits)), where=bits > 0.0)
