"""A part of a network: some of its devices as a cell of their own, on the air that all share.

Each server of a hierarchy serves sectors of its own. Its devices have numbers of their own from 0
on; what they send is carried, and disturbed, by the one uplink of the whole network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import simpy

from edgesim.network.adaptation.channel_estimate import ChannelEstimate
from edgesim.network.flows.ideal_downlink import IdealDownlink
from edgesim.network.flows.link import Carrying
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.make_network import make_network_uplink, planned_interference
from edgesim.network.interference.network_cell import Network
from edgesim.network.interference.network_uplink import NetworkUplink
from edgesim.network.interference.sector_channel import SectorChannel, ServingSites
from edgesim.network.planned_gains import make_planned_gains
from edgesim.network.uplink import Uplink
from edgesim.records.span import Span
from edgesim.scenario.allocation.allocation_schema import AllocationSection
from edgesim.scenario.cells.interference_schema import NONE
from edgesim.scenario.network_schema import NetworkSection
from fl.contracts import Array, Grant, Streams


@dataclass(frozen=True, eq=False)
class EstimateOfSome(ChannelEstimate):
    """The estimates of a network by the numbers that some of its devices have of their own.

    Args:
        members: their numbers in the network, int [N].
    """

    members: Array

    def power(self, n: int, snr: Any, devices: Any, k_factor: Any = None) -> Any:
        return super().power(n, snr, self.members[devices], k_factor)


class PartChannel(SectorChannel):
    """The channel of some devices of a network: the same gains, by numbers of their own.

    Args:
        whole: of the network, in which nobody moves.
        members: their numbers in the network, int [N].
        sites: that serve them.
    """

    def __init__(self, whole: SectorChannel, members: Array, sites: ServingSites) -> None:
        vars(self).update(vars(whole), sites=sites)
        self.whole, self.members = whole, members
        self.couplings = Couplings(whole.couplings.gain[members], whole.couplings.serving[members])
        self.k_now = whole.large_scale_at(0.0)[1][members]
        if whole.estimate is not None:
            known = {
                each.name: getattr(whole.estimate, each.name) for each in fields(whole.estimate)
            }
            self.estimate = EstimateOfSome(**known, members=members)

    def gains(self, time_s: float) -> Array:
        """h of the devices [N] at their own sectors, linear."""
        return self.whole.gains(time_s)[self.members]

    def relative_powers(self, time_s: float, devices: Any) -> Array | None:
        return self.whole.relative_powers(time_s, self.members[devices])

    def fades_in(self, seconds: Array, devices: Any) -> Array:
        return self.whole.fades_in(seconds, self.members[devices])


class PartUplink(Uplink):
    """The uplink of some devices of a network, which all of it share.

    Args:
        whole: of the network.
        channel: of the devices.
    """

    def __init__(self, whole: NetworkUplink, channel: PartChannel) -> None:
        super().__init__(whole.env, channel, "reclaim" if whole.reclaims else "fixed")
        self.whole, self.members = whole, channel.members

    @property
    def coupled(self) -> bool:
        return True

    def begin_round(self, grants: Sequence[Grant], others_go_on: bool = False) -> None:
        granted = [self._outer(grant) for grant in grants]
        self.whole.begin_part(granted, self.members)

    def _outer(self, grant: Grant) -> Grant:
        """The grant with the device's number in the network."""
        return replace(grant, device=int(self.members[grant.device]))

    def carry(self, bits: float, grant: Grant, span: Span | None = None) -> Carrying:
        return self.whole.carry(bits, self._outer(grant), span)

    def release(self, device: int) -> None:
        self.whole.release(int(self.members[device]))


@dataclass(frozen=True, eq=False)
class SharedAir:
    """A network whose sectors belong to several servers.

    Args:
        network: the section, with a layout.
        allocation: the section.
        channel: of all devices, in which nobody moves.
        tx_power_w: largest power of all devices [K], W.
        streams: random streams of the run.
    """

    network: NetworkSection
    allocation: AllocationSection
    channel: SectorChannel
    tx_power_w: Array
    streams: Streams

    def uplink(self, env: simpy.Environment) -> NetworkUplink:
        """The uplink of all sectors."""
        return make_network_uplink(env, self.network, self.channel, self.streams)

    def cell(
        self, uplink: NetworkUplink, channel: PartChannel, streams: Streams, **options: Any
    ) -> Network:
        """The cell of one server.

        Args:
            uplink: of all sectors.
            channel: of the server's devices.
            streams: random streams of the devices.
            options: of `edgesim.network.cell.Cell`, but env, links, channel and planned gains.
        """
        interference = planned_interference(self.network, self.allocation)
        return Network(
            channel.couplings,
            interference,
            outside=0.0 if interference == NONE else self.outside(channel.members),
            env=uplink.env,
            channel=channel,
            uplink=PartUplink(uplink, channel),
            downlink=IdealDownlink(uplink.env, channel),
            streams=streams,
            planned_gains=make_planned_gains(self.allocation, channel),
            **options,
        )

    def outside(self, members: Array) -> Array:
        """Interference [S] that plans of a server's sectors count with, of all other devices, W/Hz.

        They send all the time, over equal shares of the bands of their sectors: on these their
        power depends where it is controlled.

        Args:
            members: the server's own devices, int [N].
        """
        couplings = self.channel.couplings
        sharers = np.bincount(couplings.serving, minlength=couplings.sectors)[couplings.serving]
        sent_w = np.array(self.channel.sent_w(1.0 / sharers, self.tx_power_w, 0.0), dtype=float)
        sent_w[members] = 0.0
        # All of their gains: none of the sectors of the members serves another device.
        density: Array = np.einsum("k,ks->s", sent_w / self.channel.bandwidth_hz, couplings.gain)
        return density
