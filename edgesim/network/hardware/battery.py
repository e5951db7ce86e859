"""A battery: what it holds, where a device dies and returns, and when it is charged."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Charging:
    """Power into a battery: always, or in a window that comes again.

    Args:
        power_w: power into the battery.
        period_s: time from one window to the next; inf: it is charged all the time.
        from_s: start of the first window.
        lasts_s: length of a window.
    """

    power_w: float = 0.0
    period_s: float = math.inf
    from_s: float = 0.0
    lasts_s: float = math.inf

    def power_at_w(self, time_s: float) -> float:
        """Power at an instant, W."""
        if math.isinf(self.period_s):
            return self.power_w
        start_s = self._start_s(self._last_window(time_s))
        return self.power_w if start_s <= time_s < start_s + self.lasts_s else 0.0

    def next_change_s(self, time_s: float) -> float:
        """The first end or start of a window after an instant, s; inf: none."""
        if math.isinf(self.period_s) or self.power_w == 0.0:
            return math.inf
        window = self._last_window(time_s)
        start_s = self._start_s(window)
        edges_s = (start_s, start_s + self.lasts_s, self._start_s(window + 1))
        return next(edge_s for edge_s in edges_s if edge_s > time_s)

    def window_start_s(self, time_s: float, later: int) -> float:
        """When a window begins, so many after the last one that began by an instant, s."""
        return self._start_s(self._last_window(time_s) + later)

    def _start_s(self, window: int) -> float:
        # Always this product: a sum of starts and periods rounds otherwise, and could be no later.
        return self.from_s + window * self.period_s

    def _last_window(self, time_s: float) -> int:
        """Number of the last window that starts at or before an instant; 0 before the first."""
        window = max(math.floor((time_s - self.from_s) / self.period_s), 0)
        while window and self._start_s(window) > time_s:
            window -= 1
        while self._start_s(window + 1) <= time_s:
            window += 1
        return window


@dataclass(frozen=True)
class Battery:
    """The battery of one device.

    Args:
        capacity_j: energy that it holds when it is full.
        start: share of it at the start of the run.
        resume: share of it at which a device that died returns.
        charging: see `Charging`.
    """

    capacity_j: float
    start: float = 1.0
    resume: float = 0.2
    charging: Charging = Charging()

    def level_j(self, joules: float) -> float:
        """What it holds of so much energy, J: no more than its capacity, nor less than nothing."""
        return max(min(joules, self.capacity_j), 0.0)

    def next_turn(self, level_j: float, gain_w: float, alive: bool) -> tuple[float, str]:
        """When it is empty, full, or full enough to return, with a power that stays.

        Args:
            level_j: what it holds.
            gain_w: power into it, less what the device uses.
            alive: whether the device has not died since it had enough to return.

        Returns:
            Seconds until then, and ``empty``, ``full`` or ``back``; inf: never.
        """
        if alive and gain_w < 0.0:
            return level_j / -gain_w, "empty"
        if not alive and gain_w > 0.0:
            return (self.resume * self.capacity_j - level_j) / gain_w, "back"
        if gain_w > 0.0 and level_j < self.capacity_j:
            return (self.capacity_j - level_j) / gain_w, "full"
        return math.inf, ""

    def seconds_between_limits(self, level_j: float, least_w: float, most_w: float) -> float:
        """Time in which it is neither full nor empty, s; a full one that is not drained stays full.

        Args:
            level_j: what it holds.
            least_w: least power into it, less what the device uses.
            most_w: the largest.
        """
        missing_j = self.capacity_j - level_j
        empty_s = level_j / -least_w if least_w < 0.0 else math.inf
        may_fill = most_w > 0.0 and (missing_j > 0.0 or least_w < 0.0)
        return min(empty_s, missing_j / most_w if may_fill else math.inf)
