"""The jobs of a checkpoint as columns again: `edgesim.clocks.resumed_jobs` without processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgesim.clocks.vectorised.counting_desk import CountingDesk
from edgesim.clocks.vectorised.job_columns import late_after_s
from edgesim.clocks.vectorised.relay import played
from edgesim.engine.vectorised.round_loop import CountedMethod
from edgesim.network.cell import Cell
from edgesim.network.grants import Grants
from fl.contracts import Array, Grant, RoundPlan, State


def take_up_jobs(
    desk: CountingDesk,
    cell: Cell,
    method: CountedMethod,
    state: State,
    arrays: dict[str, Array],
    record: dict[str, Any],
    until_s: float,
) -> None:
    """Bring a new desk to where it was at a checkpoint.

    Args:
        desk: without jobs, at the time of the checkpoint.
        cell: devices and band.
        method: says what each job costs.
        state: of the checkpoint.
        arrays: of the checkpoint, by name.
        record: what `edgesim.clocks.resumed_jobs.record_of_jobs` made.
        until_s: simulated time of the checkpoint, s.
    """
    flights = record["flights"]
    desk.jobs, desk.turn = int(record["jobs"]), int(record["turn"])
    idle_since_s = np.array(record["idle_since_s"], float).reshape(len(cell.fleet))
    if not flights:
        desk.idle_since_s = idle_since_s
        return
    bases = state.bases_from_arrays(arrays, record["bases"])
    desk.bases = {each["version"]: bases[each["base"]] for each in flights}
    grants = columns_of([Grant(**each["grant"]) for each in flights])
    start_s, version, number = (
        np.array([each[name] for each in flights]) for name in ("dispatched_s", "version", "number")
    )
    again = played(cell, method, grants, start_s)
    late_s = late_after_s(cell.budget_s)
    where = desk.columns.add(again, grants, number, version, start_s, late_s)
    desk.columns.forget_ended(until_s)
    has_landed = np.array([each["landed_s"] is not None for each in flights])
    desk.fly(where)
    desk.land(desk.in_order(where[has_landed]), None)
    desk.idle_since_s = idle_since_s
    if cell.keeps_promises and desk.out:
        promised = list(desk.columns.grants(where[~has_landed]))
        cell.begin_round(RoundPlan(promised), others_go_on=True)


def columns_of(grants: Sequence[Grant]) -> Grants:
    """Grants as columns."""
    rows = [(one.device, one.share, one.rho, one.cpu_hz, one.power_w) for one in grants]
    device, *others = zip(*rows, strict=True)
    return Grants(np.array(device, dtype=int), *(np.array(each) for each in others))
