"""One finished run, read from its folder and checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgesim.results.run_files import (
    TABLES,
    ResultsError,
    read_devices,
    read_event_log,
    read_json,
    read_partition,
    read_scenario,
)

if TYPE_CHECKING:
    import pandas as pd

SUMMARY_KEYS = (
    *("scenario", "scheme", "method", "solver", "seed", "rounds", "devices"),
    *("latency_threshold_s", "targets"),
)
SUMMARY_KINDS = {"seed": int, "rounds": int, "devices": int, "targets": dict}
COLUMNS = {
    "rounds": "round time_s latency_s selected late infeasible loss accuracy accuracy_std "
    "bits_up bits_down energy_j solver_residual",
    "device_rounds": "round device status share rho",
    "spans": "round device phase start_s end_s energy_j",
    "scores": "round device loss accuracy",
    "measures": "round name value",
}
TEXT_COLUMNS = frozenset({"status", "phase", "name"})


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """The content of a run's folder. Times in s, energy in J, payload in bit.

    scenario: scenario.yaml, parsed.     partition: {"labels": [C], "counts": [K][C]}.
    scores: of each device with test data in evaluated rounds; empty in older folders.
    measures: what the method measured in evaluated rounds; empty in older folders.
    """

    folder: Path
    summary: dict[str, Any]
    scenario: dict[str, Any]
    scenario_text: str
    rounds: pd.DataFrame
    device_rounds: pd.DataFrame
    spans: pd.DataFrame
    partition: dict[str, Any] | None
    devices: pd.DataFrame | None
    scores: pd.DataFrame | None = None
    measures: pd.DataFrame | None = None

    @property
    def threshold_s(self) -> float | None:
        """Latency threshold T_th of the scenario; None where it sets none."""
        value = self.summary["latency_threshold_s"]
        return float(value) if value is not None and math.isfinite(value) else None

    @property
    def seed(self) -> int:
        return int(self.summary["seed"])


def read_run(folder: Path) -> FinishedRun:
    """Read one run folder and check that what the report needs is there.

    Raises:
        ResultsError: a file or column is missing or broken, or the run is unfinished.
    """
    summary = _read_summary(folder / "summary.json")
    tables = _read_tables(folder)
    done, planned = len(tables["rounds"]), summary["rounds"]
    if done != planned or not done:
        raise ResultsError(
            f"{folder} is unfinished ({done} of {planned} rounds in rounds.csv); resume it first."
        )
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


def _read_summary(path: Path) -> dict[str, Any]:
    summary = read_json(path)
    missing = [key for key in SUMMARY_KEYS if key not in summary]
    if missing:
        raise ResultsError(f"{path} lacks {', '.join(missing)}; it is not a run of this version.")
    wrong = [key for key, kind in SUMMARY_KINDS.items() if not isinstance(summary[key], kind)]
    if "targets" not in wrong and not all(map(_is_number, summary["targets"])):
        wrong.append("targets")
    limit = summary["latency_threshold_s"]
    if limit is not None and not _is_number(limit):
        wrong.append("latency_threshold_s")
    if wrong:
        value = str(summary[wrong[0]])[:40]
        raise ResultsError(f"{path} is damaged: {wrong[0]} is {value!r}.")
    return summary


def _is_number(value: Any) -> bool:
    try:
        return not math.isnan(float(value))
    except (TypeError, ValueError):
        return False


def _read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables by name; a column is missing, or has text where numbers belong: ResultsError."""
    tables = read_event_log(folder)
    for name in TABLES:
        table, wanted = tables[name], COLUMNS[name].split()
        where = f"The table {name} in {folder}"
        missing = [column for column in wanted if column not in table.columns]
        if missing:
            lacks = f"lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}"
            raise ResultsError(f"{where} {lacks}; {_made_by(folder)}: run its scenario again.")
        numbers = [column for column in wanted if column not in TEXT_COLUMNS]
        texts = [c for c in numbers if table[c].dtype.kind not in "iuf" and len(table)]
        if texts:
            raise ResultsError(f"{where} is damaged: its column {texts[0]} holds no numbers.")
    return tables


def _made_by(folder: Path) -> str:
    """Which version wrote a run, for people who wonder why it lacks something."""
    try:
        provenance = read_scenario(folder / "scenario.yaml")[1].get("provenance") or {}
    except ResultsError:
        provenance = {}
    known = [f"{key} {provenance[key]}" for key in ("edgesim", "git") if key in provenance]
    return f"another version wrote it ({', '.join(known)})" if known else "another version wrote it"
