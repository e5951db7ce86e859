"""Clocks that a processor has (DVFS): what is asked for is rounded up to one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgesim.network.hardware.device_hardware import DeviceHardware
from edgesim.scenario.hardware.device_schema import DeviceClass
from fl.contracts import Array

ROUNDING = 1e-9  # relative, by which a clock that is asked for may exceed a level


@dataclass(frozen=True, eq=False)
class ClockLevels:
    """The levels of all devices.

    Args:
        levels_hz: ascending [K, L], Hz, inf behind the last; of a device without levels all inf.
        in_time: bool [K], where the lowest level is taken with which the plan meets the threshold.
    """

    levels_hz: Array
    in_time: Array

    def rounded_up(self, devices: Array, asked_hz: Array, capability: Array) -> Array:
        """The least level of each device [S] that is at least what is asked for [S], Hz.

        Args:
            devices: their numbers, int [S].
            asked_hz: clocks [S], Hz.
            capability: z_k [S], by which the levels are multiplied.
        """
        levels_hz = self.levels_hz[devices] * capability[:, None]
        high_enough = levels_hz >= asked_hz[:, None] * (1.0 - ROUNDING)
        level_hz = np.take_along_axis(levels_hz, high_enough.argmax(axis=1)[:, None], axis=1)[:, 0]
        return np.where(np.isfinite(level_hz), level_hz, asked_hz)

    def just_in_time(self, devices: Array, cpu_hz: Array, cycles: Array, spare_s: Array) -> Array:
        """Clocks [S] that use up the time which the plan leaves, of governor deadline, Hz.

        Args:
            devices: their numbers, int [S].
            cpu_hz: clocks of the plan [S], Hz.
            cycles: of their computation [S].
            spare_s: time between the planned end and the threshold [S], s.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            enough_hz = cycles / (cycles / cpu_hz + np.maximum(spare_s, 0.0))
        slower = self.in_time[devices] & (cycles > 0.0) & np.isfinite(spare_s)
        return np.where(slower, np.minimum(enough_hz, cpu_hz), cpu_hz)


def make_clock_levels(
    classes: Sequence[DeviceClass], hardware: Mapping[int, DeviceHardware]
) -> ClockLevels | None:
    """The levels of a scenario's devices; None where no class has any.

    The levels of a device that runs other programs are multiplied by the share that they leave in
    the mean, as its planned clock is.
    """
    if all(cls.cpu.levels_hz is None for cls in classes):
        return None
    most = max(len(cls.cpu.levels_hz or ()) for cls in classes)
    rows, in_time = [], []
    for cls in classes:
        own = list(cls.cpu.levels_hz or ())
        rows += [own + [np.inf] * (most - len(own))] * cls.count
        in_time += [cls.cpu.governor == "deadline"] * cls.count
    levels_hz = np.array(rows)
    for k, each in hardware.items():
        levels_hz[k] *= each.planned_share
    return ClockLevels(levels_hz, np.array(in_time))
