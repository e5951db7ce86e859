"""The downlinks that a scenario names for its sectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import simpy

from edgesim.network.channel import Channel
from edgesim.network.downlink.sector_downlink import SectorDownlink
from edgesim.network.flows.ideal_downlink import Downlink, IdealDownlink
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.scenario.allocation.allocation_schema import AllocationSection
from edgesim.scenario.cells.interference_schema import (
    EVENTS,
    FULL,
    LOAD,
    NONE,
    REFRESH,
    RESOLVED,
)
from edgesim.scenario.network_schema import NetworkSection

# Loads, refreshes and blocks are those of uploads: downlinks hear all sectors, or those that send.
HEARD = {NONE: NONE, FULL: FULL, LOAD: FULL, REFRESH: EVENTS, EVENTS: EVENTS, RESOLVED: EVENTS}


def one_cell_downlink(
    env: simpy.Environment, network: NetworkSection, channel: Channel
) -> SectorDownlink:
    """The downlink of a scenario with one cell, whose devices hear no other."""
    devices = len(channel.path_gain)
    couplings = Couplings(np.ones((devices, 1)), np.zeros(devices))
    alone: dict[str, Any] = {"interference": NONE, "planned": NONE}
    return SectorDownlink(env, channel, couplings, **alone, **_options(network))


def network_downlink(
    env: simpy.Environment,
    network: NetworkSection,
    allocation: AllocationSection,
    uplink: NetworkUplink,
) -> Downlink:
    """The downlink of a scenario with a layout.

    Args:
        env: the simulation environment.
        network: the section.
        allocation: the section.
        uplink: of the network, which has its channel and its couplings.
    """
    if network.downlink.mode == "ideal":
        return IdealDownlink(env, uplink.channel)
    heard = HEARD[uplink.interference]
    planned = NONE if NONE in (heard, allocation.interference) else FULL
    return SectorDownlink(
        env,
        uplink.channel,
        uplink.couplings,
        interference=heard,
        planned=planned,
        uplink=uplink,
        **_options(network),
    )


def _options(network: NetworkSection) -> dict[str, Any]:
    """What a scenario says of every sector's downlink."""
    down, carrier = network.downlink, network.carrier
    return {
        "tx_power_w": network.downlink_power_w,
        "bandwidth_hz": down.bandwidth_hz,
        "mode": down.mode,
        "resource_share": carrier.resource_shares[1] if carrier else 1.0,
    }
