"""How many events a run needs, estimated before it starts from its first round.

A device has some events in every round, and a link one more for every coherence block in which it
carries bits: a coherence time of nanoseconds would run for years.
"""

from __future__ import annotations

import math

import numpy as np

from edgesim.errors import ScenarioKeyError
from edgesim.network.cell import Cell
from edgesim.network.grants import Grants, granted_amounts, grants_of
from edgesim.scenario.loader import Scenario
from edgesim.scenario.units import format_quantity
from fl.contracts import Demand, RoundPlan, View

MANY_EVENTS = 1e8  # that a run is warned about; an hour
MAX_EVENTS = 1e13  # of a run; years
MAX_ROUND_EVENTS = 1e8  # of a round, within which no checkpoint is written
DEVICE_EVENTS = 9  # of a device in a round on a channel that does not change, as SimPy counts them
EVENTS_PER_S = 3e4  # of one process, measured
YEAR_S = 365.25 * 24 * 3600


def round_events(cell: Cell, demand: Demand, view: View, plan: RoundPlan) -> float:
    """Events of round 0, as planned on the channel at its start.

    Args:
        cell: of the run, at its start.
        demand: of all devices.
        view: what the server knows.
        plan: of the round.
    """
    grants = grants_of(plan)
    if not len(grants):
        return 1.0
    count = len(grants)
    woken = count * (count - 1) / 2 if cell.uplink.reclaims else 0  # by each that is done
    return count * DEVICE_EVENTS + woken + _blocks(cell, demand, view, grants)


def _blocks(cell: Cell, demand: Demand, view: View, grants: Grants) -> float:
    """Coherence blocks in which a device sends or receives, summed over the devices."""
    channel = cell.channel
    if channel.static:
        return 0.0
    _, bits_up, bits_down = granted_amounts(cell.fleet, demand, grants)
    gain = channel.gains(view.now_s)[grants.device]
    rate_bps = channel.rate_bps(grants.share, grants.power_w, gain)
    with np.errstate(all="ignore"):
        up_s = np.where(bits_up > 0.0, bits_up / rate_bps, 0.0)
        seconds = up_s + cell.downlink.seconds(bits_down, grants.device, cell.planner.gains)
        return float(np.sum(seconds / channel.coherence_s))


def event_warnings(scenario: Scenario, of_round: float) -> list[str]:
    """What to know before a run of so many events a round.

    Raises:
        ScenarioKeyError: it would never end.
    """
    total = of_round * scenario.rounds
    if not (total > MANY_EVENTS or of_round > MAX_ROUND_EVENTS):  # also where it is not known
        return []
    coherence_s = scenario.network.channel.fading.coherence_s
    needs = f"about {total:.1g} events, {_in_years(total / EVENTS_PER_S)}"
    key: tuple[str, ...] = ("rounds",)
    shown, hint = str(scenario.rounds), "write fewer rounds, or fewer devices"
    blocks = of_round - DEVICE_EVENTS * scenario.device_count
    if coherence_s is not None and blocks > 0.5 * of_round:
        key = ("network", "channel", "fading", "coherence")
        shown, hint = format_quantity(coherence_s, "s"), "write a longer time"
    if total > MAX_EVENTS or of_round > MAX_ROUND_EVENTS:
        problem = f"is {shown}: the run would need {needs} ({of_round:.1g} a round); {hint}"
        raise ScenarioKeyError(key, problem)
    return [f"{'.'.join(key)} is {shown}: the run needs {needs}"]


def _in_years(seconds: float) -> str:
    if not math.isfinite(seconds) or seconds > 1000 * YEAR_S:
        return "more than a thousand years"
    if seconds > YEAR_S:
        return f"{seconds / YEAR_S:.2g} years"
    return f"{seconds / 3600:.2g} hours"
