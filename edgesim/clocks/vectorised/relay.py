"""Jobs that are handed out one by one, each where another ends: planned and played together.

Where every arrival makes room for one more job, each job has a slot of the band of its own, and it
is known whom the server would ask on each occasion, the jobs depend on each other only through who
is free. That is decided one after the other; everything else is done for all of them at once, as
far as none of them ends before the last of the others begins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edgesim.clocks.vectorised.counting_desk import CountingDesk
from edgesim.engine.vectorised.device_spans import DeviceSpans, take_part
from edgesim.engine.vectorised.round_loop import CountedMethod
from edgesim.network.cell import Cell
from edgesim.network.grants import Grants, grants_of
from fl.contracts import Array, State, View
from fl.method_base.hook_answers import demand_of


@dataclass(frozen=True, eq=False)
class Relay:
    """Jobs that are handed out one by one.

    Args:
        ends: jobs at work that end meanwhile, in this order: one before each but the first is
            handed out [S - 1].
        grants: of the new jobs [S].
        played: their spans.
        start_s: when each is handed out [S], s.
    """

    ends: Array
    grants: Grants
    played: DeviceSpans
    start_s: Array


def find_relay(
    desk: CountingDesk, cell: Cell, method: CountedMethod, state: State, view: View, most: int
) -> Relay | None:
    """The next jobs: one now, and one at each of the next ends.

    They end where two jobs end at one instant, or no candidate (`CountedMethod.candidates`) is
    free. None: that holds for the first already, nobody is at work, or the method follows another
    rule.

    Args:
        desk: the jobs at work.
        cell: devices and band, in slots.
        method: says who is asked, and at what cost.
        state: of the method.
        view: what the server knows; all devices are there.
        most: how many jobs, at least 1.
    """
    candidates = method.candidates(range(desk.turn, desk.turn + most)) if desk.out else None
    if candidates is None:
        return None
    ends = desk.next_ends(most - 1)
    due_s = desk.columns.rows["due_s"][ends]
    together = np.flatnonzero(due_s[1:] == due_s[:-1])
    ends = ends[: together[0] if len(together) else most - 1]
    back = desk.columns.rows["device"][ends]
    devices = first_free(desk.is_free, back, candidates[: len(ends) + 1])
    if not len(devices):
        return None
    start_s = np.append(desk.env.now, due_s)[: len(devices)]
    plan = cell.plan(demand_of(method, state, view, devices), view)
    grants = grants_of(plan)
    if plan.infeasible or not len(grants):
        return None
    spans = played(cell, method, grants, start_s)
    too_soon = np.minimum.accumulate(spans.busy_until_s)[:-1] <= start_s[1:]
    if too_soon.any():
        count = 1 + int(too_soon.argmax())
        grants, start_s = Grants(*(each[:count] for each in grants.columns)), start_s[:count]
        spans = played(cell, method, grants, start_s)
    return Relay(ends[: len(grants) - 1], grants, spans, start_s)


def played(
    cell: Cell,
    method: CountedMethod,
    grants: Grants,
    start_s: float | Array,
    until_s: float = math.inf,
) -> DeviceSpans:
    """The spans of jobs from their starts on, s, to their ends, or until an instant, s."""
    stages, payload = method.orders(grants)
    return take_part(cell, grants, stages, payload, start_s, until_s)


def first_free(is_free: Array, back: Array, candidates: Array) -> Array:
    """Whom the server asks one after the other; as many as find a candidate that is free.

    Args:
        is_free: before the first is asked, bool [K].
        back: device that comes back before the second is asked, before the third, ... [S - 1].
        candidates: devices that each can be, in the order in which they are tried, int [S, n].
    """
    free, chosen = bytearray(is_free.tobytes()), list[int]()
    returning, first = back.tolist(), candidates[:, 0].tolist()
    for i, k in enumerate(first):
        if i:
            free[returning[i - 1]] = True
        if not free[k]:
            idle = [other for other in candidates[i].tolist() if free[other]]
            if not idle:
                break
            k = idle[0]
        free[k] = False
        chosen.append(k)
    return np.array(chosen, dtype=int)
