"""The presence of all devices of a cell: a device is there where every part of it is on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgesim.presence.timeline import Timeline
from fl.contracts import Array

COLUMNS = ("device", "start_s", "end_s")


@dataclass(frozen=True, eq=False)
class Part:
    """One reason for which devices come and go.

    Args:
        timeline: of its members.
        member: of each device [K], a number in the timeline; -1: it does not concern the device.
    """

    timeline: Timeline
    member: Array


class Presence:
    """Who is there, at any instant.

    Args:
        devices: K, in the cell.
        parts: their reasons; a device without any is always there.
    """

    def __init__(self, devices: int, parts: list[Part]) -> None:
        self.devices, self.parts = devices, parts

    def of(self, devices: Array) -> Presence:
        """The presence of some devices [N], by numbers of their own from 0 on."""
        parts = [Part(each.timeline, each.member[devices]) for each in self.parts]
        return Presence(len(devices), parts)

    def at(self, time_s: float) -> Array:
        """Who is there at an instant, bool [K]."""
        there = np.ones(self.devices, dtype=bool)
        for part in self.parts:
            on = part.timeline.at(time_s)[part.member]
            there &= on | (part.member < 0)
        return there

    def never_there(self) -> Array:
        """Devices that are not there at any instant, int [K'].

        Only traces can say so of a device: all other laws let it return.
        """
        never = np.zeros(self.devices, dtype=bool)
        for part in self.parts:
            off = ~part.timeline.at(0.0) & np.isinf(part.timeline.next_edges_s(0.0))
            never |= off[part.member] & (part.member >= 0)
        return np.flatnonzero(never)

    def returns_s(self, time_s: float) -> Array:
        """Instants before which the absent devices do not return, s [K]; -inf: it is there.

        With one part per device it is the instant of its return; inf: it never returns.
        """
        earliest = np.full(self.devices, -np.inf)
        for part in self.parts:
            off = ~part.timeline.at(time_s)[part.member] & (part.member >= 0)
            edge_s = part.timeline.next_edges_s(time_s)[part.member]
            earliest[off] = np.maximum(earliest[off], edge_s[off])
        return earliest

    def until_s(self, k: int, time_s: float, there: bool) -> float:
        """The first instant, not before ``time_s``, at which device k is there, or is not, s."""
        while math.isfinite(time_s):
            now, change_s = self._state(k, time_s)
            if now == there:
                return time_s
            time_s = change_s
        return math.inf

    def intervals(self, k: int, start_s: float, end_s: float) -> list[tuple[float, float]]:
        """When device k is there between two instants: (start, end) in s, in order."""
        found = []
        begin_s = self.until_s(k, start_s, there=True)
        while begin_s < end_s:
            leave_s = min(self.until_s(k, begin_s, there=False), end_s)
            found.append((begin_s, leave_s))
            begin_s = self.until_s(k, leave_s, there=True)
        return found

    def table(self, end_s: float) -> dict[str, list[Any] | Array]:
        """The intervals from 0 to ``end_s`` of the devices that come and go, by device."""
        reasons = np.zeros(self.devices, dtype=int)
        for part in self.parts:
            reasons += part.member >= 0
        one_by_one, found = [np.flatnonzero(reasons > 1)], list[tuple[Array, ...]]()
        for part in self.parts:
            devices = np.flatnonzero((reasons == 1) & (part.member >= 0))
            columns, merged = part.timeline.sessions(part.member[devices], end_s)
            found.append((devices[columns[0]], *columns[1:]))
            one_by_one.append(devices[merged])
        rows = [
            (k, *interval)
            for k in np.concatenate(one_by_one).tolist()
            for interval in self.intervals(k, 0.0, end_s)
        ]
        found.append(tuple(np.array(rows).reshape(-1, len(COLUMNS)).T))
        device, starts_s, ends_s = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.lexsort((starts_s, device))
        values = device[order].astype(int), starts_s[order], ends_s[order]
        return {name: column.tolist() for name, column in zip(COLUMNS, values, strict=True)}

    def _state(self, k: int, time_s: float) -> tuple[bool, float]:
        """(is device k there, when that can change next)."""
        states = [
            part.timeline.state_of(int(part.member[k]), time_s)
            for part in self.parts
            if part.member[k] >= 0
        ]
        if any(not on and math.isinf(edge_s) for on, edge_s in states):
            return False, math.inf  # whatever the others do
        return all(on for on, _ in states), min((edge_s for _, edge_s in states), default=math.inf)
