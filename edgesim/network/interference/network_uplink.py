"""The uplink of a network: uploads of all sectors, which disturb each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import simpy

from edgesim.network.adaptation.drawn_repetitions import DrawnRepetitions
from edgesim.network.flows.flow_table import FlowTable
from edgesim.network.flows.flow_timer import FlowTimer
from edgesim.network.flows.link import Carrying, SegmentObserver
from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.interferers import Interferers
from edgesim.network.interference.measured import MeasuredInterference
from edgesim.network.interference.moving_sectors import MovingSectors
from edgesim.network.interference.resource_grid import ResourceGrid
from edgesim.network.interference.sector_bands import SectorBands
from edgesim.network.interference.sector_channel import SectorChannel
from edgesim.network.interference.uplink_rates import UplinkRates
from edgesim.network.uplink import Uplink
from edgesim.records.span import Span
from edgesim.scenario.cells.interference_schema import EVENTS, RESOLVED
from fl.contracts import Array, Grant, Streams

FAILED = "failed"  # why an upload whose link has failed is interrupted


class NetworkUplink(Uplink):
    """The bands of all sectors; to a device it looks as the `Uplink` of one cell.

    Args:
        env: the simulation environment.
        channel: gains of the devices at their own sectors.
        couplings: gains at all sectors.
        interference: who interferes with an upload, a mode of `Interferers`.
        refresh_s: of ``refresh``, s.
        share: fixed or reclaim, see `Uplink`; freed band stays in its sector.
        on_segment: see `Link`.
        repetitions: see `Uplink`.
        walk: moves the devices; None: they stand still.
        measured: takes what the uploads meet; None: nobody asks.
        blocks: N_RB of ``resolved``.
        streams: random streams of the run, of ``resolved``.
    """

    def __init__(
        self,
        env: simpy.Environment,
        channel: SectorChannel,
        couplings: Couplings,
        interference: str = EVENTS,
        refresh_s: float = math.inf,
        share: str = "fixed",
        on_segment: SegmentObserver | None = None,
        repetitions: DrawnRepetitions | None = None,
        walk: MovingSectors | None = None,
        measured: MeasuredInterference | None = None,
        blocks: int | None = None,
        streams: Streams | None = None,
    ) -> None:
        super().__init__(env, channel, share, on_segment, repetitions)
        self.couplings, self.bands = couplings, SectorBands(couplings, share == "reclaim")
        if (blocks is not None and streams is not None) != (interference == RESOLVED):
            raise ValueError("a number of resource blocks goes with interference resolved only")
        grid = ResourceGrid(self.bands, blocks, streams) if blocks and streams else None
        self.rates = UplinkRates(couplings, channel, self.bands, grid)
        self.interferers = Interferers(interference, refresh_s, self.rates)
        self.measured = measured
        table = FlowTable(len(couplings), self._rates_now, self.service, on_segment)
        self.timer = FlowTimer(env, table, self._next_change_s)
        self.walk, self._leaving = walk, dict[int, simpy.Event]()  # device that sends -> its event
        self.on_handover: Callable[[], None] | None = None
        self.cut_until_s = np.zeros(len(couplings))  # devices that are being handed over
        self._moved: set[int] = set()  # devices whose uploads were cut by a handover
        self._pausing: dict[int, bool] = {}  # uploads in a pause -> link failed
        self.asked = np.zeros(len(couplings), dtype=bool)  # with a grant of the present round

    @property
    def interference(self) -> str:
        """Who interferes with uploads; see `Interferers`."""
        return self.interferers.mode

    @property
    def coupled(self) -> bool:
        return True

    def expect(self, power_w: Array | None) -> None:
        self.interferers.expected = power_w

    def begin_round(self, grants: Sequence[Grant], others_go_on: bool = False) -> None:
        if not others_go_on:
            self.begin_part(grants)
            return
        self._grant(grants)

    def begin_part(self, grants: Sequence[Grant], among: Array | None = None) -> None:
        """Begin the round of some sectors, while the round of others may go on.

        Args:
            grants: of the devices that start.
            among: all devices of those sectors, int [N]; None: of all sectors.
        """
        devices = np.arange(len(self.couplings)) if among is None else among
        self.bands.forget(among)
        if self.rates.grid is not None:
            self.rates.grid.forget(devices)
        if self.measured is not None:
            self.measured.begin_round(self.env.now)
        self.rates.power_w[devices], self.asked[devices] = 0.0, False
        self._grant(grants)

    def _grant(self, grants: Sequence[Grant]) -> None:
        self.bands.grant(grants)
        others_go_on = bool(self.asked.any())
        for grant in grants:
            self.rates.power_w[grant.device] = grant.power_w
            self.asked[grant.device] = grant.share > 0.0
        self.interferers.begin_round(self.asked, self.env.now, others_go_on)
        if self.timer.table.active.any():
            self.timer.changed()
        self.timer.others_come = True

    def release(self, device: int) -> None:
        self._pausing.pop(device, None)
        if self.bands.granted[device] > 0.0 or self.bands.held[device] > 0.0:
            self.bands.release(device)
            self.timer.changed()

    def follow(self) -> None:
        if self.walk is None:
            return
        for each in self.walk.follow(self.env.now):
            self.hand_over(each.device, each.sector, each.lost, each.time_s)
        self.walk.update_k()

    def hand_over(
        self, device: int, sector: int, lost: bool = False, at_s: float | None = None
    ) -> None:
        """Serve a device by another sector from now on; bits left go on there.

        Args:
            device: its number.
            sector: that serves it from now on.
            lost: its link has failed, and with it what it sends.
            at_s: when it was handed over, which a resumed run learns later, s; None: now.
        """
        self.bands.hand_over(device, sector)
        since_s = self.env.now if at_s is None or device in self._leaving else at_s
        self.cut_until_s[device] = since_s + self._interruption_s
        if device in self._leaving:
            self._leaving.pop(device).succeed(lost)
        if device in self._pausing:
            self._pausing[device] |= lost
        if self.on_handover is not None:
            self.on_handover()
        self.timer.changed()

    def pause_s(self, device: int) -> float | None:
        """How long a device stays without a link before it can send, s; None: it has one.

        Raises:
            simpy.Interrupt: the link has failed in the pause before.
        """
        if device in self._moved:
            self._moved.remove(device)
            self._pausing[device] = False
            return self._interruption_s
        self.follow()
        if self._pausing.pop(device, False):
            raise simpy.Interrupt(FAILED)
        left_s = float(self.cut_until_s[device]) - self.env.now
        if left_s <= 0.0:
            return None
        self._pausing[device] = False
        return left_s

    @property
    def _interruption_s(self) -> float:
        """Time without a link in a handover, s."""
        return self.walk.interruption_s if self.walk else 0.0

    def next_move_s(self, time_s: float) -> float:
        """When a place or a serving sector changes next, s; inf: never."""
        return math.inf if self.walk is None else self.walk.next_change_s(time_s)

    def carry(self, bits: float, grant: Grant, span: Span | None = None) -> Carrying:
        device, left, is_cut = grant.device, bits, False
        # What a cut left can round to nothing: then nobody asked for the pause that was due.
        self._moved.discard(device)
        self.follow()
        sector = int(self.couplings.serving[device])
        self.bands.begin(device, grant.share)
        self.rates.factor[device], tail_s = self._repeated(grant, bits)
        try:
            if bits > 0.0:
                done = self.timer.start(device, bits)
                self._leaving[device] = leaving = self.env.event()
                yield done | leaving if self.walk else done
                if leaving.triggered and not done.triggered:
                    if leaving.value:
                        raise simpy.Interrupt(FAILED)
                    is_cut = True
                    return
                left = 0.0
            if tail_s > 0.0:
                self._leaving.pop(device, None)
                yield self.env.timeout(tail_s)
        finally:
            self._leaving.pop(device, None)
            left = min(left, self.timer.stop(device))
            if span is not None:
                span.bits, span.sector = bits - left, sector
                if bits > 0.0:
                    span.waited_s = float(self.timer.table.waited_s[device])
                if bits > 0.0 and self.service is not None:
                    span.waited_air_s = float(self.timer.table.waited_air_s[device])
                span.transmissions = self._taken(device)
                ratio = self.timer.table.mean_ratio(device)
                span.sinr_db = 10.0 * math.log10(ratio) if ratio > 0.0 else math.nan
                span.served_s = float(self.timer.table.served_s[device])
            if is_cut and bits - left < bits:
                self._moved.add(device)
                self.bands.pause(device)
            else:
                self.release(device)

    def _repeated(self, grant: Grant, bits: float) -> tuple[float, float]:
        """(factor of the rate, time after the last bit, s) of an upload that begins now."""
        if self.repetitions is None and self.channel.estimate is None:
            return 1.0, 0.0
        sending = self._with_band(self.timer.table.active)
        gain = float(self.rates.gains(sending, self.env.now)[grant.device])
        share = float(self.bands.shares()[grant.device])  # 0: it waits for a band
        return self._draw(grant, share or grant.share, bits, gain)

    def _rates_now(self, sending: Array, time_s: float) -> tuple[Array, Array, Array]:
        self.follow()
        sending = self._with_band(sending)
        self.interferers.look(sending, time_s)
        waiting = (self.bands.granted > 0.0) & ~self.bands.sending
        self.timer.others_come = bool(waiting.any())
        rates = self.rates(sending, time_s)
        if self.measured is not None:
            served = np.bincount(self.couplings.serving, sending, self.couplings.sectors) > 0.0
            self.measured.change(self.rates.density, served, time_s)
        return rates

    def _with_band(self, active: Array) -> Array:
        """Who sends of the devices with bits left, bool [K]: not those who wait for a band."""
        return active & (self.bands.held > 0.0)

    def _next_change_s(self, time_s: float) -> float:
        change_s = min(self.channel.next_change_s(time_s), self.next_move_s(time_s))
        return min(change_s, self.interferers.next_look_s(time_s))
