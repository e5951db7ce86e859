"""What downlinks have in common, and the one that takes no time."""

from __future__ import annotations

import numpy as np

from edgesim.network.flows.link import Carrying, Link
from edgesim.network.planned_gains import PlannedGains
from edgesim.records.span import Span
from fl.contracts import Array, Grant


class Downlink(Link):
    """A link to the devices whose time can be planned."""

    def seconds(self, bits: Array, devices: Array, gains: PlannedGains) -> Array:
        """Time [S] that sending ``bits`` [S] to ``devices`` [S] is planned to take, s."""
        raise NotImplementedError

    def alone_s(self, bits: Array, devices: Array, gains: PlannedGains) -> Array:
        """The same [S] of each device if nobody else receives, s."""
        raise NotImplementedError


class IdealDownlink(Downlink):
    """Bits arrive at once and are only counted: Liu does not charge the downlink."""

    def carry(self, bits: float, grant: Grant, span: Span | None = None) -> Carrying:
        if span is not None:
            span.bits = bits
        yield from ()

    def seconds(self, bits: Array, devices: Array, gains: PlannedGains) -> Array:
        return np.zeros(len(devices))

    alone_s = seconds
