"""The uplink whose band is divided among those that send, as a SimPy link."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import simpy

from edgesim.network.band.fluid_sharing import (
    FluidSharing,
    earliest_deadline_share,
    weighted_shares,
)
from edgesim.network.band.processor_sharing import ProcessorSharing
from edgesim.network.band.uploads import Band, Upload
from edgesim.network.channel import Channel
from edgesim.network.flows.link import Carrying
from edgesim.network.flows.stalled_links import stalled
from edgesim.network.uplink import Uplink
from edgesim.records.span import Span
from fl.contracts import Grant


def make_band(share: str, channel: Channel) -> Band:
    """What keeps the uploads of ``network.uplink.share``, fair or edf.

    Args:
        share: ``fair``, the band among those that send in proportion to their shares; ``edf``, the
            whole band to the upload that is due first.
        channel: gains of the devices.
    """
    if share == "edf":
        return FluidSharing(channel, earliest_deadline_share)
    if channel.static and channel.noise_w is not None:
        return ProcessorSharing(channel)
    return FluidSharing(channel, weighted_shares)


class SharedUplink(Uplink):
    """The band, of which only those have a part that send.

    A device waits for its own event; one timer rings for all of them when the next upload ends.

    Args:
        env: the simulation environment.
        channel: gains of the devices.
        share: see `make_band`.
        budget_s: T_th, s: an upload is due so long after its device started.
    """

    coupled = True

    def __init__(
        self, env: simpy.Environment, channel: Channel, share: str, budget_s: float = math.inf
    ) -> None:
        super().__init__(env, channel)
        self.budget_s, self.by_weight = budget_s, share == "fair"
        self.band = make_band(share, channel)
        self._due_s: dict[int, float] = {}
        self._uploads: dict[int, tuple[Upload, simpy.Event]] = {}  # of those that send
        self._timer: simpy.Event | None = None
        self._parked = False  # uploads begin, and nothing is sent: a checkpoint is played again

    def begin_round(self, grants: Sequence[Grant], others_go_on: bool = False) -> None:
        if not others_go_on:
            self._due_s = {}
        due_s = self.env.now + self.budget_s
        self._due_s |= {grant.device: due_s for grant in grants}

    def release(self, device: int) -> None:
        """Nothing: a device that does not send has no part of the band."""

    def carry(self, bits: float, grant: Grant, span: Span | None = None) -> Carrying:
        device, now_s = grant.device, self.env.now
        due_s = self._due_s.get(device, math.inf)
        upload = Upload(device, bits, grant.share, grant.power_w, now_s, due_s)
        try:
            if bits > 0.0:
                yield from self._sent(upload)
        finally:
            if span is not None:
                span.bits, span.waited_s = bits - upload.bits, upload.waited_s

    def _sent(self, upload: Upload) -> Carrying:
        if self.by_weight and upload.weight <= 0.0:
            raise stalled(upload.device, upload.bits, upload.weight)
        done = self.env.event()
        self._uploads[upload.device] = upload, done
        if not self._parked:
            self.band.begin(self.env.now, upload)
            self._set_timer()
        try:
            yield done
        finally:
            if self._uploads.pop(upload.device, None) is not None:  # interrupted
                self.band.leave(self.env.now, upload.device)
                self._set_timer()

    def _set_timer(self) -> None:
        wait_s = self.band.wait_s()
        self._timer = None
        if math.isfinite(wait_s):
            self._timer = self.env.timeout(wait_s)
            assert self._timer.callbacks is not None  # it has just been made
            self._timer.callbacks.append(self._ring)

    def _ring(self, timer: simpy.Event) -> None:
        if timer is not self._timer:  # somebody has come or gone since it was set
            return
        for upload in self.band.ring(self.env.now):
            self._uploads.pop(upload.device)[1].succeed()
        self._set_timer()

    def record(self) -> dict[str, Any] | None:
        return self.band.record()

    def park(self) -> None:
        self._parked = True

    def arrive(self, device: int, waited_s: float = 0.0) -> None:
        if device in self._uploads:
            upload, done = self._uploads.pop(device)
            upload.bits, upload.waited_s = 0.0, waited_s
            done.succeed()

    def unpark(self, record: dict[str, Any]) -> None:
        self._parked = False
        self.band.restore(record, {k: upload for k, (upload, _) in self._uploads.items()})
        self._set_timer()
