"""The clock that a scenario names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from edgesim.clocks import staleness_weights
from edgesim.clocks.rules import Buffered, Deadline, OverCommit, Rules, Windowed
from edgesim.clocks.speed_tiers import SpeedTiers, TimeTriggered, slots_needed, tiers_by_speed
from edgesim.clocks.staleness_weights import StalenessWeight
from edgesim.scenario.clock.clock_schema import ClockSection, StalenessSection
from fl.contracts import Array


def make_rules(
    clock: ClockSection,
    participants: int | None,
    devices: int,
    seconds: Callable[[int], Array] | None = None,
) -> Rules:
    """The rules of a clock.

    Args:
        clock: the scenario's section.
        participants: devices that the method asks at a time; None: all.
        devices: K, devices of the cell.
        seconds: number of slots -> time of a job of each device [K], s; asked where the clock has
            tiers by speed.
    """
    asked = min(participants or devices, devices)
    if clock.mode == "synchronous":
        return Rules()
    if clock.mode == "deadline":
        steps, jobs = clock.partial == "planned", clock.partial == "cut"
        return Deadline(cuts_steps=steps, cuts_jobs=jobs)
    if clock.mode == "overcommit":
        return OverCommit(needed=asked, asked=committed(clock, asked))
    slots = clock.in_flight or asked
    shared: dict[str, Any] = {
        "slots": slots,
        "staleness_weight": staleness_weight(clock.staleness),
        "max_staleness": clock.max_staleness,
        "from_now": clock.direction == "model",
        "step": clock.server_lr,
    }
    if clock.mode == "speed-tiers":
        assert seconds is not None  # a run gives them
        tiers = tiers_by_speed(seconds(devices), min(clock.speed_tiers, devices))
        return SpeedTiers(slots=devices, tier_of=tiers)
    if clock.mode in ("window", "tt-fed"):
        assert clock.window_s is not None  # ClockSection refuses a window of no length
        shared["window_s"] = clock.window_s
        if clock.mode == "window":
            return Windowed(**shared)
        assert seconds is not None  # a run gives them
        return TimeTriggered(needs=slots_needed(seconds(slots), clock.window_s), **shared)
    if clock.mode == "buffered":
        used = clock.slot == "until_used"
        return Buffered(buffer=clock.buffer or max(1, slots // 10), until_used=used, **shared)
    shared |= {"from_now": clock.direction != "delta", "step": clock.mixing}
    return Buffered(buffer=1, **shared)


def committed(clock: ClockSection, needed: int) -> int:
    """m, devices that are asked where so many are needed."""
    return int(clock.over_commit * needed + 1e-9)


def staleness_weight(section: StalenessSection) -> StalenessWeight:
    """s(tau) of a scenario."""
    if section.weight == "constant":
        return staleness_weights.constant
    if section.weight == "polynomial":
        return partial(staleness_weights.polynomial, exponent=section.exponent)
    return partial(staleness_weights.hinge, slope=section.slope, start=section.start)
