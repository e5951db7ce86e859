"""The table device_states: joules against the spans, and the devices as a round found them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from edgesim.errors import counted
from edgesim.network.cell import Cell
from edgesim.network.hardware.device_state import Snapshot
from edgesim.verification.check_result import FAILED, PASSED, CheckResult, first_difference

if TYPE_CHECKING:
    import pandas as pd

STATES = "device_states"
NAME = "device states"


def check_states(tables: dict[str, pd.DataFrame]) -> CheckResult:
    """What each device has used by the end of the run are the joules of its spans, and what its
    battery holds changes by what it was charged less what it used.
    """
    states, spans = tables[STATES], tables["spans"]
    last = states.groupby("device").tail(1)
    joules = spans.groupby("device")["energy_j"].agg(math.fsum)
    expected = joules.reindex(last["device"], fill_value=0.0).to_numpy()
    at = first_difference(last["used_j"], expected)
    if at is not None:
        found = f"{last['used_j'].iloc[at]}, and its spans give {expected[at]}"
        problem = f"device {last['device'].iloc[at]}: used_j is {found}"
        return CheckResult(NAME, FAILED, problem)
    for k, own in states.groupby("device"):
        changes = np.diff(own["battery_j"]) - np.diff(own["charged_j"] - own["used_j"])
        scale = float(np.max(own[["battery_j", "charged_j", "used_j"]].to_numpy(), initial=1.0))
        wrong = np.flatnonzero(np.abs(changes) > 1e-9 * scale)
        if wrong.size:
            g = own["round"].iloc[wrong[0] + 1]
            problem = f"round {g}, device {k}: the battery is off by {changes[wrong[0]]:g} J"
            return CheckResult(NAME, FAILED, problem)
    return CheckResult(
        NAME, PASSED, f"{counted(len(states), 'row')} against {counted(len(spans), 'span')}"
    )


def put_back(cell: Cell, states: pd.DataFrame | None) -> None:
    """Put the devices of a cell back to where they were when a round began.

    Args:
        cell: at the time at which the round began.
        states: rows of device_states of the round before; None: it is the first round.
    """
    if states is None:
        return
    for row in states.to_dict("records"):
        numbers = [row.get(name, 0.0) for name in Snapshot._fields]
        cell.running.restore(int(row["device"]), numbers)
