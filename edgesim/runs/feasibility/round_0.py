"""Feasibility of round 0: can each device meet the threshold, and what would be planned for it?

The numbers follow Liu, eqs. (24), (25), (28) for the channel at the start. They are a forecast for
`edgesim check`; the latencies of a run never come from here, they emerge from the event log.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from edgesim.engine.event_estimate import RoundEvents, round_events
from edgesim.errors import counted
from edgesim.network.cell import Cell
from edgesim.network.given_losses.varying_channel import VaryingChannel
from edgesim.network.planning.admission import late_devices
from edgesim.runs.error_sentences import infeasible_sentence, named_devices
from edgesim.runs.feasibility.device_rows import MS, DeviceRows
from edgesim.runs.feasibility.start_warnings import moving_plan, never_there, stale_plan
from fl.contracts import Array, RoundPlan, View
from fl.method_base.hook_answers import demand_of
from fl.method_base.method import Method
from solvers import InfeasibleError, InvalidAllocationError, UncertifiedError


@dataclass(frozen=True)
class Feasibility:
    """What each device can reach in round 0.

    Args:
        rows: one a device, times in ms.
        thresholds_ms: T_th, ms; the least and the longest of the edges, whose backhauls may differ.
        note: one sentence on all devices.
        feasible: False if no device can ever take part, or ``stop`` refuses the plan.
        warnings: what a user should know before running.
        events: about how many events round 0 has.
    """

    rows: Sequence[dict]
    thresholds_ms: tuple[float, float]
    note: str
    feasible: bool
    warnings: list[str] = field(default_factory=list)
    events: RoundEvents = field(default_factory=RoundEvents)


def feasibility_table(
    cell: Cell,
    method: Method,
    redrawn: bool = False,
    wanted: int | None = None,
    overlapping: bool = False,
    numbers: Sequence[int] | None = None,
) -> Feasibility:
    """The table of round 0, with every device there, on the channel and clocks at the start.

    Args:
        cell: of the run, at its start.
        method: says what taking part costs, and how many devices take part.
        redrawn: capabilities are drawn in every round, which the note then says.
        wanted: devices that the clock wants to start; None: those that the method asks.
        overlapping: the clock's jobs overlap.
        numbers: of the devices in sentences; None: those within the cell.
    """
    view, everyone = cell.view(0, everyone=True), np.arange(len(cell.fleet))
    demand = demand_of(method, None, view, everyone)
    asked = round_0_asks(method, replace(view, wanted=wanted))
    others = demand.without(asked)
    warnings, refused = [], ""
    try:
        plan = cell.plan(demand.without(others.devices), view)
    except InfeasibleError as error:
        refused = infeasible_sentence(error if numbers is None else error.of(numbers), type(method))
        plan = RoundPlan((), budget_s=view.budget_s)
    except (UncertifiedError, InvalidAllocationError) as error:
        if numbers is None:
            raise
        raise error.of(numbers) from error
    if plan.budget_s > view.budget_s:
        warnings.append(
            f"the band is too narrow for {view.budget_s * MS:g} ms at the largest pruning ratio; "
            f"round 0 would be planned for {plan.budget_s * MS:.6g} ms, the least that fits"
        )
    count = len(everyone)
    left_out = sorted({*plan.infeasible, *late_devices(cell.planner, others, view, alone=True)})
    unprunable_s, moves = cell.planner.unprunable_s(demand, view), gains_move(cell)
    # Only a threshold ends a round of nobody.
    moves = moves and (len(left_out) < count or math.isfinite(view.budget_s))
    energy_s = cell.running.energy_returns_s(plan.too_weak)
    charged = {k for k in plan.too_weak if math.isfinite(energy_s[k])}
    back = {k for k in left_out if moves and view.rate_bps[k] == 0.0} | charged
    why = view, unprunable_s, moves, plan.too_weak, numbers, charged
    note = refused or participation(count, left_out, *why)
    if len(asked) < count:
        note += f"; a round asks {len(asked)} of them, and shares are planned for those of round 0"
    note += "; this is round 0, and capabilities are drawn anew in every round" if redrawn else ""
    if left_out:
        warnings.append(note)
    warnings += stale_plan(cell, overlapping) + moving_plan(cell) + never_there(cell)
    warnings += [each.sentence for each in cell.channel.beyond_scope()]
    rows = DeviceRows(cell, method, demand, view, asked, plan, set(left_out))
    feasible = len(set(left_out) - back) < count and not refused
    events = round_events(cell, demand, view, plan)
    thresholds_ms = (view.budget_s * MS,) * 2
    return Feasibility(rows, thresholds_ms, note, feasible, warnings, events)


def round_0_asks(method: Method, view: View) -> Array:
    """Devices that round 0 asks, int [S]; of a method that learns whom to ask as many by its rule.

    Args:
        method: says how many.
        view: of round 0, with the number that the clock wants.
    """
    stream = method.task.streams.stream("select", round=view.occasion)
    return np.sort(method.task.selection(view, view.places(method.participants), stream))


def joined_feasibility(
    tables: Sequence[Feasibility], members: Sequence[tuple[int, Sequence[int]]]
) -> Feasibility:
    """The tables of the cells of several edges as one, with the devices' own numbers.

    Not feasible where no device of any edge can take part, or none of one whose rounds would not
    end without.

    Args:
        tables: one per edge.
        members: number and devices of each edge.
    """
    rows = [
        {**row, "device": devices[row["device"]], "edge": e}
        for table, (e, devices) in zip(tables, members, strict=True)
        for row in table.rows
    ]
    rows.sort(key=lambda row: row["device"])
    notes = [f"edge {e}: {each.note}" for each, (e, _) in zip(tables, members, strict=True)]
    warnings = [
        f"edge {e}: {warning}"
        for each, (e, _) in zip(tables, members, strict=True)
        for warning in each.warnings
    ]
    least_ms, longest_ms = zip(*(each.thresholds_ms for each in tables), strict=True)
    # only a threshold ends a round of nobody
    endless = [
        e
        for each, (e, _) in zip(tables, members, strict=True)
        if not each.feasible and math.isinf(each.thresholds_ms[0])
    ]
    if endless:
        of_edges = ", ".join(map(str, endless))
        notes.append(f"nothing would end a round of edge {of_edges}; give budget.latency_threshold")
    return Feasibility(
        rows,
        (min(least_ms), max(longest_ms)),
        "; ".join(notes),
        any(each.feasible for each in tables) and not endless,
        warnings,
        RoundEvents.joined(each.events for each in tables),
    )


def gains_move(cell: Cell) -> bool:
    """May a device that is out of reach at the start come back?"""
    channel = cell.channel
    if isinstance(channel, VaryingChannel):
        return math.isfinite(channel.process.next_change_s(cell.env.now))
    return math.isfinite(channel.refresh_s)


def participation(
    count: int,
    left_out: list[int],
    view: View,
    unprunable_s: Array,
    moves: bool = False,
    too_weak: Container[int] = (),
    numbers: Sequence[int] | None = None,
    charged: Container[int] = (),
) -> str:
    """Who cannot take part and why, and the least threshold that would let everybody.

    Args:
        count: of the devices.
        left_out: those that cannot take part.
        view: of round 0.
        unprunable_s: of each device what nothing can shorten, s [K].
        moves: path losses change, so that a rate of 0 bit/s says something of round 0 only.
        too_weak: those of them whose batteries do not hold what their plan takes.
        numbers: of the devices in sentences; None: those within the cell.
        charged: those whose batteries will hold it.
    """
    if not left_out:
        return f"all {count} devices can take part" if count > 1 else "the device can take part"

    def name(devices: list[int]) -> str:
        return named_devices(devices if numbers is None else [numbers[k] for k in devices])

    silent = [k for k in left_out if view.rate_bps[k] == 0.0]
    weak = [k for k in left_out if k in too_weak and k not in charged]
    waiting = [k for k in left_out if k in charged]
    slow = [k for k in left_out if k not in too_weak and view.rate_bps[k] != 0.0]
    parts = []
    if silent:
        one = len(silent) == 1
        are, take = ("is", "takes") if one else ("are", "take")
        them, their = ("it", "its") if one else ("them", "their")
        later = f" when the run starts, and {take} part once the channel lets {them}"
        away = f"{are} out of reach{later if moves else ''}"
        parts.append(f"{name(silent)} {away}: {their} rate is 0 bit/s")
    if weak:
        parts.append(f"the plan of {name(weak)} takes more than the battery holds")
    if waiting:
        more = "takes more than the battery holds until it is charged"
        parts.append(f"the plan of {name(waiting)} {more}")
    if slow:
        needed_ms = unprunable_s[slow].max() * MS
        parts.append(
            f"{name(slow)} cannot meet budget.latency_threshold = "
            f"{view.budget_s * MS:g} ms, because what cannot be pruned alone takes up to "
            f"{needed_ms:.6g} ms; give more than {needed_ms:.6g} ms"
        )
    first = " in round 0" if waiting or (moves and silent) else ""
    return f"{len(left_out)} of {counted(count, 'device')} cannot take part{first}: " + "; ".join(
        parts
    )
