"""The solution of a pruning problem as grants: shares, clocks and powers that devices have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edgesim.network.channel import Channel
from edgesim.network.device import Fleet
from edgesim.network.grants import Grants, granted_amounts
from edgesim.network.hardware.clock_levels import ClockLevels
from fl.contracts import Array, Demand, View
from solvers import Allocation


def solution_grants(
    channel: Channel,
    fleet: Fleet,
    devices: Array,
    answer: Allocation,
    view: View,
    band: float = 1.0,
) -> Grants:
    """What a solution grants; clocks and powers are all that devices have where it has none.

    Args:
        channel: the uplink's channel.
        fleet: all devices.
        devices: numbers of those of the problem, int [K].
        answer: its solution.
        view: what the server knows.
        band: beta, part of the band that its shares divide.
    """
    share = np.asarray(answer.share)
    if share.sum() > 1.0 + 1e-12:  # rounding of the user's own solver
        share = share / share.sum()
    share = share * band
    cpu_hz = view.cpu_hz[devices] if answer.cpu_hz is None else answer.cpu_hz
    power_w = answer.power_w
    if power_w is None:
        most_w = fleet.tx_power_w[devices]
        power_w = channel.sent_w(share, most_w, view.now_s, devices)
    return Grants(devices, share, np.asarray(answer.rho), cpu_hz, power_w)


def on_clock_levels(
    grants: Grants,
    levels: ClockLevels,
    fleet: Fleet,
    demand: Demand,
    view: View,
    spare_s: Array,
) -> Grants:
    """The grants with clocks that the processors have: nobody computes longer than planned, but who
    may use up the time that is left.

    Args:
        grants: of K devices.
        levels: clocks that the processors have.
        fleet: all devices.
        demand: of those devices, and maybe of others.
        view: what the server knows.
        spare_s: time between the planned end and the threshold [K], s.
    """
    devices, (cycles, *_) = grants.device, granted_amounts(fleet, demand, grants)
    asked_hz = levels.just_in_time(devices, grants.cpu_hz, cycles, spare_s)
    cpu_hz = levels.rounded_up(devices, asked_hz, view.capability[devices])
    return replace(grants, cpu_hz=np.minimum(cpu_hz, view.cpu_hz[devices]))
