"""Who was there, drawn again, and nothing that a device did while it was away."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgesim.errors import EdgesimError, ResultsError, counted
from edgesim.extensions.device_presence import find_absences
from edgesim.scenario.loader import load
from edgesim.seeds import Seeds
from edgesim.tables.table_reading import read_event_log
from edgesim.verification.check_result import (
    FAILED,
    PASSED,
    SKIPPED,
    TOLERANCE,
    CheckResult,
    first_difference,
)

if TYPE_CHECKING:
    import pandas as pd

PRESENCE = "presence"


def check_presence(folder: Path, tables: dict[str, pd.DataFrame]) -> list[CheckResult]:
    """The check, for a run whose devices come and go.

    Args:
        folder: of a finished run.
        tables: of the run.
    """
    if "left" not in tables["rounds"]:
        return []
    try:
        found = read_event_log(folder, [PRESENCE])[PRESENCE]
    except ResultsError as error:
        return [CheckResult(PRESENCE, FAILED, str(error))]
    try:
        scenario = load(folder / "scenario.yaml")
        absences = find_absences(scenario, Seeds(scenario.seed))
    except EdgesimError as error:
        return [CheckResult(PRESENCE, SKIPPED, str(error))]
    end_s = float(tables["rounds"]["time_s"].iloc[-1])
    again = absences.presence.table(end_s) if absences else {"device": []}
    if len(found) != len(again["device"]):
        problem = f"{len(found)} intervals, and {len(again['device'])} drawn again"
        return [CheckResult(PRESENCE, FAILED, problem)]
    for column, values in again.items():
        at = first_difference(found[column], values)
        if at is not None:
            problem = f"{column} is {found[column][at]}, and drawn again {values[at]}"
            return [CheckResult(PRESENCE, FAILED, f"interval {at}: {problem}")]
    parts = absences.presence.parts if absences else []
    devices = {k for part in parts for k in np.flatnonzero(part.member >= 0).tolist()}
    return [check_spans(found, tables["spans"], devices)]


def check_spans(
    presence: pd.DataFrame, spans: pd.DataFrame, devices: Collection[int]
) -> CheckResult:
    """Every span of a device that comes and goes lies in one of its intervals."""
    starts, ends = defaultdict(list), defaultdict(list)
    for k, start_s, end_s in zip(*(presence[name] for name in presence), strict=True):
        starts[k].append(start_s)
        ends[k].append(end_s)
    for row in spans[spans["device"].isin(devices)].to_dict("records"):
        k, slack_s = row["device"], TOLERANCE * (1.0 + row["end_s"])
        at = bisect_right(starts[k], row["start_s"] + slack_s) - 1
        if at < 0 or row["end_s"] > ends[k][at] + slack_s:
            when = f"from {row['start_s']} to {row['end_s']} s"
            problem = f"device {k} has {row['phase']} {when}, when it was not there all the time"
            return CheckResult(PRESENCE, FAILED, problem)
    return CheckResult(
        PRESENCE, PASSED, f"{counted(len(presence), 'interval')}, {counted(len(spans), 'span')}"
    )
