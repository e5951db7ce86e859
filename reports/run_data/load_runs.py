"""Finds run folders and reads them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("rounds", "device_rounds", "spans", "scores", "measures")
SUMMARY_KEYS = (
    "scenario",
    "scheme",
    "method",
    "solver",
    "seed",
    "rounds",
    "devices",
    "latency_threshold_s",
    "targets",
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
WORDS = frozenset({"status", "phase", "name"})  # columns of text


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
    scores: pd.DataFrame | None = (
        None  # of each device with test data in evaluated rounds; empty in older folders
    )
    measures: pd.DataFrame | None = (
        None  # what the method says of itself in evaluated rounds; empty in older folders
    )

    @property
    def threshold_s(self) -> float | None:
        """Latency threshold T_th of the scenario; None where it sets none."""
        value = self.summary["latency_threshold_s"]
        return float(value) if value is not None and math.isfinite(value) else None

    @property
    def seed(self) -> int:
        return int(self.summary["seed"])


class Found(NamedTuple):
    """Folders in or below some places: finished runs, unfinished ones, and those of sweeps (with a sweep.json)."""

    finished: list[Path]
    unfinished: list[Path]
    sweeps: list[Path]


def find_runs(places: Sequence[Path]) -> Found:
    """Run folders in or below the given places, each once, and the sweeps found on the way.

    Raises:
        ReportError: a place that is no folder, cannot be read, or holds neither a run nor a sweep.
    """
    found: tuple[dict[Path, Path], ...] = ({}, {}, {})
    for place in map(Path, places):
        if not place.is_dir():
            raise ReportError(
                f"{place} is not a folder; give a run's folder or one that contains some."
            )
        here = _search(place)
        if not any(here):
            raise ReportError(
                f"No runs found in {place}; give a run's folder or one that contains some."
            )
        for known, folders in zip(found, here, strict=True):
            known.update({folder.resolve(): folder for folder in folders})
    return Found(*(list(known.values()) for known in found))


def _search(place: Path) -> Found:
    """Walk in name order; a run folder is not searched further."""
    here = Found([], [], [])
    for folder, below, files in os.walk(place, onerror=_unreadable):
        below.sort()
        if "summary.json" in files:
            here.finished.append(Path(folder))
            below.clear()
        elif {"scenario.yaml", "rounds.csv"} & set(files) or (
            Path(folder) / "checkpoint" / "log.arrows"
        ).is_file():
            here.unfinished.append(Path(folder))
            below.clear()
        elif "sweep.json" in files:
            here.sweeps.append(Path(folder))
    return here


def _unreadable(error: OSError) -> None:
    raise ReportError(f"{error.filename} cannot be read: {error.strerror}.")


def load_run(folder: Path) -> Run:
    """Read one run folder and check that what the report needs is there.

    Raises:
        ReportError: a file or column is missing or broken, or the run is unfinished.
    """
    summary = read_json(folder / "summary.json")
    missing = [key for key in SUMMARY_KEYS if key not in summary]
    if missing:
        raise ReportError(
            f"{folder / 'summary.json'} lacks {', '.join(missing)}; it is not a run of this version."
        )
    _check_summary(summary, folder)
    tables = read_tables(folder)
    done, planned = len(tables["rounds"]), summary["rounds"]
    if done != planned or not done:
        raise ReportError(
            f"{folder} is unfinished ({done} of {planned} rounds in rounds.csv); resume it first."
        )
    text, scenario = read_scenario(folder / "scenario.yaml")
    partition = folder / "partition.json"
    return Run(
        folder=folder,
        summary=summary,
        scenario=scenario,
        scenario_text=text,
        partition=_read_partition(partition) if partition.is_file() else None,
        devices=_read_devices(folder / "devices.csv"),
        **tables,
    )


def _check_summary(summary: dict[str, Any], folder: Path) -> None:
    wrong = [key for key, kind in SUMMARY_KINDS.items() if not isinstance(summary[key], kind)]
    wrong += [
        key for key in ("targets",) if key not in wrong and not all(map(_is_number, summary[key]))
    ]
    limit = summary["latency_threshold_s"]
    wrong += ["latency_threshold_s"] if limit is not None and not _is_number(limit) else []
    if wrong:
        raise ReportError(
            f"{folder / 'summary.json'} is damaged: {wrong[0]} is {str(summary[wrong[0]])[:40]!r}."
        )


def _is_number(value: Any) -> bool:
    try:
        return not math.isnan(float(value))
    except (TypeError, ValueError):
        return False


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """The event log's tables by name, sorted by round (and device, time).

    Raises:
        ReportError: a table is missing, cannot be read, lacks a column, or has text where numbers belong.
    """
    tables = read_raw(folder)
    for name in TABLES:
        _check(tables[name], name, folder)
    return tables


def read_raw(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables as they are, whatever their columns.

    Raises:
        ReportError: a table is missing or cannot be read.
    """
    from edgesim.records.table_files import read_tables as read

    try:
        tables = read(folder)
    except (OSError, ValueError, KeyError, NotImplementedError) as error:
        reason = " ".join(str(error).split()).rstrip(".")[:300]
        cure = "delete the damaged table, and the same run writes it again"
        raise ReportError(f"The event log in {folder} cannot be read: {reason}; {cure}.") from None
    return {name: tables[name].reset_index(drop=True) for name in TABLES}


def _check(table: pd.DataFrame, name: str, folder: Path) -> None:
    wanted = COLUMNS[name].split()
    missing = [column for column in wanted if column not in table.columns]
    if missing:
        lacking = f"lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}"
        raise ReportError(
            f"The table {name} in {folder} {lacking}; {_made_by(folder)}: run its scenario again."
        )
    texts = [
        c for c in wanted if c not in WORDS and table[c].dtype.kind not in "iuf" and len(table)
    ]
    if texts:
        raise ReportError(
            f"The table {name} in {folder} is damaged: its column {texts[0]} holds no numbers."
        )


def _made_by(folder: Path) -> str:
    """Which version wrote a run, for people who wonder why it lacks something."""
    try:
        provenance = read_scenario(folder / "scenario.yaml")[1].get("provenance") or {}
    except ReportError:
        provenance = {}
    known = [f"{key} {provenance[key]}" for key in ("edgesim", "git") if key in provenance]
    return f"another version wrote it ({', '.join(known)})" if known else "another version wrote it"


def read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read: {error}.") from None
    if not isinstance(value, dict):
        raise ReportError(f"{path} holds no JSON object.")
    return value


def read_scenario(path: Path) -> tuple[str, dict[str, Any]]:
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
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise ReportError(
            f"{path} cannot be read: {' '.join(str(error).split()).rstrip('.')}."
        ) from None
    if "device" not in table or table["device"].dtype.kind != "i":
        raise ReportError(f"{path} is damaged: it has no column of device numbers.")
    words = [name for name in table.columns if table[name].dtype.kind not in "iuf"]
    if words:
        raise ReportError(f"{path} is damaged: its column {words[0]} holds no numbers.")
    return table


def _read_partition(path: Path) -> dict[str, Any]:
    """Who holds how many samples of which label: {"labels": [C], "counts": [K][C]}."""
    content = read_json(path)
    labels, counts = content.get("labels"), content.get("counts")
    rows = counts if isinstance(counts, list) else []
    whole = all(isinstance(row, list) and all(type(count) is int for count in row) for row in rows)
    if (
        not isinstance(labels, list)
        or not rows
        or not whole
        or {len(row) for row in rows} != {len(labels)}
    ):
        raise ReportError(f"{path} is damaged: it does not hold one count per device and label.")
    return content
