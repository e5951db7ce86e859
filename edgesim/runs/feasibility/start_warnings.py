"""What a user should know of the channel and the devices before a run."""

from __future__ import annotations

import math
from collections.abc import Iterable

from edgesim.network.cell import Cell
from edgesim.network.channel import Channel
from edgesim.network.given_losses.varying_channel import VaryingChannel
from edgesim.network.planned_gains import NOW
from edgesim.runs.error_sentences import first_ten
from edgesim.scenario.loader import Scenario
from edgesim.scenario.radio.numerology import FR1_HZ

MS = 1e3


def stale_plan(cell: Cell, overlapping: bool) -> list[str]:
    """The warning about a plan whose channel is gone before the threshold, if it is one.

    Args:
        cell: of the run, at its start.
        overlapping: the clock's jobs overlap.
    """
    channel, gains = cell.channel, cell.planner.gains
    if gains.counts_with_fading or channel.fading is None:
        return []
    holds_s = channel.fading.holds_s
    if holds_s >= cell.budget_s or math.isinf(cell.budget_s):  # without a threshold nobody is late
        return []
    now_only = overlapping or isinstance(channel, VaryingChannel)  # other rates are refused
    instead = "; write allocation: {rate: quantile, reliability: 0.95} to plan for fading"
    return [
        f"allocation.rate: now plans with the fade of the instant, but fading changes every "
        f"{holds_s * MS:g} ms of {cell.budget_s * MS:g} ms, so that devices may be late"
        f"{'' if now_only else instead}"
    ]


def rate_without_fading(scenario: Scenario, channels: Iterable[Channel]) -> list[str]:
    """The warning about a rate to plan with that is written and makes no difference, if it is one.

    Args:
        scenario: the checked scenario.
        channels: of all cells.
    """
    rate = scenario.allocation.rate
    fades = any(each.fading is not None for each in channels)
    if rate == NOW or fades or not scenario.writes("allocation.rate"):
        return []
    return [
        f"allocation.rate is {rate}, but without fading plans are those of now; remove it, or "
        "write network.channel.fading"
    ]


def grid_beyond_fr1(scenario: Scenario) -> list[str]:
    """The warning about a resource grid at a frequency that it is not made for, if it is one."""
    carrier, (lowest_hz, highest_hz) = scenario.network.carrier, FR1_HZ
    if carrier is None or carrier.bandwidth_hz is None:
        return []
    if lowest_hz <= carrier.frequency_hz <= highest_hz:
        return []
    fr1 = f"FR1, {lowest_hz / 1e6:g} MHz to {highest_hz / 1e9:g} GHz"
    return [
        f"network.carrier.frequency {carrier.frequency_hz / 1e9:g} GHz is beyond {fr1}, "
        "whose channels and overheads carrier.bandwidth reads"
    ]


def moving_plan(cell: Cell) -> list[str]:
    """The warning about devices that go far within a round, if they do."""
    channel = cell.channel
    if channel.refresh_s >= cell.budget_s:  # inf where nobody moves
        return []
    speed, length_s = channel.top_speed_m_per_s, cell.budget_s
    far = f"up to {speed * length_s:.3g} m within a round"
    if math.isinf(length_s):
        far = f"at up to {speed:.3g} m/s within a round of any length"
    return [
        f"devices move {far}, and are planned for where they are at its start: "
        "path losses change on the way, which no reliability counts with"
    ]


def never_there(cell: Cell) -> list[str]:
    """The warning about devices whose presence trace has no interval, if there are some."""
    if cell.absences is None or not len(never := cell.absences.presence.never_there()):
        return []
    return [
        f"{len(never)} of {len(cell.fleet)} devices are never there, since their presence file has "
        f"no line of them: {first_ten(never.tolist())}"
    ]
