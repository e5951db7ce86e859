"""What selection rules with a memory are told before a round: what taking part should cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from edgesim.network.device import Fleet
from edgesim.network.hardware.device_hardware import DeviceHardware
from edgesim.network.span_energy import compute_j, mean_power_w, power_j
from edgesim.network.tdd_service import ALWAYS, AirTimes
from fl.contracts import State, View, Work
from fl.learned_selection.learning_rule import Costs
from fl.method_base.hook_answers import demand_of


def expected_costs(
    fleet: Fleet,
    air_times: AirTimes = (ALWAYS, ALWAYS),
    hardware: Mapping[int, DeviceHardware] | None = None,
) -> Callable[[Any, State, View], Costs]:
    """(method, state, view) -> what taking part costs every device with the whole band.

    Liu, eqs. (24), (25), at the least pruning ratio that the method allows.

    Args:
        fleet: all devices.
        air_times: of uplink and downlink.
        hardware: device -> what it is made of, of those whose state changes as they work.
    """
    sending_w = mean_power_w(air_times[0].share, fleet.tx_power_w, fleet.idle_power_w)

    def costs(method: Any, state: State, view: View) -> Costs:
        devices = np.arange(len(fleet))
        demand = demand_of(method, state, view, devices)
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
        compute_s = cycles / view.cpu_hz
        joules = compute_j(fleet.capacitance, view.cpu_hz, cycles)
        joules = joules + power_j(fleet.static_power_w, compute_s) + power_j(sending_w, upload_s)
        for k, made_of in (hardware or {}).items():
            amounts = fleet.tx_power_w, view.cpu_hz, cycles, upload_s
            joules[k] = made_of.job_j(air_times, *(float(each[k]) for each in amounts))
        return Costs(compute_s, upload_s, joules)

    return costs
