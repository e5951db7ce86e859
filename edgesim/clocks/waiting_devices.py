"""Devices that wait: which of them draw power meanwhile, and what is charged for it."""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np

from edgesim.clocks.flights import Desk, in_device_order
from edgesim.clocks.rules import Rules
from edgesim.engine.interruptions import FAILED
from edgesim.network.cell import Cell
from edgesim.records.event_log import EventLog
from fl.contracts import View


def failed_in_this_round(rules: Rules, desk: Desk) -> set[int]:
    """Devices whose last job has failed; they are off for the rest of the round.

    Where jobs overlap there are no rounds: such devices wait until they are asked again.
    """
    if rules.overlapping:
        return set()
    flights = in_device_order([*desk.gone, *desk.held])
    last = {flight.grant.device: flight.ended.status for flight in flights}
    return {k for k, status in last.items() if status == FAILED}


def charge_idle_power(
    log: EventLog,
    cell: Cell,
    desk: Desk,
    g: int,
    devices: Sequence[int],
    failed: Container[int] = (),
) -> None:
    """Charge idle power until now to devices that have waited; those that failed draw none."""
    power_w, since_s, now_s = cell.fleet.idle_power_w, desk.idle_since_s, desk.env.now
    for k in devices:
        if k in cell.running.states:  # `charge_waiting`
            continue
        if power_w[k] > 0.0 and since_s[k] < now_s:
            phase, energy = ("off", None) if k in failed else ("idle", cell.ledger.idle(k))
            for start_s, end_s in cell.there(k, float(since_s[k]), now_s):
                log.add_span(g, k, phase, start_s, end_s, energy)


def charge_waiting(log: EventLog, cell: Cell, g: int, devices: Sequence[int]) -> None:
    """Record how devices with a state have waited, or were off, until now."""
    for k in devices:
        for piece in cell.running.pieces(k):
            log.add_waiting(g, k, *piece)


def drawing_idle_power(cell: Cell, view: View, g: int, overlapping: bool = False) -> list[int]:
    """The devices that are there in version g and draw idle power.

    Where jobs overlap, those that the view calls idle are only those that may start.
    """
    if not cell.fleet.idle_power_w.any():
        return []
    if cell.absences is not None:  # whoever has left has waited before
        idle = np.arange(len(cell.fleet))
    else:
        idle = cell.view(g).idle if overlapping else view.idle
    return idle[cell.fleet.idle_power_w[idle] > 0.0].tolist()
