"""When a device that waits has enough energy again: its battery is charged meanwhile."""

from __future__ import annotations

import math

from edgesim.network.hardware.device_state import DeviceState

MOST_DEATHS = 20  # after which a device is taken never to have enough
LEAST_RISE = 1e-9  # of the capacity, from one charging window to the next
FEW_PERIODS = 10  # that are played one by one
ROUNDING = 16  # units in the last place by which a period that is not played may round


def enough_again_s(state: DeviceState, needed_j: float = 0.0) -> float:
    """The first instant at which a device is alive and its battery holds what it needs.

    Args:
        state: of the device, which waits; it stays as it is.
        needed_j: energy, J.

    Returns:
        The instant, s, at least that of the state; inf: it never comes.
    """
    battery = state.hardware.battery
    if battery is None or needed_j > battery.capacity_j:
        return math.inf
    now, deaths = state, 0
    last: DeviceState | None = None  # as the last charging window began; None: not comparable
    while deaths < MOST_DEATHS:
        if now.alive and now.battery_j >= needed_j:
            return now.time_s
        if math.isinf(event_s := now.next_event_s()):
            break
        before, now = now, now.at(event_s)
        if before.alive and now.battery_j > needed_j:
            return _passes_s(before, now, needed_j)
        if before.alive and not now.alive:
            deaths, last = deaths + 1, None
        elif event_s == battery.charging.next_change_s(before.time_s) and _is_charged(now):
            # From here on all goes as it went in the last period.
            if last is not None and last.alive == now.alive:
                rise_j = now.battery_j - last.battery_j
                if now.alive and rise_j <= LEAST_RISE * battery.capacity_j:
                    break
                now = _periods_later(now, rise_j, needed_j)
            last = now if now.time_s >= now.tail_until_s else None
    return math.inf


def _periods_later(state: DeviceState, rise_j: float, needed_j: float) -> DeviceState:
    """The device after all periods of charging but the last ones, of which each adds as much.

    Its battery has rather a little less than if they were played: who is asked too early is
    refused.

    Args:
        state: as a charging window begins.
        rise_j: what a period adds, J.
        needed_j: what its battery is to hold, if it is alive, J.
    """
    battery = state.hardware.battery
    assert battery is not None  # it is charged
    goal_j = needed_j if state.alive else battery.resume * battery.capacity_j
    highest_j = state.battery_j + battery.charging.power_w * battery.charging.lasts_s
    periods = math.floor((goal_j - highest_j) / rise_j) - 1 if rise_j > 0.0 else 0
    if periods <= FEW_PERIODS:
        return state
    added_j = periods * (rise_j - ROUNDING * math.ulp(battery.capacity_j))
    start_s = battery.charging.window_start_s(state.time_s, periods)
    return state.moved(start_s, state.battery_j + added_j)


def _is_charged(state: DeviceState) -> bool:
    """Does energy come into the battery at this instant?"""
    battery = state.hardware.battery
    return battery is not None and battery.charging.power_at_w(state.time_s) > 0.0


def _passes_s(before: DeviceState, after: DeviceState, needed_j: float) -> float:
    """When the battery, which rises evenly between two instants, holds what is needed, s."""
    share = (needed_j - before.battery_j) / (after.battery_j - before.battery_j)
    time_s = before.time_s + share * (after.time_s - before.time_s)
    step_s = math.ulp(time_s)
    while before.at(time_s).battery_j < needed_j:  # who is asked by a rounding too early is refused
        time_s, step_s = time_s + step_s, 2.0 * step_s
    return time_s
