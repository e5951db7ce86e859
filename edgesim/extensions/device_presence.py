"""The presence of a scenario's devices: drawn, or from files."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator

import numpy as np

from edgesim.errors import ScenarioKeyError
from edgesim.network.device import draw
from edgesim.presence.absences import LOST, Absences
from edgesim.presence.day_cycle import day_and_night
from edgesim.presence.group_blocks import beta_blocks
from edgesim.presence.presence import Part, Presence
from edgesim.presence.sessions import LengthLaw, on_off
from edgesim.presence.timeline import Timeline
from edgesim.presence.trace_file import PresenceFileError, read_intervals, traced
from edgesim.scenario.loader import Scenario
from edgesim.scenario.presence.presence_schema import (
    AlwaysPresence,
    BlockPresence,
    DiurnalPresence,
    OnOffPresence,
    TracePresence,
)
from fl.contracts import Array, Streams


def find_absences(scenario: Scenario, streams: Streams) -> Absences | None:
    """How the devices of a scenario come, go and crash; None where they are as in Liu.

    Raises:
        ScenarioKeyError: a file cannot be used, or classes describe one group in two ways.
    """
    classes = scenario.devices
    if all(each.presence is None and each.on_failure == LOST for each in classes):
        return None
    per_device = [each for each in classes for _ in range(each.count)]
    return Absences(
        presence=Presence(
            len(per_device), [*own_parts(scenario, streams), *outages(scenario, streams)]
        ),
        on_leave=tuple(each.on_leave for each in per_device),
        on_failure=tuple(each.on_failure for each in per_device),
        repair_s=np.array([each.repair_s for each in per_device]),
    )


def check_absences(scenario: Scenario, with_state: Container[int]) -> None:
    """Refuse devices that come and go and whose state changes as they work.

    Args:
        scenario: the checked scenario.
        with_state: numbers of the devices with heat, other load, a battery or a modem.
    """
    first = 0
    for index, each in enumerate(scenario.devices):
        comes_and_goes = each.presence is not None or each.on_failure != LOST
        if comes_and_goes and any(k in with_state for k in range(first, first + each.count)):
            name = "presence" if each.presence is not None else "on_failure"
            problem = "is not known to devices with heat, other load, a battery or a modem"
            raise ScenarioKeyError(("devices", str(index), name), f"{problem}; remove one of them")
        first += each.count


def own_parts(scenario: Scenario, streams: Streams) -> Iterator[Part]:
    """One part for every class that comes and goes."""
    devices, first = scenario.device_count, 0
    for index, each in enumerate(scenario.devices):
        if each.presence is not None and not isinstance(each.presence, AlwaysPresence):
            member = np.full(devices, -1)
            member[first : first + each.count] = np.arange(each.count)
            yield Part(timeline_of(scenario, index, streams), member)
        first += each.count


def timeline_of(scenario: Scenario, index: int, streams: Streams) -> Timeline:
    """The timeline of the devices of a class."""
    each, purpose = scenario.devices[index], f"devices/{index}/presence"
    given, count = each.presence, each.count

    def drawn(name: str) -> Array:
        quantity, stream = getattr(given, name), streams.stream(f"{purpose}/{name}")
        return draw(quantity, count, stream)

    if isinstance(given, OnOffPresence):
        law = LengthLaw(given.law, given.shape)
        return on_off(drawn("on_s"), drawn("off_s"), streams, purpose, law)
    if isinstance(given, DiurnalPresence):
        return day_and_night(given.cycle, drawn("phase_s"), streams, purpose)
    if isinstance(given, BlockPresence):
        same_group(scenario, index, given)
        group = f"groups/{given.group}/blocks"
        return beta_blocks(given.a, given.b, given.block_s, count, streams, group, purpose)
    assert isinstance(given, TracePresence)  # of the five kinds
    period_s = math.inf if given.period_s is None else given.period_s
    try:
        return traced(read_intervals(scenario.folder / given.file, count, period_s), period_s)
    except PresenceFileError as error:
        key = ("devices", str(index), "presence", "file")
        raise ScenarioKeyError(key, f"is {given.file}, which {error}") from error


def same_group(scenario: Scenario, index: int, given: BlockPresence) -> None:
    """Refuse classes that give one group two laws."""
    for other in scenario.devices[:index]:
        before = other.presence
        if isinstance(before, BlockPresence) and before.group == given.group:
            for name in ("a", "b", "block_s"):
                if getattr(before, name) != getattr(given, name):
                    problem = f"is {given.group}, as of an earlier class with another {name}"
                    key = ("devices", str(index), "presence", "group")
                    raise ScenarioKeyError(key, f"{problem}; give both the same, or another group")


def outages(scenario: Scenario, streams: Streams) -> Iterator[Part]:
    """One part for every group with outages."""
    groups: dict[str, Part] = {}
    first = 0
    for index, each in enumerate(scenario.devices):
        outage = each.presence.outage if each.presence else None
        if outage is not None:
            up_s, down_s = np.array([outage.up_s]), np.array([outage.down_s])
            if outage.group not in groups:
                timeline = on_off(up_s, down_s, streams, f"groups/{outage.group}/outage")
                groups[outage.group] = Part(timeline, np.full(scenario.device_count, -1))
            groups[outage.group].member[first : first + each.count] = 0
            others = [one.presence.outage for one in scenario.devices[:index] if one.presence]
            if any(one and one.group == outage.group and one != outage for one in others):
                problem = f"is {outage.group}, as of an earlier class with other times"
                key = ("devices", str(index), "presence", "outage", "group")
                raise ScenarioKeyError(key, f"{problem}; give both the same, or another group")
        first += each.count
    yield from groups.values()
