"""One finished run, read from its folder and checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgesim.errors import ResultsError, counted
from edgesim.results.run_files import TABLES, read_devices, read_partition, read_scenario
from edgesim.results.summary_file import read_summary
from edgesim.tables.table_reading import read_event_log

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "rounds": "round time_s latency_s selected late infeasible loss accuracy accuracy_std "
    "bits_up bits_down energy_j solver_residual",
    "device_rounds": "round device status share rho",
    "spans": "round device phase start_s end_s energy_j bits",
    "scores": "round device loss accuracy",
    "measures": "round name value",
}


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """The content of a run's folder. Times in s, energy in J, payload in bit.

    scenario: scenario.yaml, parsed.     partition: {"labels": [C], "counts": [K][C]}.
    scores: of each device with test data in evaluated rounds.
    measures: what the method measured in evaluated rounds.
    """

    folder: Path
    summary: dict[str, Any]
    scenario: dict[str, Any]
    scenario_text: str
    rounds: pd.DataFrame
    device_rounds: pd.DataFrame
    spans: pd.DataFrame
    scores: pd.DataFrame
    measures: pd.DataFrame
    partition: dict[str, Any] | None
    devices: pd.DataFrame | None

    @property
    def threshold_s(self) -> float | None:
        """Latency threshold T_th of the scenario; None where it sets none."""
        value = self.summary["latency_threshold_s"]
        return None if value is None else float(value)

    @property
    def seed(self) -> int:
        return int(self.summary["seed"])


def read_run(folder: Path) -> FinishedRun:
    """Read one run folder and check that what the report needs is there.

    Raises:
        ResultsError: a file or column is missing or broken, or the run is unfinished.
    """
    summary = read_summary(folder / "summary.json")
    tables = _read_tables(folder)
    done, planned = len(tables["rounds"]), summary["rounds"]
    if done != planned or not done:
        there = f"{done} of {counted(planned, 'round')} in rounds.csv"
        raise ResultsError(f"{folder} is unfinished ({there}); resume it first.")
    _check_numbers(folder, tables, summary)
    text, scenario = read_scenario(folder / "scenario.yaml")
    return FinishedRun(
        folder=folder,
        summary=summary,
        scenario=scenario,
        scenario_text=text,
        partition=read_partition(folder / "partition.json"),
        devices=read_devices(folder / "devices.csv"),
        **tables,
    )


def _read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables by name; a damaged table, or one without a column that is needed: ResultsError."""
    tables = read_event_log(folder, TABLES)
    for name, table in tables.items():
        missing = [column for column in COLUMNS[name].split() if column not in table.columns]
        if missing:
            lacks = f"lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}"
            raise ResultsError(
                f"The table {name} in {folder} {lacks}; {_made_by(folder)}: run its scenario again."
            )
    return tables


def _check_numbers(folder: Path, tables: dict[str, pd.DataFrame], summary: dict[str, Any]) -> None:
    """Rounds and devices that the run does not have: ResultsError."""
    for name, table in tables.items():
        for column, key in (("round", "rounds"), ("device", "devices")):
            if column in table and len(table) and int(table[column].max()) >= summary[key]:
                row = int(table[column].to_numpy().argmax())
                problem = f"column {column}, row {row + 1}: is {table[column][row]}"
                raise ResultsError(
                    f"The table {name} in {folder} is damaged: {problem}, and summary.json says "
                    f"that there are {summary[key]} {key}."
                )


def _made_by(folder: Path) -> str:
    """Which version wrote a run, for people who wonder why it lacks something."""
    try:
        provenance = read_scenario(folder / "scenario.yaml")[1].get("provenance") or {}
    except ResultsError:
        provenance = {}
    known = [f"{key} {provenance[key]}" for key in ("edgesim", "git") if key in provenance]
    return f"another version wrote it ({', '.join(known)})" if known else "another version wrote it"
