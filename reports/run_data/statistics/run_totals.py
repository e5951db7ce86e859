"""Numbers of a single run: costs to a target, final values, sums, shares.

Times in s, payloads in bit, energy in J, shares in [0, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgesim.records.summary import to_target
from edgesim.results.finished_run import FinishedRun

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CostToTarget:
    """What had been spent by the end of the round that first reached a target accuracy.

    rounds: played, that one included.     bits: up and down, of all devices, also in flight.
    """

    rounds: int
    time_s: float
    bits: float
    energy_j: float


def cost_to_target(run: FinishedRun, target: float) -> CostToTarget | None:
    """First evaluated round with the target accuracy or more; None where no round has it."""
    spent = to_target(run.rounds, target, run.spans)
    if spent is None:
        return None
    return CostToTarget(spent["round"] + 1, spent["time_s"], spent["bits"], spent["energy_j"])


def evaluated(run: FinishedRun) -> pd.DataFrame:
    """The rounds with an accuracy."""
    return run.rounds[run.rounds["accuracy"].notna()]


def final(run: FinishedRun, column: str) -> float:
    """The column in the last round that has it; nan where none has."""
    if column not in run.rounds:  # of a metric that only other runs have
        return math.nan
    known = run.rounds[column].dropna()
    return float(known.iloc[-1]) if len(known) else math.nan


def total(run: FinishedRun, column: str) -> float:
    """Sum of a column of rounds over the run."""
    return float(run.rounds[column].sum())


def share_of_selected(run: FinishedRun, column: str) -> float:
    """Late or infeasible device-rounds over all selected ones; nan where none was selected."""
    selected = total(run, "selected")
    return total(run, column) / selected if selected else math.nan


def rho_mean(run: FinishedRun) -> float:
    """Mean pruning ratio over the device-rounds that took part."""
    table = run.device_rounds
    return float(table.loc[table["status"] != "infeasible", "rho"].mean())


def worst_residual(run: FinishedRun) -> float:
    """Worst relative KKT residual of the run's allocations; nan where no solver certified one."""
    return float(run.rounds["solver_residual"].max())
