"""What devices demand of a round as a pruning problem: Liu, eqs. (43) to (47)."""

from __future__ import annotations

import numpy as np

from edgesim.network.channel import Channel
from edgesim.network.device import Fleet
from fl.contracts import Array, Demand, View
from solvers import EnergyTerms, PruningProblem


def pruning_problem(
    channel: Channel,
    fleet: Fleet,
    demand: Demand,
    view: View,
    served: Array,
    slack_s: Array,
    fixed_s: Array,
    gain: Array,
    band: float = 1.0,
) -> PruningProblem:
    """The pruning problem of some devices of a demand: Liu, eqs. (43) to (47).

    Args:
        channel: the uplink's channel.
        fleet: all devices.
        demand: of S devices.
        view: what the server knows.
        served: positions of the devices in the demand, int [K].
        slack_s: A, time left for what pruning shortens [S], s.
        fixed_s: `Planner.unprunable_s` [S], s.
        gain: channel gains to plan with [K], linear.
        band: part of the band that is divided, of which the shares are fractions.
    """
    everybody = np.asarray(demand.devices, dtype=int)
    devices = everybody[served]
    # SNR over the whole band per watt sent, 1/W
    gain_per_w = gain / channel.band_noise_w
    power_w, full_share = _powers(channel, fleet, devices, view, band)
    prunable, fixed = (
        fleet.cycles(everybody, work) for work in (demand.work_prunable, demand.work_fixed)
    )
    cycles = np.broadcast_to(fixed + (1.0 - demand.rho_min) * prunable, everybody.shape)
    return PruningProblem(
        bits=demand.bits_prunable[served],
        compute_s=fleet.seconds(everybody, demand.work_prunable, view.cpu_hz)[served],
        slack_s=slack_s[served],
        rate_bps=channel.rate_bps(band, power_w, gain),
        weight=demand.weight[served],
        rho_min=demand.rho_min[served],
        rho_max=demand.rho_max[served],
        bits_fixed=demand.bits_fixed[served],
        snr=None if channel.noise_w is not None else power_w * gain_per_w / band,
        before_s=fixed_s[served],
        law=channel.law,
        full_power_share=full_share,
        energy=EnergyTerms(
            cycles=cycles[served],
            kappa=fleet.capacitance[devices],
            # a throttled processor may be slower than the least clock of its choice
            f_min_hz=np.minimum(fleet.min_cpu_hz * view.capability, view.cpu_hz)[devices],
            f_max_hz=view.cpu_hz[devices],
            p_max_w=power_w,
            gain=gain_per_w,
            air_share=channel.air_times[0].share,
        ),
    )


def _powers(
    channel: Channel, fleet: Fleet, devices: Array, view: View, band: float
) -> tuple[Array, Array | None]:
    """(power over this part of the band [K], W; share of it from which on that is sent [K]).

    The second is None where devices send with all their power whatever the share.
    """
    most_w = fleet.tx_power_w[devices]
    power_w = channel.sent_w(band, most_w, view.now_s, devices)
    if channel.power_control is None:
        return power_w, None
    unlimited_w = channel.sent_w(band, np.inf, view.now_s, devices)
    return power_w, np.minimum(most_w / unlimited_w, 1.0)
