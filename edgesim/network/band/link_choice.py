"""The links that a scenario names."""

from __future__ import annotations

import math

import simpy

from edgesim.network.adaptation.link_adaptation import make_repetitions
from edgesim.network.band.shared_uplink import SharedUplink
from edgesim.network.channel import Channel
from edgesim.network.downlink.broadcast import BroadcastDownlink
from edgesim.network.downlink.downlink_choice import one_cell_downlink
from edgesim.network.downlink.sector_downlink import UNICAST
from edgesim.network.flows.ideal_downlink import Downlink, IdealDownlink
from edgesim.network.uplink import Uplink
from edgesim.scenario.network_schema import AMONG_SENDERS, NetworkSection
from fl.contracts import Streams


def make_links(
    env: simpy.Environment,
    network: NetworkSection,
    channel: Channel,
    streams: Streams,
    budget_s: float = math.inf,
) -> tuple[Uplink, Downlink]:
    """(uplink, downlink) of a scenario's ``network`` section; ``budget_s`` is T_th, s."""
    down, uplink = network.downlink, make_uplink(env, network, channel, streams, budget_s)
    if down.mode == "ideal" or down.tx_power_w is None:
        return uplink, IdealDownlink(env, channel)
    if down.mode == UNICAST:
        return uplink, one_cell_downlink(env, network, channel)
    share = network.carrier.resource_shares[1] if network.carrier else 1.0
    return uplink, BroadcastDownlink(
        env, channel, network.downlink_power_w, down.bandwidth_hz, resource_share=share
    )


def make_uplink(
    env: simpy.Environment,
    network: NetworkSection,
    channel: Channel,
    streams: Streams,
    budget_s: float,
) -> Uplink:
    """The uplink of a scenario's ``network`` section."""
    share = network.uplink.share
    if share in AMONG_SENDERS:
        return SharedUplink(env, channel, share, budget_s)
    # A slot is a share that the plan gives for the time from dispatch to release.
    kept = "fixed" if share == "slots" else share
    return Uplink(env, channel, kept, repetitions=make_repetitions(network, streams))
