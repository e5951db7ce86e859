"""What selection rules with a memory are told of costs: before a round expected, after it spent."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from edgesim.network.device import Fleet
from edgesim.network.span_energy import compute_j, mean_power_w, power_j
from fl.contracts import Outcome, State, View, Work
from fl.learned_selection.learning_rule import Costs


def expected_costs(fleet: Fleet, air_share: float = 1.0) -> Callable[[Any, State, View], Costs]:
    """(method, state, view) -> what taking part costs every device with the whole band, unpruned.

    Liu, eqs. (24), (25), at the least pruning ratio that the method allows.

    Args:
        fleet: all devices.
        air_share: part of the time of an upload in which it is on the air.
    """
    sending_w = mean_power_w(air_share, fleet.tx_power_w, fleet.idle_power_w)

    def costs(method: Any, state: State, view: View) -> Costs:
        devices = np.arange(len(fleet))
        demand = method.demand(state, view, devices)
        kept = 1.0 - demand.rho_min
        parts = demand.work_fixed, demand.work_prunable
        work = Work(
            parts[0].weight_steps + kept * parts[1].weight_steps,
            parts[0].flops + kept * parts[1].flops,
        )
        bits = demand.bits_fixed + kept * demand.bits_prunable
        upload_s = np.divide(bits, view.rate_bps, out=np.full(len(fleet), np.inf), where=bits > 0.0)
        upload_s[bits <= 0.0] = 0.0
        cycles = fleet.cycles(devices, work)
        joules = compute_j(fleet.capacitance, view.cpu_hz, cycles)
        joules = joules + power_j(sending_w, upload_s)
        return Costs(cycles / view.cpu_hz, upload_s, joules)

    return costs


def spent_energy(fleet: Fleet, air_share: float = 1.0) -> Callable[[Outcome], float]:
    """Outcome -> what its computation and its upload took, J; of a lost job the computation.

    Args:
        fleet: all devices.
        air_share: part of the time of an upload in which it is on the air.
    """

    def spent_j(outcome: Outcome) -> float:
        grant, update = outcome.grant, outcome.update
        if update is None or (update.job.stages is None and not outcome.trained):
            return 0.0
        device = fleet.device(grant.device)
        stages = update.stages()
        cycles = math.fsum(device.cycles(stage.work) for stage in stages)
        joules = compute_j(float(fleet.capacitance[grant.device]), grant.cpu_hz, cycles)
        if math.isnan(outcome.finish_s):
            return float(joules)
        compute_s = math.fsum(device.seconds(stage.work, grant.cpu_hz) for stage in stages)
        idle_w = float(fleet.idle_power_w[grant.device])
        sending_w = mean_power_w(air_share, grant.power_w, idle_w)
        return float(joules + power_j(sending_w, max(outcome.finish_s - compute_s, 0.0)))

    return spent_j
