"""Feasibility of round 0: can each device meet the threshold, and what would be planned for it?

The numbers follow Liu, eqs. (24), (25), (28) for the channel at the start. They are a forecast for
`edgesim check`; the latencies of a run never come from here, they emerge from the event log.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from edgesim.engine.event_estimate import round_events
from edgesim.network.cell import Cell
from edgesim.network.grants import Grants
from edgesim.runs.error_sentences import infeasible_sentence
from fl.contracts import Array, Demand, Grant, RoundPlan, View
from fl.method_base.method import Method
from solvers import InfeasibleError

MS = 1e3


@dataclass(frozen=True)
class Feasibility:
    """What each device can reach in round 0.

    Args:
        rows: one a device, times in ms.
        threshold_ms: T_th, ms.
        note: one sentence on all devices.
        feasible: False if no device can take part, or ``stop`` refuses the plan.
        warnings: what a user should know before running.
        round_events: about how many events round 0 has.
    """

    rows: Sequence[dict]
    threshold_ms: float
    note: str
    feasible: bool
    warnings: list[str] = field(default_factory=list)
    round_events: float = 0.0


class DeviceRows(Sequence[dict]):
    """Rows that are computed when they are read: a million devices are checked, and thirty shown.

    Args:
        cell: of the run, at its start.
        method: forecasts the stages of a device.
        demand: of all devices in round 0.
        view: what the server knows in round 0.
        asked: devices that round 0 asks, int [S].
        plan: of these.
        left_out: devices that cannot take part.
    """

    def __init__(
        self,
        cell: Cell,
        method: Method,
        demand: Demand,
        view: View,
        asked: Array,
        plan: RoundPlan,
        left_out: Collection[int],
    ) -> None:
        self.cell, self.method, self.demand, self.view = cell, method, demand, view
        self.grants, self.forecast = plan.grants, plan.forecast
        self.asked, self.left_out = asked, left_out
        self.channel = cell.planned_channel(plan)

    @cached_property
    def fair(self) -> Array:
        """An equal share of the band among as many devices as a round asks [K]."""
        sharers = self.cell.sharers() * (len(self.asked) / len(self.demand.devices))
        return 1.0 / np.maximum(sharers, 1.0)

    @cached_property
    def place_of(self) -> dict[int, int]:
        """Device -> place among the grants; made when the first row is asked for."""
        devices = self.grants.device.tolist() if isinstance(self.grants, Grants) else []
        return {k: place for place, k in enumerate(devices)}

    @cached_property
    def gains(self) -> tuple[Array, Array]:
        """Gains that the server takes, over the whole band and over fair shares [K], linear."""
        whole = np.ones(len(self.fair))
        return gains_at(self.cell, self.view, whole), gains_at(self.cell, self.view, self.fair)

    def __len__(self) -> int:
        return len(self.demand.devices)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[place] for place in range(*i.indices(len(self)))]
        place = range(len(self))[i]
        k = int(self.demand.devices[place])
        granted, planned_bps = self.place_of.get(k), math.nan
        grant = None if granted is None else self.grants[granted]
        if granted is not None and self.forecast is not None:
            planned_bps = float(self.forecast.rate_bps[granted])
        elif grant is not None:
            gain = self.channel.gains(self.view.now_s)[k]
            planned_bps = float(self.channel.rate_bps(grant.share, grant.power_w, gain))
        asked = self.cell, self.method, self.demand, self.view
        row = device_row(*asked, grant, planned_bps, place, self.gains, float(self.fair[k]))
        if granted is None and k not in self.left_out:
            row["share"] = math.nan  # another round asks it
        return {**row, "feasible": k not in self.left_out}


def feasibility_table(
    cell: Cell, method: Method, redrawn: bool = False, wanted: int | None = None
) -> Feasibility:
    """The table of round 0, with every device there, on the channel and clocks at the start.

    Args:
        cell: of the run, at its start.
        method: says what taking part costs, and how many devices take part.
        redrawn: capabilities are drawn in every round, which the note then says.
        wanted: devices that the clock wants to start; None: those that the method asks.
    """
    view, everyone = cell.view(0, everyone=True), np.arange(len(cell.fleet))
    demand = method.demand(None, view, everyone)
    asked = round_0_asks(method, replace(view, wanted=wanted))
    others = demand.without(asked)
    warnings, refused = [], ""
    try:
        plan = cell.plan(demand.without(others.devices), view)
    except InfeasibleError as error:
        refused = infeasible_sentence(error)
        plan = RoundPlan((), budget_s=view.budget_s)
    if plan.budget_s > view.budget_s:
        warnings.append(
            f"the band is too narrow for {view.budget_s * MS:g} ms at the largest pruning ratio; "
            f"round 0 would be planned for {plan.budget_s * MS:.6g} ms, the least that fits"
        )
    count = len(everyone)
    left_out = sorted({*plan.infeasible, *never_in_time(cell, others, view)})
    note = refused or participation(count, left_out, view, cell.planner.unprunable_s(demand, view))
    if len(asked) < count:
        note += f"; a round asks {len(asked)} of them, and shares are planned for those of round 0"
    note += "; this is round 0, and capabilities are drawn anew in every round" if redrawn else ""
    if left_out:
        warnings.append(note)
    warnings += stale_plan(cell) + moving_plan(cell) + never_there(cell)
    warnings += cell.channel.beyond_scope
    rows = DeviceRows(cell, method, demand, view, asked, plan, set(left_out))
    feasible = len(left_out) < count and not refused
    events = round_events(cell, demand, view, plan)
    return Feasibility(rows, view.budget_s * MS, note, feasible, warnings, events)


def round_0_asks(method: Method, view: View) -> Array:
    """Devices that round 0 asks, int [S]; of a method that learns whom to ask as many by its rule.

    Args:
        method: says how many.
        view: of round 0, with the number that the clock wants.
    """
    stream = method.task.streams.stream("select", round=view.occasion)
    return np.sort(method.task.selection(view, view.places(method.participants), stream))


def never_in_time(cell: Cell, demand: Demand, view: View) -> list[int]:
    """Devices that no plan lets take part: those that `Planner.plan` leaves out."""
    devices = np.asarray(demand.devices, dtype=int)
    if not len(devices):
        return []
    open_ratio = np.not_equal(demand.rho_min, demand.rho_max)
    slow = open_ratio & (cell.planner.unprunable_s(demand, view) >= view.budget_s)
    return devices[slow | (view.rate_bps[devices] == 0.0)].tolist()


def joined_feasibility(
    tables: Sequence[Feasibility], members: Sequence[tuple[int, Sequence[int]]]
) -> Feasibility:
    """The tables of the cells of several edges as one, with the devices' own numbers.

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
    return Feasibility(
        rows,
        min(each.threshold_ms for each in tables),
        "; ".join(notes),
        any(each.feasible for each in tables),
        warnings,
        sum(each.round_events for each in tables),
    )


def device_row(
    cell: Cell,
    method: Method,
    demand: Demand,
    view: View,
    grant: Grant | None,
    planned_bps: float,
    i: int,
    gains_of: tuple[Array, Array],
    fair: float,
) -> dict[str, Any]:
    """The row of one device.

    Args:
        cell: of the run, at its start.
        method: forecasts the stages of a device.
        demand: of all devices.
        view: what the server knows.
        grant: of the device in the plan of round 0, if it has one.
        planned_bps: rate of its upload in that plan, bit/s.
        i: position of the device in the demand.
        gains_of: what the server takes, over the whole band and over fair shares [K], linear.
        fair: an equal share of the band.
    """
    k = int(demand.devices[i])
    device, rate_bps, gains = cell.fleet.device(k), view.rate_bps[k], cell.planner.gains
    gain, fair_gain = (float(each[k]) for each in gains_of)

    @cache  # most methods ask for one rho only, and to price a submodel takes a while
    def seconds(rho: float, cpu_hz: float = view.cpu_hz[k]) -> dict[str, float]:
        return {s.name: device.seconds(s.work, cpu_hz) for s in method.forecast(view, k, rho)}

    def upload_s(rho: float, bps: float) -> float:
        bits = demand.bits_fixed[i] + (1.0 - rho) * demand.bits_prunable[i]
        return bits / bps if bps else math.inf if bits else 0.0

    # With noise as a density a share of the band carries more than that share of its rate.
    fair_w = cell.channel.sent_w(fair, cell.fleet.tx_power_w[k], view.now_s, k)
    fair_bps = float(cell.channel.rate_bps(fair, fair_w, fair_gain))
    download_s = float(cell.downlink.seconds(demand.bits_down[[i]], demand.devices, gains)[0])
    rho_min, rho_max = demand.rho_min[i], demand.rho_max[i]
    unpruned_s = {"download": download_s, **seconds(rho_min), "uplink": upload_s(rho_min, fair_bps)}
    least_s = {"download": download_s, **seconds(rho_max), "uplink": upload_s(rho_max, rate_bps)}
    # A device whose computation alone takes too long is bound by what no pruning shortens.
    too_slow = sum(least_s.values()) - least_s["uplink"] >= view.budget_s
    bound_by_s = least_s if too_slow else unpruned_s
    planned_s = math.nan
    if grant is not None:
        compute_s = sum(seconds(grant.rho, grant.cpu_hz).values())
        planned_s = download_s + compute_s + upload_s(grant.rho, planned_bps)
    return {
        "device": k,
        "gain_db": 10.0 * math.log10(gain) if gain > 0.0 else -math.inf,
        "rate_mbps": float(rate_bps / 1e6),
        "stages": {name: s * MS for name, s in seconds(rho_min).items()},
        "upload_ms": unpruned_s["uplink"] * MS,
        "least_ms": sum(least_s.values()) * MS,
        "binds": max(bound_by_s, key=lambda name: bound_by_s[name]),
        "share": grant.share if grant else 0.0,
        "rho": grant.rho if grant else math.nan,
        "planned_ms": planned_s * MS,
    }


def stale_plan(cell: Cell) -> list[str]:
    """The warning about a plan whose channel is gone before the round is over, if it is one."""
    channel, gains = cell.channel, cell.planner.gains
    if gains.counts_with_fading or channel.fading is None:
        return []
    holds_s = channel.fading.holds_s
    if holds_s >= cell.budget_s:
        return []
    length = "a round" if math.isinf(cell.budget_s) else f"{cell.budget_s * MS:g} ms"
    return [
        f"allocation.rate: now plans with the fade of the instant, but fading changes every "
        f"{holds_s * MS:g} ms of {length}, so that many devices will be late; "
        "write allocation: {rate: quantile, reliability: 0.95} to plan for fading"
    ]


def moving_plan(cell: Cell) -> list[str]:
    """The warning about devices that go far within a round, if they do."""
    channel = cell.channel
    if channel.refresh_s >= cell.budget_s:  # inf where nobody moves
        return []
    speed, length_s = channel.top_speed_m_per_s, cell.budget_s
    far = "as far as they like" if math.isinf(length_s) else f"{speed * length_s:.3g} m"
    return [
        f"devices go up to {far} within a round, and are planned for where they stand at its "
        "start: shadowing and line of sight change on the way, which no reliability counts with"
    ]


def never_there(cell: Cell) -> list[str]:
    """The warning about devices whose presence trace has no interval, if there are some."""
    if cell.absences is None or not len(never := cell.absences.presence.never_there()):
        return []
    return [
        f"{len(never)} of {len(cell.fleet)} devices are never there, since their presence file has "
        f"no line of them: {first_ten(never.tolist())}"
    ]


def gains_at(cell: Cell, view: View, share: Array) -> Array:
    """What the server takes for the gains of the devices on these shares of the band [K]."""
    channel = cell.channel
    noise_w = channel.band_noise_w * (1.0 if channel.noise_w_per_hz is None else share)
    power_w = channel.sent_w(share, cell.fleet.tx_power_w, view.now_s)
    return cell.planner.gains.at_start(view.now_s, power_w / noise_w)


def participation(count: int, left_out: list[int], view: View, unprunable_s: Array) -> str:
    """Who cannot take part and why, and the least threshold that would let everybody."""
    if not left_out:
        return f"all {count} devices can take part"
    silent = [k for k in left_out if view.rate_bps[k] == 0.0]
    there = [k for k in left_out if view.rate_bps[k] != 0.0]
    slow = [k for k in there if unprunable_s[k] >= view.budget_s]
    weak = [k for k in there if unprunable_s[k] < view.budget_s]
    parts = []
    if silent:
        parts.append(f"devices {first_ten(silent)} are out of reach: their rate is 0 bit/s")
    if weak:
        parts.append(f"the batteries of devices {first_ten(weak)} hold less than their plan takes")
    if slow:
        needed_ms = unprunable_s[slow].max() * MS
        parts.append(
            f"devices {first_ten(slow)} cannot meet budget.latency_threshold = "
            f"{view.budget_s * MS:g} ms, because what cannot be pruned alone takes up to "
            f"{needed_ms:.6g} ms; give more than {needed_ms:.6g} ms"
        )
    return f"{len(left_out)} of {count} devices cannot take part: " + "; ".join(parts)


def first_ten(devices: list[int]) -> str:
    return ", ".join(str(k) for k in devices[:10]) + (", ..." if len(devices) > 10 else "")
