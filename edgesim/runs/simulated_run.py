"""A run that was simulated, in memory: its summary, its tables, its figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgesim.errors import counted
from edgesim.records.event_log import EventLog
from edgesim.scenario.loader import Scenario
from edgesim.tables.event_tables import EventTables

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Run(EventTables):
    """A finished run.

    Args:
        folder: of its files; None: kept in memory only.
        summary: content of summary.json.
        log: the event log.
        scenario: that was run.
        spent: wall seconds by purpose (wall_s, train_s, evaluate_s, engine_s); empty where the run
            had ended before.
    """

    folder: Path | None
    summary: dict
    log: EventLog
    scenario: Scenario
    spent: dict[str, float] = field(default_factory=dict)

    def plot(self, figure: str = "accuracy", ax: Any = None, x: str | None = None) -> Any:
        """Draw a figure, such as accuracy, loss or latency: see `edgesim.results.plotting.plot`."""
        from edgesim.results.plotting import plot

        return plot(self, figure, ax, x)

    def _repr_html_(self) -> str:
        from edgesim.results.notebook_html import run_html

        return run_html(self.summary, self.folder)

    def __repr__(self) -> str:
        about = self.summary
        rounds = counted(about["rounds"], "round")
        where = f", {self.folder}" if self.folder else ""
        return f"<run {about['scheme']}, seed {about['seed']}, {rounds}{where}>"

    def _event_table(self, name: str) -> pd.DataFrame:
        return self.log.table(name)
