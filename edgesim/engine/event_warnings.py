"""Warnings of runs that need many events, and the refusal of those that would never end."""

from __future__ import annotations

import math
from collections.abc import Callable

from edgesim.engine.event_estimate import RoundEvents
from edgesim.errors import ScenarioKeyError
from edgesim.presence.absences import RESUME
from edgesim.scenario.loader import Scenario
from edgesim.scenario.units import format_quantity

MANY_EVENTS = 1e8  # that a run is warned about; an hour
MAX_EVENTS = 1e13  # of a run; years
MAX_ROUND_EVENTS = 1e8  # of a round, within which no checkpoint is written
EVENTS_PER_S = 3e4  # of one process, measured
YEAR_S = 365.25 * 24 * 3600
LONG_ROUND_S = 24 * 3600  # of which the length, too, may be a mistake
UNITS = ((1.0, "s"), (3600.0, "h"), (24 * 3600.0, "days"), (YEAR_S, "years"))
Cause = tuple[tuple[str | int, ...], str, str]  # key, its value, what to write


def event_warnings(scenario: Scenario, events: RoundEvents) -> list[str]:
    """What to know before a run of so many events a round.

    Raises:
        ScenarioKeyError: it would never end.
    """
    of_round = events.total
    total = of_round * scenario.rounds
    if not (total > MANY_EVENTS or of_round > MAX_ROUND_EVENTS):  # also where it is not known
        return []
    needs = f"about {total:.1g} events, {_rounded(total / EVENTS_PER_S)}"
    key, shown, hint = _cause(scenario, events)
    if total > MAX_EVENTS or of_round > MAX_ROUND_EVENTS:
        of_one = f"{of_round:.1g} in a round, planned to last {_rounded(events.longest_s)}"
        shorter = ", or let rounds be shorter" if events.longest_s > LONG_ROUND_S else ""
        problem = f"is {shown}: the run would need {needs} ({of_one}); {hint}{shorter}"
        raise ScenarioKeyError(key, problem)
    return [f"{'.'.join(map(str, key))} is {shown}: the run needs {needs}"]


def _cause(scenario: Scenario, events: RoundEvents) -> Cause:
    """What most of the events follow from."""
    counts = events.counts
    most = max(counts, key=counts.__getitem__)  # of equals the first: the devices
    rounds: Cause = ("rounds",), str(scenario.rounds), "write fewer rounds, or fewer devices"
    if scenario.tiers is not None and scenario.tiers.local_rounds > scenario.rounds:
        shown, hint = str(scenario.tiers.local_rounds), "write fewer local rounds, or fewer devices"
        rounds = ("tiers", "local_rounds"), shown, hint
    return CAUSES[most](scenario) or rounds if most in CAUSES else rounds


def _coherence(scenario: Scenario) -> Cause | None:
    key, fading = ("network", "channel", "fading"), scenario.network.channel.fading
    if fading.coherence_s is not None:
        shown = format_quantity(fading.coherence_s, "s")
        return (*key, "coherence"), shown, "write a longer time"
    if fading.speed_m_per_s is not None:
        shown = format_quantity(fading.speed_m_per_s, "m/s")
        return (*key, "speed"), shown, "write a lower speed"
    return None


def _refresh(scenario: Scenario) -> Cause | None:
    refresh_s = scenario.network.channel.refresh_s
    if refresh_s is None:
        return None
    shown = format_quantity(refresh_s, "s")
    return ("network", "channel", "refresh"), shown, "write a longer time"


def _programs(scenario: Scenario) -> Cause | None:
    groups = [i for i, each in enumerate(scenario.devices) if each.cpu.background is not None]
    if len(groups) == 1:
        return ("devices", *groups, "cpu", "background"), "of many switches", "write lower rates"
    shown = f"of {len(groups)} groups with other programs of many switches"
    return ("devices",), shown, "write lower rates in cpu.background"


def _slot_clock(scenario: Scenario) -> Cause | None:
    carrier = scenario.network.carrier
    if carrier is None:
        return None
    shown = f"{carrier.tdd_clock} beside a battery that stays full"
    return ("network", "carrier", "tdd_clock"), shown, "write fluid"


def _failures(scenario: Scenario) -> Cause | None:
    groups = [i for i, each in enumerate(scenario.devices) if each.on_failure == RESUME]
    if len(groups) == 1:
        highest = format_quantity(max(scenario.devices[groups[0]].failure_rate.values), "Hz")
        return ("devices", *groups, "failure_rate"), f"up to {highest}", "write a lower rate"
    shown = f"of {len(groups)} groups that crash often"
    return ("devices",), shown, "write lower rates in failure_rate"


CAUSES: dict[str, Callable[[Scenario], Cause | None]] = {
    "coherence": _coherence,
    "refresh": _refresh,
    "programs": _programs,
    "slots": _slot_clock,
    "crashes": _failures,
}


def _rounded(seconds: float) -> str:
    """A duration with two digits."""
    if not math.isfinite(seconds) or seconds > 1000 * YEAR_S:
        return "more than a thousand years"
    unit_s, unit = max((one for one in UNITS if one[0] <= seconds), default=UNITS[0])
    number = float(f"{seconds / unit_s:.2g}")
    return f"{number:g} {unit.removesuffix('s') if number == 1.0 and unit_s > 1.0 else unit}"
