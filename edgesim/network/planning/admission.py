"""Admission: who of the devices that are asked is left out of a round, and planned without."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from edgesim.network.planning.planner import LEAST_BAND, RoundPlanner
from fl.contracts import Array, Demand, RoundPlan, View, Work
from fl.repeated_call import RepeatedCall

TooWeak = Callable[[Demand, View, RoundPlan], dict[int, float]]
# devices whose batteries hold less than a plan takes -> that, J


def plan_of_admitted(
    planner: RoundPlanner,
    plans: RepeatedCall[RoundPlan],
    demand: Demand,
    view: View,
    band: float,
    one_waits: bool,
    too_weak: TooWeak,
) -> RoundPlan:
    """Shares and pruning ratios of those who can take part in a round.

    Devices that cannot meet the threshold, or whose plan takes more energy than their battery
    holds, are left out, and the others are planned again without them: they neither wait for
    the weakest of those who listen no more, nor for a turn in the downlink that nobody takes.

    Args:
        planner: of the cell or network.
        plans: the last plan that was asked for.
        demand: of the devices that are asked.
        view: what the server knows when the round starts.
        band: beta, what is not promised to devices at work.
        one_waits: a download takes longer where more devices are asked.
        too_weak: names whose batteries hold too little for a plan.

    Raises:
        solvers.InfeasibleError: see `edgesim.network.planning.planner.Planner.plan`.
    """
    weak, slow = dict[int, float](), set[int]()
    if one_waits and band >= LEAST_BAND:
        for alone in (True, False):
            # Before a plan with all of them, which may be stretched or refused for their sake.
            while 0 < len(out := late_devices(planner, demand, view, alone)) < len(demand.devices):
                demand = demand.without(np.array(out))
                slow |= set(out)
    while True:
        plan = repeated_plan(planner, plans, demand, view, band)
        if one_waits and 0 < len(plan.infeasible) < len(demand.devices):
            out = [*plan.infeasible]
            slow |= set(out)
        elif found := too_weak(demand, view, plan):
            out = [*found]
            weak |= found
        else:
            break
        demand = demand.without(np.array(out))
    left_out = tuple(sorted({*plan.infeasible, *weak, *slow}))
    return replace(plan, infeasible=left_out, too_weak=weak) if weak or slow else plan


def late_devices(planner: RoundPlanner, demand: Demand, view: View, alone: bool) -> list[int]:
    """Devices of a demand that could not meet the threshold however much they were pruned.

    Where the method fixes the ratio it is none that would be late, as in `Planner.plan`.

    Args:
        planner: of the cell or network.
        demand: of the devices.
        view: what the server knows when the round starts.
        alone: of each device if no other is asked.
    """
    fixed_s = planner.unprunable_s(demand, view, alone)
    decided = np.equal(demand.rho_min, demand.rho_max) & np.isfinite(fixed_s)
    late = bool(np.any(decided & (fixed_s >= view.budget_s)))
    devices = np.asarray(demand.devices, dtype=int)
    slow = fixed_s >= (math.inf if late else view.budget_s)
    found: Array = devices[slow | (view.rate_bps[devices] == 0.0)]
    return found.tolist()


def repeated_plan(
    planner: RoundPlanner,
    plans: RepeatedCall[RoundPlan],
    demand: Demand,
    view: View,
    band: float,
) -> RoundPlan:
    """The plan of `RoundPlanner.plan`, found once where the same is asked again.

    Round 0 asks for the plan by which the run was checked, and every round for that of the
    round before where plans take the same for the channel.
    """
    find = partial(planner.plan, demand, view, band)
    channel = planner.lasting_channel(view.now_s)
    if channel is None and view.now_s > 0.0:  # nobody asks for a plan of this instant again
        return find()
    seen = view.rate_bps, view.cpu_hz, view.capability, planner.unprunable_s(demand, view)
    return plans((band, *(channel or ()), *seen, *columns_of(demand)), find)


def columns_of(demand: Demand) -> list[Any]:
    """Everything that a demand consists of, arrays [S] and numbers."""
    values = [getattr(demand, each.name) for each in fields(demand)]
    pairs = ((v.weight_steps, v.flops) if isinstance(v, Work) else (v,) for v in values)
    return [column for pair in pairs for column in pair]
