"""What a clock does not go with: keys, methods, and runs in which no device could compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgesim.clocks.clock_choice import committed
from edgesim.errors import ScenarioKeyError, counted
from edgesim.network.cell import Cell
from edgesim.presence.absences import RESUME
from edgesim.scenario.clock.clock_schema import OVERLAPPING
from edgesim.scenario.loader import Scenario
from edgesim.scenario.units import format_quantity
from fl.contracts import Array
from fl.data.datasets import NONE
from fl.errors import MethodError
from fl.method_base.hook_answers import demand_of
from fl.method_base.method import Method

SHARE, SOLVER = ("network", "uplink", "share"), ("allocation", "solver")
MOST_CRASHES = 20.0  # of a device in the time of a job on average: one of exp(20) ends
CHOOSE_CLOCKS = ("energy", "convex-energy")  # solvers that choose processor clocks, too


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
    needed = method.participants or devices
    if clock.mode == "overcommit" and committed(clock, needed) > devices:
        there, are = counted(devices, "device"), "is" if needed == 1 else "are"
        raise ScenarioKeyError(
            ("clock", "over_commit"),
            f"is {clock.over_commit:g}, but {needed} of {there} {are} needed; lower it, or "
            "learning.method.participants",
        )
    if clock.partial != "none":
        _check_partial_work(scenario, method)
    if clock.mode not in OVERLAPPING:
        if scenario.network.uplink.share == "slots":
            problem = f"is slots, but with clock.mode {clock.mode} each round divides the band"
            raise ScenarioKeyError(SHARE, f"{problem}; write share: fixed")
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
    if clock.mode == "speed-tiers":
        _check_tiers(scenario, method)
    _check_places(scenario, method)
    _check_network(scenario)


def check_times(scenario: Scenario, cell: Cell, method: Method) -> None:
    """Refuse runs in which no device can have computed: windows end, or devices fail, before.

    Args:
        scenario: the checked scenario.
        cell: of the run, at its start.
        method: says what taking part costs.

    Raises:
        ScenarioKeyError: no version could be made of anything.
    """
    window_s, rate_hz = scenario.clock.window_s, cell.fleet.failure_rate_hz
    if scenario.clock.mode not in OVERLAPPING or (window_s is None and not rate_hz.any()):
        return
    seconds = _least_compute_s(cell, method)
    if window_s is not None and (end_s := scenario.rounds * window_s) < seconds.min():
        problem = (
            f"is {format_quantity(window_s, 's')}: all versions ({scenario.rounds}) are over after "
            f"{end_s:.6g} s, and the fastest device computes {seconds.min():.6g} s for its first "
            "update; write a longer window, or more rounds"
        )
        raise ScenarioKeyError(("clock", "window"), problem)
    goes_on = [each.on_failure == RESUME for each in scenario.devices for _ in range(each.count)]
    crashes = np.where(goes_on, 0.0, rate_hz * seconds)
    if crashes.min() > MOST_CRASHES:
        k = int(crashes.argmin())
        problem = (
            f"is so high that no update arrives: device {k} computes at least {seconds[k]:.3g} s "
            f"for one and fails every {1.0 / rate_hz[k]:.3g} s, and no other does better; lower it,"
            " or write on_failure: resume"
        )
        index = [i for i, each in enumerate(scenario.devices) for _ in range(each.count)][k]
        raise ScenarioKeyError(("devices", str(index), "failure_rate"), problem)


def _least_compute_s(cell: Cell, method: Method) -> Array:
    """Time of the first computation of each device [K] at its full clock, pruned the most, s.

    Whatever band and fading are, an update is computed before it is sent.
    """
    fleet, devices = cell.fleet, np.arange(len(cell.fleet))
    demand = demand_of(method, None, cell.view(0, everyone=True), devices)
    fixed_s = fleet.seconds(devices, demand.work_fixed, fleet.cpu_hz)
    prunable_s = fleet.seconds(devices, demand.work_prunable, fleet.cpu_hz)
    return fixed_s + (1.0 - demand.rho_max) * prunable_s


def _check_tiers(scenario: Scenario, method: Any) -> None:
    """All of a tier take part in its rounds, and a tier's model is a mean."""
    clock, name = scenario.clock, scenario.learning.method.name
    if method.stale != "damp":
        problem = f"is {name}, whose model is no mean, so that tiers have none of their own; use "
        raise MethodError("name", f"{problem}another clock than speed-tiers, or another method")
    if why := method.no_tier_models():
        raise MethodError("name", f"is {name} with clock.mode speed-tiers, {why}")
    if (method.participants or scenario.device_count) < scenario.device_count:
        problem = f"is {method.participants}, but with clock.mode speed-tiers all of a tier take "
        raise MethodError("participants", f"{problem}part; write {scenario.device_count}")
    if clock.speed_tiers > scenario.device_count and "speed_tiers" in clock.model_fields_set:
        cell = counted(scenario.device_count, "device")
        problem = f"is {clock.speed_tiers}, but the cell has {cell}"
        raise ScenarioKeyError(("clock", "speed_tiers"), f"{problem}; write at most as many")


def _check_partial_work(scenario: Scenario, method: Any) -> None:
    """Fewer steps than planned for have a meaning for the method, and are trained."""
    path, partial = ("clock", "partial"), scenario.clock.partial
    if scenario.learning.dataset == NONE:
        problem = f"is {partial}, but with learning.dataset: none there are no steps to leave out"
        raise ScenarioKeyError(path, f"{problem}; remove it")
    if not vars(type(method)).get("partial_work", False):
        name = scenario.learning.method.name
        problem = f"is {partial}, and {name} has no meaning for fewer steps of some devices"
        raise ScenarioKeyError(path, f"{problem}; use fedavg, fedprox or fednova, or remove it")


def _check_places(scenario: Scenario, method: Any) -> None:
    """in_flight stands for the method's participants, and fits the cell and the buffer."""
    clock, devices = scenario.clock, scenario.device_count
    # A resolved scenario has the method's default, too.
    if clock.in_flight is not None and method.participants != type(method).participants:
        problem = f"stands beside learning.method.participants: {method.participants}"
        raise ScenarioKeyError(("clock", "in_flight"), f"{problem}; keep one of the two")
    slots = clock.in_flight or method.participants or devices
    if slots > devices and clock.in_flight is not None:
        problem = f"is {slots}, but the cell has {counted(devices, 'device')}"
        raise ScenarioKeyError(("clock", "in_flight"), f"{problem}; write at most as many")
    if clock.buffer is not None and clock.buffer > min(slots, devices):
        problem = f"is {clock.buffer}, but {min(slots, devices)} devices are in flight"
        raise ScenarioKeyError(("clock", "buffer"), f"{problem}; write at most as many")


def _check_network(scenario: Scenario) -> None:
    """A job has its slot of the band, what is promised to it, or its part among those that send."""
    mode, share = scenario.clock.mode, scenario.network.uplink.share
    slot = f"and with clock.mode {mode} devices start at any time"
    solver = scenario.allocation.solver
    if share == "reclaim":
        problem = f"is reclaim, {slot}; write share: fair, or fixed"
        raise ScenarioKeyError(SHARE, problem)
    if share != "fixed" and solver != "equal":
        problem = f"is {solver}, {slot} and have equal parts with share: {share}"
        raise ScenarioKeyError(SOLVER, f"{problem}; write solver: equal, or share: fixed")
    if solver != "equal" and mode in ("tt-fed", "speed-tiers"):
        problem = f"is {solver}, but clock.mode {mode} makes tiers by the time of a job in its slot"
        raise ScenarioKeyError(SOLVER, f"{problem}; write solver: equal")
    if solver in CHOOSE_CLOCKS:
        problem = f"is {solver}, which plans a whole round, {slot}; write solver: kkt, or equal"
        raise ScenarioKeyError(SOLVER, problem)
    if scenario.allocation.resource_blocks and solver != "equal":
        problem = f"is {scenario.allocation.resource_blocks}, {slot} in what is left of the band"
        raise ScenarioKeyError(("allocation", "resource_blocks"), f"{problem}; remove it")
    if scenario.allocation.rate != "now":
        problem = f"is {scenario.allocation.rate}, {slot}; write rate: now"
        raise ScenarioKeyError(("allocation", "rate"), problem)
    if scenario.network.downlink.mode != "ideal":
        problem = f"is {scenario.network.downlink.mode}, {slot}; write downlink: ideal"
        raise ScenarioKeyError(("network", "downlink", "mode"), problem)
