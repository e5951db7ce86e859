"""Feasibility of round 0 of a run, in its cell or in the cells of its edges, with all warnings."""

from __future__ import annotations

from dataclasses import replace

import simpy

from edgesim.clocks.clock_conflicts import check_times
from edgesim.clocks.flights import Desk
from edgesim.clocks.rules import Overlapping
from edgesim.engine.event_warnings import event_warnings
from edgesim.runs.feasibility.round_0 import Feasibility, feasibility_table, joined_feasibility
from edgesim.runs.feasibility.start_warnings import grid_beyond_fr1, rate_without_fading
from edgesim.runs.setup.checks_before_training import learning_warnings
from edgesim.runs.setup.setup import Setup
from edgesim.scenario.network_schema import AMONG_SENDERS


def feasibility_of_run(setup: Setup) -> Feasibility:
    """The table of round 0, with what a user should know of the data, the band and the events."""
    redrawn = any(each.capability_drawn == "round" for each in setup.scenario.devices)
    if setup.hierarchy is None:
        table = _feasibility_of_cell(setup, redrawn)
    else:
        members = [(edge.number, edge.members.tolist()) for edge in setup.hierarchy.edges]
        tables = [
            _feasibility_of_cell(edge, redrawn, numbers)
            for edge, (_, numbers) in zip(setup.edges, members, strict=True)
        ]
        table = joined_feasibility(tables, members)
        table = replace(table, events=table.events.times(setup.hierarchy.local_rounds))
    channels = [each.channel for each in setup.edges or (setup,)]
    table.warnings.extend(rate_without_fading(setup.scenario, channels))
    table.warnings.extend(grid_beyond_fr1(setup.scenario))
    table.warnings.extend(learning_warnings(setup))
    table.warnings.extend(event_warnings(setup.scenario, table.events))
    said = [] if table.note in table.warnings else [meaning_of_shares(setup), left_out_steps(setup)]
    return replace(table, note="; ".join(filter(None, (table.note, *said))))


def _feasibility_of_cell(
    setup: Setup, redrawn: bool, numbers: list[int] | None = None
) -> Feasibility:
    cell = setup.cell(simpy.Environment())
    check_times(setup.scenario, cell, setup.method)
    clock = setup.clock
    wanted = clock.room(Desk(cell.env, len(cell.fleet)))
    return feasibility_table(cell, setup.method, redrawn, wanted, clock.overlapping, numbers)


def meaning_of_shares(setup: Setup) -> str:
    """What a planned share is where jobs overlap; "": the share of a round."""
    if not isinstance(setup.clock, Overlapping):
        return ""
    if setup.keeps_promises:
        return "later devices divide what those at work leave of the band"
    slot = f"1 / {setup.clock.slots} of the band"
    if setup.scenario.network.uplink.share in AMONG_SENDERS:
        return f"plans count with {slot} each, and those that send divide all of it"
    return f"shares are slots: {slot} while a device is at work"


def left_out_steps(setup: Setup) -> str:
    """What a planned duration is where devices leave out steps; "": that of the round."""
    partial = setup.scenario.clock.partial
    if partial == "none":
        return ""
    return f"plans are of all steps; clock.partial: {partial} leaves out those that would be late"
