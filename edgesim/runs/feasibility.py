"""Before a run: can each device meet the threshold at all, which term binds it, and what would round 0 be given?

The numbers follow Liu, eqs. (24), (25), (28) for the channel at the start. They are a forecast for `edgesim check`;
a run's latencies never come from here, they emerge from the event log.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from edgesim.network.cell import Cell
from fl.contracts import Demand, Grant, RoundPlan, View
from solvers import InfeasibleError

MS = 1e3


@dataclass(frozen=True)
class Feasibility:
    """One row a device, times in ms. ``feasible`` is false when no device can take part, or `stop` refuses the plan.

    note: one sentence on the whole.     warnings: what a user should know before running.
    """

    rows: Sequence[dict]
    threshold_ms: float
    note: str
    feasible: bool
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Rows(Sequence):
    """The rows of a table, each worked out when it is looked at: a million devices are checked, and thirty shown."""

    cell: Cell
    method: Any
    demand: Demand
    view: View
    plan: RoundPlan

    def __len__(self) -> int:
        return len(self.demand.devices)

    def __getitem__(self, i: int | slice) -> dict | list[dict]:
        if isinstance(i, slice):
            return [self[place] for place in range(*i.indices(len(self)))]
        place = range(len(self))[i]
        k = int(self.demand.devices[place])
        grant = self.plan.grants[self._granted[k]] if k in self._granted else None
        left_out = k in self._left_out
        return device_row(
            self.cell, self.method, self.demand, self.view, not left_out, grant, place
        )

    @cached_property
    def _granted(self) -> dict[int, int]:
        """Device -> place of its grant."""
        grants = self.plan.grants
        return {} if not grants else {k: place for place, k in enumerate(grants.device.tolist())}

    @cached_property
    def _left_out(self) -> set[int]:
        return set(self.plan.infeasible)


def feasibility_table(cell: Cell, method: Any, redrawn: bool = False) -> Feasibility:
    """The table of round 0, with every device taking part, on the channel and the clocks as they are at the start.

    ``redrawn``: capabilities are drawn anew in every round, which the note then says.
    """
    view = cell.view(0, everyone=True)
    demand = method.demand(None, view, np.arange(len(cell.fleet)))
    warnings, refused = [], ""
    try:
        plan = cell.allocate(demand, view)
    except InfeasibleError as error:
        refused = f"{str(error).rstrip('.')}; or write allocation.when_infeasible: stretch"
        plan = RoundPlan((), budget_s=view.budget_s)
    if plan.budget_s > view.budget_s:
        warnings.append(
            f"the band is too narrow for {view.budget_s * MS:g} ms at the largest pruning ratio; round 0 would be "
            f"planned for {plan.budget_s * MS:.6g} ms, the least that fits"
        )
    shut_out, count = sorted(plan.infeasible), len(demand.devices)
    note = refused or sentence(count, shut_out, view, cell.unprunable_s(demand, view))
    note += "; this is round 0, and capabilities are drawn anew in every round" if redrawn else ""
    if shut_out:
        warnings.append(note)
    rows = Rows(cell, method, demand, view, plan)
    return Feasibility(
        rows, view.budget_s * MS, note, len(shut_out) < count and not refused, warnings
    )


def device_row(
    cell: Cell, method: Any, demand: Demand, view: View, feasible: bool, grant: Grant | None, i: int
) -> dict:
    k = int(demand.devices[i])
    device, rate_bps = cell.fleet.device(k), view.rate_bps[k]

    @cache  # a method that decides rho is asked for one rho only, and a submodel takes a while to price
    def seconds(rho: float, cpu_hz: float = view.cpu_hz[k]) -> dict[str, float]:
        return {s.name: device.seconds(s.work, cpu_hz) for s in method.forecast(view, k, rho)}

    def upload_s(rho: float, bps: float) -> float:
        bits = demand.bits_fixed[i] + (1.0 - rho) * demand.bits_prunable[i]
        return bits / bps if bps else float("inf") if bits else 0.0

    download_s = float(cell.downlink.seconds(demand.bits_down[[i]], demand.devices)[0])
    least = {
        "download": download_s,
        **seconds(demand.rho_max[i]),
        "uplink": upload_s(demand.rho_max[i], rate_bps),
    }
    planned_s = float("nan")
    if grant is not None:
        planned_bps = float(
            cell.channel.rate_bps(grant.share, grant.power_w, cell.channel.gains(view.now_s)[k])
        )
        planned_s = (
            download_s
            + sum(seconds(grant.rho, grant.cpu_hz).values())
            + upload_s(grant.rho, planned_bps)
        )
    return {
        "device": k,
        "gain_db": decibel(cell.channel.gains(view.now_s)[k]),
        "rate_mbps": float(rate_bps / 1e6),
        "stages": {name: s * MS for name, s in seconds(demand.rho_min[i]).items()},
        "upload_ms": upload_s(demand.rho_min[i], rate_bps / len(demand.devices)) * MS,
        "least_ms": sum(least.values()) * MS,
        "binds": max(least, key=least.get),
        "feasible": feasible,
        "share": grant.share if grant else 0.0,
        "rho": grant.rho if grant else float("nan"),
        "planned_ms": planned_s * MS,
    }


def decibel(gain: float) -> float:
    return 10.0 * math.log10(gain) if gain > 0.0 else -math.inf


def sentence(count: int, shut_out: list[int], view: View, unprunable: np.ndarray) -> str:
    """Who cannot take part and why, and the least threshold that would let everybody."""
    if not shut_out:
        return f"all {count} devices can take part"
    mute = [k for k in shut_out if view.rate_bps[k] == 0.0]
    slow = [k for k in shut_out if view.rate_bps[k] != 0.0]
    parts = []
    if mute:
        parts.append(f"devices {listed(mute)} are out of reach: their rate is 0 bit/s")
    if slow:
        needed_ms = unprunable[slow].max() * MS
        parts.append(
            f"devices {listed(slow)} cannot meet budget.latency_threshold = {view.budget_s * MS:g} ms, because what "
            f"cannot be pruned alone takes up to {needed_ms:.6g} ms; give more than {needed_ms:.6g} ms"
        )
    return f"{len(shut_out)} of {count} devices cannot take part: " + "; ".join(parts)


def listed(devices: list[int]) -> str:
    return ", ".join(str(k) for k in devices[:10]) + (", ..." if len(devices) > 10 else "")
