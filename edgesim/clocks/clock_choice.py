"""The clock that a scenario names, and what it does not go with."""

from __future__ import annotations

from functools import partial
from typing import Any

from edgesim.clocks import staleness_weights
from edgesim.clocks.rules import Buffered, Deadline, OverCommit, Rules, Windowed
from edgesim.clocks.staleness_weights import StalenessWeight
from edgesim.errors import ScenarioKeyError
from edgesim.scenario.clock.clock_schema import OVERLAPPING, ClockSection, StalenessSection
from edgesim.scenario.loader import Scenario
from fl.errors import MethodError

MODE = ("clock", "mode")


def make_rules(clock: ClockSection, participants: int | None, devices: int) -> Rules:
    """The rules of a clock.

    Args:
        clock: the scenario's section.
        participants: devices that the method asks at a time; None: all.
        devices: K, devices of the cell.
    """
    asked = min(participants or devices, devices)
    if clock.mode == "synchronous":
        return Rules()
    if clock.mode == "deadline":
        return Deadline()
    if clock.mode == "overcommit":
        return OverCommit(needed=asked, asked=committed(clock, asked))
    slots = clock.in_flight or asked
    shared: dict[str, Any] = {
        "slots": slots,
        "staleness_weight": staleness_weight(clock.staleness),
        "max_staleness": clock.max_staleness,
        "measured_from_now": clock.direction == "model",
        "server_step": clock.server_lr,
    }
    if clock.mode == "window":
        assert clock.window_s is not None  # ClockSection refuses a window of no length
        return Windowed(window_s=clock.window_s, **shared)
    if clock.mode == "buffered":
        used = clock.slot == "until_used"
        return Buffered(buffer=clock.buffer or max(1, slots // 10), until_used=used, **shared)
    shared |= {"measured_from_now": clock.direction != "delta", "server_step": clock.mixing}
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


def check_clock(scenario: Scenario, method: Any) -> None:
    """Refuse what a clock with overlapping jobs, or with more devices than needed, has no sense of.

    Args:
        scenario: the checked scenario, with the method's parameters as they were written.
        method: with its parameters.

    Raises:
        ScenarioKeyError: a key has no effect, or does not fit.
        MethodError: the method refuses stale updates.
    """
    clock, devices = scenario.clock, scenario.device_count
    given = scenario.learning.method.params
    needed = method.participants or devices
    if clock.mode == "overcommit" and committed(clock, needed) > devices:
        problem = f"is {clock.over_commit:g}, but {needed} of {devices} devices are needed"
        raise ScenarioKeyError(
            ("clock", "over_commit"), f"{problem}; lower it, or learning.method.participants"
        )
    if clock.mode not in OVERLAPPING:
        return
    if method.stale == "refuse":
        name = scenario.learning.method.name
        raise MethodError(
            "name",
            f"is {name}, which has no use for updates from older versions of the model; use "
            f"clock.mode synchronous, deadline or overcommit instead of {clock.mode}, or another "
            "method",
        )
    if method.stale == "count":
        for name in ("server_lr", "mixing", "direction"):
            if name in clock.model_fields_set:
                problem = f"is not read by {scenario.learning.method.name}, which counts updates"
                raise ScenarioKeyError(("clock", name), f"{problem}; remove it")
    _check_places(scenario, method, given)
    _check_network(scenario)


def _check_places(scenario: Scenario, method: Any, given: dict[str, Any]) -> None:
    """in_flight stands for the method's participants, and fits the cell and the buffer."""
    clock, devices = scenario.clock, scenario.device_count
    if clock.in_flight is not None and "participants" in given:
        problem = f"stands beside learning.method.participants: {given['participants']}"
        raise ScenarioKeyError(("clock", "in_flight"), f"{problem}; keep one of the two")
    slots = clock.in_flight or method.participants or devices
    if slots > devices and clock.in_flight is not None:
        problem = f"is {slots}, but the cell has {devices} devices; write at most as many"
        raise ScenarioKeyError(("clock", "in_flight"), problem)
    if clock.buffer is not None and clock.buffer > min(slots, devices):
        problem = f"is {clock.buffer}, but {min(slots, devices)} devices are in flight"
        raise ScenarioKeyError(("clock", "buffer"), f"{problem}; write at most as many")


def _check_network(scenario: Scenario) -> None:
    """Every job has its slot of the band, whatever others do."""
    slot = f"and with clock.mode {scenario.clock.mode} every device has its slot of the band"
    solver = scenario.allocation.solver
    if solver != "equal":
        problem = f"is {solver}, {slot}; write solver: equal"
        raise ScenarioKeyError(("allocation", "solver"), problem)
    if scenario.allocation.rate != "now":
        problem = f"is {scenario.allocation.rate}, {slot}; write rate: now"
        raise ScenarioKeyError(("allocation", "rate"), problem)
    if scenario.network.uplink.share != "fixed":
        problem = f"is {scenario.network.uplink.share}, {slot}; write share: fixed"
        raise ScenarioKeyError(("network", "uplink", "share"), problem)
    if scenario.network.downlink.mode != "ideal":
        problem = f"is {scenario.network.downlink.mode}, {slot}; write downlink: ideal"
        raise ScenarioKeyError(("network", "downlink", "mode"), problem)
