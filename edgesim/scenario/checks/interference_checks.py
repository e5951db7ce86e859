"""Checks of a network of several cells against the rest of its scenario."""

from __future__ import annotations

from edgesim.scenario.cells.interference_schema import EVENTS, LOAD, NONE, REFRESH, RESOLVED
from edgesim.scenario.clock.clock_schema import OVERLAPPING
from edgesim.scenario.schema import ScenarioKeys
from edgesim.scenario.section import ValueRefusedError

DIVIDED = ("fixed", "reclaim")  # ways to divide the band that a network knows


def check_network(scenario: ScenarioKeys) -> None:
    """Refuse keys of a network that nothing reads, and what does not go with one.

    Raises:
        ValueRefusedError: with the path of the key.
    """
    network, allocation = scenario.network, scenario.allocation
    heard = network.interference
    planned = "interference" in allocation.model_fields_set
    moves = any(each.mobility for each in scenario.devices)
    if network.handover is not None and (network.layout.kind == "single" or not moves):
        needs = "is read where devices move between cells; remove it, or write network.layout"
        raise ValueRefusedError(f"{needs} and devices.mobility", keys=("network", "handover"))
    channel = network.channel
    if network.layout.kind == "single":
        needs = "is not read without other cells; remove it, or write network.layout: {kind: hex}"
        for key, given in (
            (("network", "interference"), heard is not None),
            (("allocation", "interference"), planned),
            (("network", "channel", "fading", "links"), channel.fading.links == "all"),
            (("network", "channel", "inter_site"), channel.inter_site > 0.0),
        ):
            if given:
                raise ValueRefusedError(needs, keys=key)
        return
    if planned and heard is not None and heard.mode == NONE:
        problem = f"is {allocation.interference}, but network.interference: none leaves nothing"
        raise ValueRefusedError(f"{problem}; remove one", keys=("allocation", "interference"))
    mode = EVENTS if heard is None else heard.mode
    if channel.fading.links == "all" and mode not in (EVENTS, REFRESH, RESOLVED):
        problem = f"is all, but network.interference: {mode} counts with mean gains"
        advice = "write interference: events, or links: own"
        keys = ("network", "channel", "fading", "links")
        raise ValueRefusedError(f"{problem}; {advice}", keys=keys)
    if channel.inter_site and not channel.shadowing_db:
        problem = "is read with shadowing only; remove it, or write network.channel.shadowing"
        raise ValueRefusedError(problem, keys=("network", "channel", "inter_site"))
    _check_blocks(scenario, mode)
    _check_loads(scenario)
    if network.noise.density_w_per_hz is None:
        problem = "is a power, but interference adds to a density; write for instance -169 dBm/Hz"
        raise ValueRefusedError(problem, keys=("network", "noise"))
    if scenario.clock.mode in OVERLAPPING:
        problem = f"is {scenario.clock.mode}, whose jobs overlap; a network needs rounds"
        raise ValueRefusedError(f"{problem}; write synchronous", keys=("clock", "mode"))
    if network.uplink.share not in DIVIDED:
        problem = f"is {network.uplink.share}, but sectors divide their bands beforehand so far"
        problem += f"; write {' or '.join(DIVIDED)}"
        raise ValueRefusedError(problem, keys=("network", "uplink", "share"))


def _check_blocks(scenario: ScenarioKeys, mode: str) -> None:
    """Interference by block needs blocks, and one gain over all of them."""
    network = scenario.network
    if mode != RESOLVED:
        return
    if network.carrier is None or network.carrier.blocks is None:
        problem = "is resolved, by the resource blocks of a carrier; write for instance "
        problem += "network.carrier: {bandwidth: 20 MHz}"
        raise ValueRefusedError(problem, keys=("network", "interference"))
    if network.channel.fading.delay_spread_s is not None:
        problem = "is resolved, with shares in blocks of their own, but with fading.delay_spread "
        problem += "each is spread over the whole band; write events, or remove delay_spread"
        raise ValueRefusedError(problem, keys=("network", "interference"))


def _check_loads(scenario: ScenarioKeys) -> None:
    """A load is a part of the threshold."""
    heard = scenario.network.interference
    for key, is_load in (
        (("network", "interference"), heard is not None and heard.mode == LOAD),
        (("allocation", "interference"), scenario.allocation.interference == LOAD),
    ):
        if is_load and scenario.budget.latency_threshold_s is None:
            problem = "is load, a part of the threshold; write budget: {latency_threshold: 1 s}"
            raise ValueRefusedError(problem, keys=key)
