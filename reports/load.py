"""Finds run folders and reads them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("rounds", "device_rounds", "spans", "scores", "measures")
SUMMARY_KEYS = ("scenario", "scheme", "method", "solver", "seed", "rounds", "devices", "latency_threshold_s", "targets")
COLUMNS = {
    "rounds": "round time_s latency_s selected late infeasible loss accuracy accuracy_std "
    "bits_up bits_down energy_j solver_residual",
    "device_rounds": "round device status share rho",
    "spans": "round device phase start_s end_s energy_j",
    "scores": "round device loss accuracy",
    "measures": "round name value",
}


class ReportError(Exception):
    """A report cannot be made from what was given; the message is one sentence for the user."""


@dataclass(frozen=True, eq=False)
class Run:
    """One finished run, as its folder tells it. Times in s, energy in J, payload in bit."""

    folder: Path
    summary: dict[str, Any]
    scenario: dict[str, Any]  # scenario.yaml, parsed
    scenario_text: str
    rounds: pd.DataFrame
    device_rounds: pd.DataFrame
    spans: pd.DataFrame
    partition: dict[str, Any] | None  # {"labels": [C], "counts": [K][C]}
    devices: pd.DataFrame | None
    scores: pd.DataFrame | None = None  # of each device with test data in evaluated rounds; empty in older folders
    measures: pd.DataFrame | None = None  # what the method says of itself in evaluated rounds; empty in older folders

    @property
    def threshold_s(self) -> float | None:
        """Latency threshold T_th of the scenario; None where it sets none."""
        value = self.summary["latency_threshold_s"]
        return float(value) if value is not None and math.isfinite(value) else None

    @property
    def seed(self) -> int:
        return int(self.summary["seed"])


def find_runs(places: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Run folders in or below the given places, and the unfinished ones found on the way.

    Raises:
        ReportError: a place that is no folder, or holds no finished run.
    """
    finished: dict[Path, Path] = {}
    unfinished: dict[Path, Path] = {}
    for place in places:
        here: list[Path] = []
        left_out: list[Path] = []
        _search(Path(place), here, left_out)
        if not here and left_out:
            raise ReportError(f"{left_out[0]} is unfinished (no summary.json); run its scenario again to resume it.")
        if not here:
            raise ReportError(f"No runs found in {place}; give a run's folder or one that contains some.")
        finished.update({folder.resolve(): folder for folder in here})
        unfinished.update({folder.resolve(): folder for folder in left_out})
    return list(finished.values()), list(unfinished.values())


def _search(place: Path, finished: list[Path], unfinished: list[Path]) -> None:
    """Walk in name order; a run folder is not searched further."""
    if not place.is_dir():
        raise ReportError(f"{place} is not a folder; give a run's folder or one that contains some.")
    for folder, below, files in os.walk(place):
        below.sort()
        if "summary.json" in files:
            finished.append(Path(folder))
            below.clear()
        elif {"scenario.yaml", "rounds.csv"} & set(files):
            unfinished.append(Path(folder))
            below.clear()


def load_run(folder: Path) -> Run:
    """Read one run folder and check that what the report needs is there.

    Raises:
        ReportError: a file or column is missing or broken, or the run is unfinished.
    """
    summary = _read_json(folder / "summary.json")
    missing = [key for key in SUMMARY_KEYS if key not in summary]
    if missing:
        raise ReportError(f"{folder / 'summary.json'} lacks {', '.join(missing)}; it is not a run of this version.")
    tables = read_tables(folder)
    done, planned = len(tables["rounds"]), summary["rounds"]
    if done != planned or not done:
        raise ReportError(f"{folder} is unfinished ({done} of {planned} rounds in rounds.csv); resume it first.")
    text, scenario = _read_scenario(folder / "scenario.yaml")
    partition = folder / "partition.json"
    return Run(
        folder=folder,
        summary=summary,
        scenario=scenario,
        scenario_text=text,
        partition=_read_json(partition) if partition.is_file() else None,
        devices=_read_devices(folder / "devices.csv"),
        **tables,
    )


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """The event log's tables by name, sorted by round (and device, time)."""
    from edgesim.eventlog import read_tables as read

    try:
        tables = read(folder)
    except (OSError, ValueError) as error:
        raise ReportError(f"The event log in {folder} cannot be read: {error}.") from None
    for name in TABLES:
        missing = [column for column in COLUMNS[name].split() if column not in tables[name].columns]
        if missing:
            raise ReportError(f"The table {name} in {folder} lacks the column {missing[0]}.")
    return {name: tables[name].reset_index(drop=True) for name in TABLES}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read: {error}.") from None
    if not isinstance(value, dict):
        raise ReportError(f"{path} holds no JSON object.")
    return value


def _read_scenario(path: Path) -> tuple[str, dict[str, Any]]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        text = path.read_text(encoding="utf-8")
        value = YAML(typ="safe", pure=True).load(text)
    except (OSError, ValueError, YAMLError) as error:
        raise ReportError(f"{path} cannot be read: {str(error).splitlines()[0]}.") from None
    if not isinstance(value, dict):
        raise ReportError(f"{path} holds no scenario.")
    return text, value


def _read_devices(path: Path) -> pd.DataFrame | None:
    import pandas as pd

    if not path.is_file():
        return None
    try:
        return pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read: {error}.") from None
