"""Before a run: can each device meet the threshold at all, which term binds it, and what would round 0 be given?

The numbers follow Liu, eqs. (24), (25), (28) for the channel at the start. They are a forecast for `edgesim check`;
a run's latencies never come from here, they emerge from the event log.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgesim.cell import Cell
from edgesim.contracts import Demand, Plan, View
from solvers import Infeasible

MS = 1e3


@dataclass(frozen=True)
class Feasibility:
    """One row a device, times in ms. ``feasible`` is false when no device can take part, or `stop` refuses the plan.

    note: one sentence on the whole.     warnings: what a user should know before running.
    """

    rows: list[dict]
    threshold_ms: float
    note: str
    feasible: bool
    warnings: list[str] = field(default_factory=list)


def feasibility_table(cell: Cell, method: Any) -> Feasibility:
    """The table of round 0, with every device taking part, on the channel as it is at the start."""
    view = cell.view(0, everyone=True)
    demand = method.demand(None, view, np.arange(len(cell.fleet)))
    warnings, refused = [], ""
    try:
        plan = cell.allocate(demand, view)
    except Infeasible as error:
        refused = f"{str(error).rstrip('.')}; or write allocation.when_infeasible: stretch"
        plan = Plan((), budget_s=view.budget_s)
    rows = [device_row(cell, method, demand, view, plan, i) for i in range(len(demand.devices))]
    shut_out = [row["device"] for row in rows if not row["feasible"]]
    if plan.budget_s > view.budget_s:
        warnings.append(
            f"the band is too narrow for {view.budget_s * MS:g} ms at the largest pruning ratio; round 0 would be "
            f"planned for {plan.budget_s * MS:.6g} ms, the least that fits"
        )
    note = refused or sentence(rows, shut_out, view, unprunable_s(cell, demand))
    if shut_out:
        warnings.append(note)
    return Feasibility(rows, view.budget_s * MS, note, len(shut_out) < len(rows) and not refused, warnings)


def unprunable_s(cell: Cell, demand: Demand) -> np.ndarray:
    """Time that no pruning saves [S], s: T_th - A_k of the digest."""
    download_s = cell.downlink.seconds(demand.bits_down, demand.devices)
    return cell.fleet.seconds(demand.devices, demand.work_fixed) + download_s


def device_row(cell: Cell, method: Any, demand: Demand, view: View, plan: Plan, i: int) -> dict:
    k = int(demand.devices[i])
    device = cell.fleet.device(k)
    grant = next((grant for grant in plan.grants if grant.device == k), None)
    rate_bps = view.rate_bps[k]

    def seconds(rho: float) -> dict[str, float]:
        return {stage.name: device.seconds(stage.work, device.cpu_hz) for stage in method.stages(k, rho)}

    def upload_s(rho: float, bps: float) -> float:
        bits = demand.bits_fixed[i] + (1.0 - rho) * demand.bits_prunable[i]
        return bits / bps if bps else float("inf") if bits else 0.0

    download_s = float(cell.downlink.seconds(demand.bits_down[[i]], demand.devices)[0])
    least = {"download": download_s, **seconds(demand.rho_max[i]), "uplink": upload_s(demand.rho_max[i], rate_bps)}
    planned_s = float("nan")
    if grant is not None:
        planned_s = download_s + sum(seconds(grant.rho).values()) + upload_s(grant.rho, grant.share * rate_bps)
    return {
        "device": k,
        "gain_db": decibel(cell.channel.gains(view.now_s)[k]),
        "rate_mbps": float(rate_bps / 1e6),
        "stages": {name: s * MS for name, s in seconds(0.0).items()},
        "upload_ms": upload_s(demand.rho_min[i], rate_bps / len(demand.devices)) * MS,
        "least_ms": sum(least.values()) * MS,
        "binds": max(least, key=least.get),
        "feasible": k not in plan.infeasible,
        "share": grant.share if grant else 0.0,
        "rho": grant.rho if grant else float("nan"),
        "planned_ms": planned_s * MS,
    }


def decibel(gain: float) -> float:
    return 10.0 * math.log10(gain) if gain > 0.0 else -math.inf


def sentence(rows: list[dict], shut_out: list[int], view: View, unprunable: np.ndarray) -> str:
    """Who cannot take part and why, and the least threshold that would let everybody."""
    if not shut_out:
        return f"all {len(rows)} devices can take part"
    mute = [k for k in shut_out if view.rate_bps[k] == 0.0]
    slow = [k for k in shut_out if k not in mute]
    parts = []
    if mute:
        parts.append(f"devices {listed(mute)} are out of reach: their rate is 0 bit/s")
    if slow:
        needed_ms = max(unprunable[k] for k in slow) * MS
        parts.append(
            f"devices {listed(slow)} cannot meet budget.latency_threshold = {view.budget_s * MS:g} ms, because what "
            f"cannot be pruned alone takes up to {needed_ms:.6g} ms; give more than {needed_ms:.6g} ms"
        )
    return f"{len(shut_out)} of {len(rows)} devices cannot take part: " + "; ".join(parts)


def listed(devices: list[int]) -> str:
    return ", ".join(str(k) for k in devices[:10]) + (", ..." if len(devices) > 10 else "")
