"""Warnings about devices that walk out of the ranges of the path loss while a run goes on."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from edgesim.errors import counted
from edgesim.network.channel import Channel


def range_warnings(channel: Channel, ends_s: Iterable[float]) -> list[str]:
    """One sentence for each range that a device is out of when a round ends and another starts.

    It names the first device of those that were within the range at the start of the run.

    Args:
        channel: of the devices.
        ends_s: when each round but the last one ended, in order, s.
    """
    if math.isinf(channel.refresh_s):
        return []  # nobody moves
    at_start = {each.reason: each.devices for each in channel.beyond_scope()}
    found: dict[str, str] = {}
    for done, time_s in enumerate(ends_s, start=1):
        for out in channel.beyond_scope(time_s):
            walked = np.flatnonzero(out.devices & np.logical_not(at_start.get(out.reason, False)))
            if walked.size and out.reason not in found:
                k = int(walked[0])
                found[out.reason] = (
                    f"device {k} is {out.distance_m[k]:.4g} m from its base station after "
                    f"{counted(done, 'round')}, at {time_s:.4g} s, {out.reason}"
                )
    return list(found.values())
