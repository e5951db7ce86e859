"""The network of a scenario with a layout: its channel, and its sectors with their links."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import simpy

from edgesim.network.adaptation.link_adaptation import make_repetitions
from edgesim.network.device import Fleet
from edgesim.network.fading.cross_links import CrossLinkFading
from edgesim.network.fading.fading_choice import make_fading
from edgesim.network.flows.ideal_downlink import Downlink
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.measured import MeasuredInterference
from edgesim.network.interference.moving_sectors import MovingSectors
from edgesim.network.interference.network_cell import Network
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_channel import (
    MovingLinks,
    SectorChannel,
    ServingSites,
)
from edgesim.network.layout.coupling import Coupling, SectorLinks, make_coupling
from edgesim.network.layout.sites import Sites
from edgesim.network.make_channel import radio_options, receiver_loss
from edgesim.network.mobility.a3_event import A3Rule
from edgesim.network.mobility.movement import Movement
from edgesim.network.mobility.moving_channel import default_refresh_s
from edgesim.network.mobility.serving_sectors import LossRule, ServingSectors
from edgesim.network.planned_gains import make_planned_gains
from edgesim.network.propagation.path_loss import LossesByPlace
from edgesim.scenario.allocation.allocation_schema import AllocationSection
from edgesim.scenario.cells.handover_schema import HandoverSection
from edgesim.scenario.cells.interference_schema import LOAD, MEASURED, NONE, RESOLVED, Interference
from edgesim.scenario.network_schema import NetworkSection
from fl.contracts import Array, Streams


def make_sector_channel(
    network: NetworkSection,
    fleet: Fleet,
    streams: Streams,
    movement: Movement | None = None,
    own: LossesByPlace | None = None,
) -> SectorChannel:
    """The channel of devices to the sectors of a scenario's layout.

    Args:
        network: the section, with a layout.
        fleet: the devices, with their places.
        streams: random streams of the run.
        movement: where the devices are over time; None: nobody moves.
        own: path losses by code of the user's own; None: by the section's model.
    """
    coupling = make_coupling(network, fleet, streams, own)
    links = coupling.at(np.stack([fleet.x_m, fleet.y_m], axis=1))
    moving = None if movement is None else _moving(network, coupling, movement)
    return served_by(network, coupling.sites, links, links.serving, streams, moving)


def served_by(
    network: NetworkSection,
    sites: Sites,
    links: SectorLinks,
    serving: Array,
    streams: Streams,
    moving: MovingLinks | None = None,
) -> SectorChannel:
    """The channel of devices to sectors that serve them.

    Args:
        network: the section, with a layout.
        sites: of the layout.
        links: of the devices to all sectors.
        serving: sector of each device, int [K].
        streams: random streams of the run.
        moving: the links of devices that move; None: nobody moves.
    """
    own = np.arange(len(serving)), sites.site_of[serving]
    delay_s = None if links.delay_spread_s is None else links.delay_spread_s[own]
    fading = make_fading(network, links.k_factor[own], delay_s, streams)
    options = radio_options(network, fading, streams)
    places = ServingSites(links.distance_m[own], links.line_of_sight[own], links.beyond_scope)
    couplings = Couplings(links.coupling, serving)
    cross = None
    if network.channel.fading.links == "all":
        cross = CrossLinkFading(streams, links.k_factor[:, sites.site_of])
    return SectorChannel(couplings, places, receiver_loss(network), moving, cross, **options)


def _moving(network: NetworkSection, coupling: Coupling, movement: Movement) -> MovingLinks:
    """The links of devices that move."""

    def links_at(time_s: float) -> SectorLinks:
        return coupling.at(movement.at(time_s))

    refresh_s = network.channel.refresh_s or default_refresh_s(network, movement)
    by_place = isinstance(network.channel.fading.k_db, str)
    speed, site_of = movement.top_speed_m_per_s, coupling.sites.site_of
    return MovingLinks(links_at, refresh_s, speed, site_of, by_place)


def make_walk(section: HandoverSection | None, channel: SectorChannel) -> MovingSectors | None:
    """What moves the devices of a network; None: nobody moves.

    Args:
        section: a scenario's ``network.handover``.
        channel: of the network.
    """
    moving, section = channel.moving, section or HandoverSection()
    if moving is None:
        return None
    rule = A3Rule(
        section.offset_db,
        section.hysteresis_db,
        section.time_to_trigger_s,
        section.filter,
        section.sample_s,
        never=section.event == "none",
    )
    loss = LossRule(section.lost_below_db, section.lost_after_s)
    sectors = ServingSectors(moving.at, rule, moving.refresh_s, loss)
    return MovingSectors(
        sectors, channel, moving.site_of, section.interruption_s, moving.k_by_place
    )


def planned_interference(network: NetworkSection, allocation: AllocationSection) -> str:
    """What the plans of a network count with, see `ExpectedInterference`."""
    heard = network.interference or Interference()
    return NONE if heard.mode == NONE else allocation.interference


def make_network_uplink(
    env: simpy.Environment,
    network: NetworkSection,
    channel: SectorChannel,
    streams: Streams,
    measured: MeasuredInterference | None = None,
) -> NetworkUplink:
    """The uplink of all sectors of a layout.

    Args:
        env: the simulation environment.
        network: the section.
        channel: of all devices, whose couplings follow those that move.
        streams: random streams of the run.
        measured: takes what the uploads meet; None: nobody asks.
    """
    heard = network.interference or Interference()
    resolved: dict[str, Any] = {}
    if heard.mode == RESOLVED:
        resolved = {"blocks": network.carrier and network.carrier.blocks, "streams": streams}
    return NetworkUplink(
        env,
        channel,
        channel.couplings,
        heard.mode,
        heard.refresh_s,
        network.uplink.share,
        repetitions=make_repetitions(network, streams),
        walk=make_walk(network.handover, channel),
        measured=measured,
        **resolved,
    )


def make_network(
    env: simpy.Environment,
    network: NetworkSection,
    allocation: AllocationSection,
    channel: SectorChannel,
    streams: Streams,
    make_downlink: Callable[[NetworkUplink], Downlink],
    **options: Any,
) -> Network:
    """The sectors of a scenario with a layout.

    Args:
        env: the simulation environment.
        network: the section.
        allocation: the section.
        channel: of `make_sector_channel`; what a run changes of it is its own.
        streams: random streams of the run.
        make_downlink: how the model reaches the devices that an uplink serves.
        options: of `edgesim.network.cell.Cell`, but links, channel and planned gains.
    """
    channel = channel.of(channel.couplings.copy())
    planned = planned_interference(network, allocation)
    measured = MeasuredInterference(channel.couplings.sectors) if planned == MEASURED else None
    uplink = make_network_uplink(env, network, channel, streams, measured)
    return Network(
        channel.couplings,
        planned,
        expects_load=uplink.interference == LOAD,
        measured=measured,
        env=env,
        channel=channel,
        uplink=uplink,
        downlink=make_downlink(uplink),
        streams=streams,
        planned_gains=make_planned_gains(allocation, channel),
        **options,
    )
