"""Where all devices of a cell are over time, by the mobility of their classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from edgesim.errors import ScenarioKeyError
from edgesim.network.device import Fleet
from edgesim.network.mobility.gauss_markov import GaussMarkov
from edgesim.network.mobility.position_trace import PositionTraceError, read_positions
from edgesim.network.mobility.random_waypoint import RandomWaypoint
from edgesim.scenario.hardware.device_schema import DeviceClass
from edgesim.scenario.per_device_values import Draw
from fl.contracts import Array, Streams


class Walk(Protocol):
    """Positions of some devices as a pure function of time, so that a resumed run needs none."""

    @property
    def top_speed_m_per_s(self) -> float:
        """What no device exceeds, or hardly ever."""
        ...

    def at(self, time_s: float) -> Array:
        """Positions [K, 2] at an instant, m."""
        ...


@dataclass(frozen=True, eq=False)
class Movement:
    """Positions of all devices over time.

    Args:
        still_m: of the devices that do not move [K, 2], m; any for the others.
        walks: (class, file or "", devices, their walk) of each class that moves.
    """

    still_m: Array
    walks: tuple[tuple[int, str, slice, Walk], ...]

    @property
    def top_speed_m_per_s(self) -> float:
        """What no device exceeds, or hardly ever."""
        return max((walk.top_speed_m_per_s for *_, walk in self.walks), default=0.0)

    def at(self, time_s: float) -> Array:
        """Positions [K, 2] at an instant, m.

        Raises:
            ScenarioKeyError: a trace has ended.
        """
        position_m = self.still_m.copy()
        for index, file, here, walk in self.walks:
            try:
                position_m[here] = walk.at(time_s)
            except PositionTraceError as error:
                raise _of_trace(index, file, error) from error
        return position_m

    def placed(self, fleet: Fleet, time_s: float = 0.0) -> Fleet:
        """The fleet where its devices are at an instant."""
        x, y = self.at(time_s).T
        return replace(fleet, x_m=x, y_m=y, distance_m=np.hypot(x, y))


def make_movement(
    classes: Sequence[DeviceClass], fleet: Fleet, streams: Streams, folder: Path
) -> Movement | None:
    """The movement of a scenario's ``devices``; None: nobody moves.

    Args:
        classes: the section.
        fleet: the devices, where those are that do not move.
        streams: random streams of the run.
        folder: paths of traces are relative to it.

    Raises:
        ScenarioKeyError: a trace cannot be used.
    """
    walks, first = [], 0
    for index, cls in enumerate(classes):
        here = slice(first, first := first + cls.count)
        if cls.mobility is not None:
            walk = _walk(cls, index, np.arange(here.start, here.stop), streams, folder)
            walks.append((index, cls.mobility.trace or "", here, walk))
    if not walks:
        return None
    return Movement(np.stack([fleet.x_m, fleet.y_m], axis=1), tuple(walks))


def _walk(cls: DeviceClass, index: int, devices: Array, streams: Streams, folder: Path) -> Walk:
    mobility, area = cls.mobility, cls.position
    assert mobility is not None  # the caller asks for classes that move
    if mobility.trace is not None:
        try:
            return read_positions(folder / mobility.trace, len(devices), mobility.end)
        except PositionTraceError as error:
            raise _of_trace(index, mobility.trace, error) from error
    assert area is not None  # checked with the scenario
    if mobility.waypoint is not None:
        speed, pause = (ends(each) for each in (mobility.waypoint.speed, mobility.waypoint.pause))
        return RandomWaypoint(streams, devices, area, speed, pause)
    motion: Any = mobility.gauss_markov
    values = motion.speed_m_per_s, motion.deviation_m_per_s, motion.memory, motion.step_s
    return GaussMarkov(streams, devices, area, *values)


def ends(values: Draw) -> tuple[float, float]:
    """Smallest and largest of a constant or uniform value."""
    return values.values[0], values.values[-1]


def _of_trace(index: int, file: str, error: PositionTraceError) -> ScenarioKeyError:
    return ScenarioKeyError(("devices", index, "mobility", "trace"), f"is {file}, which {error}")
