"""A server that fails and comes back with the last state that it had stored.

What it was told since is void: jobs at work and updates that wait are discarded, and the versions
made since count for nothing. Numbers of versions are never used again.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import simpy

from edgesim.clocks.flights import DISCARDED, Desk
from edgesim.presence.timeline import Timeline
from fl.contracts import Array, Streams


@dataclass(frozen=True, eq=False)
class ServerFailures:
    """When a server is down, and how often it stores its state.

    Args:
        timeline: of one member, on while the server is up.
        save_every: versions between two states that are stored.
    """

    timeline: Timeline
    save_every: int = 1

    def is_down(self, time_s: float) -> bool:
        """Is the server down at an instant?"""
        return not self.timeline.state_of(0, time_s)[0]

    def next_change_s(self, time_s: float) -> float:
        """The next instant at which it fails or is back, s."""
        return self.timeline.state_of(0, time_s)[1]


def failing(up_s: float, repair_s: float, streams: Streams) -> Timeline:
    """A server that fails after exponential times, and is back after a fixed one."""

    def edges_after(n: int, before_s: Array) -> Array:
        if n % 2:
            return before_s + repair_s
        return before_s + up_s * streams.stream("server", round=n).standard_exponential(1)

    return Timeline(np.array([True]), edges_after)


def discard_everything(desk: Desk) -> Generator[simpy.Event, Any, None]:
    """Interrupt all jobs at work, and forget the updates that wait; both are in the tables."""
    if desk.out:
        yield desk.interrupt(DISCARDED)
        yield desk.end_of_this_instant()
        desk.collect(None)
    for flight in desk.held:
        flight.outcome = replace(flight.ended, status=DISCARDED, received=False)
    desk.gone, desk.held, desk.too_stale = [*desk.gone, *desk.held], [], []
    desk.void, desk.asked = desk.void + desk.asked, 0
