"""Readers of the files in a run's folder; what cannot be read is named in one sentence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgesim.errors import EdgesimError

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("rounds", "device_rounds", "spans", "scores", "measures")


class ResultsError(EdgesimError):
    """Results that cannot be read, reported or compared, in one sentence."""


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        ResultsError: the file cannot be read, or holds something else.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read: {error}.") from None
    if not isinstance(value, dict):
        raise ResultsError(f"{path} holds no JSON object.")
    return value


def read_scenario(path: Path) -> tuple[str, dict[str, Any]]:
    """A resolved scenario as its text and as parsed YAML.

    Raises:
        ResultsError: the file cannot be read, or holds no mapping.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        text = path.read_text(encoding="utf-8")
        value = YAML(typ="safe", pure=True).load(text)
    except (OSError, ValueError, YAMLError) as error:
        raise ResultsError(f"{path} cannot be read: {str(error).splitlines()[0]}.") from None
    if not isinstance(value, dict):
        raise ResultsError(f"{path} holds no scenario.")
    return text, value


def read_event_log(folder: Path, names: Sequence[str] = TABLES) -> dict[str, pd.DataFrame]:
    """Tables of a run by name, with whatever columns they have.

    Raises:
        ResultsError: a table is missing or cannot be read.
    """
    from edgesim.records.table_files import read_tables

    try:
        tables = read_tables(folder, names)
    except (OSError, ValueError, KeyError, NotImplementedError) as error:
        reason = _one_line(error)[:300]
        cure = "delete the damaged table, and the same run writes it again"
        raise ResultsError(f"The event log in {folder} cannot be read: {reason}; {cure}.") from None
    return {name: table.reset_index(drop=True) for name, table in tables.items()}


def read_devices(path: Path) -> pd.DataFrame | None:
    """devices.csv: one row of numbers per device; None where the run has no such file.

    Raises:
        ResultsError: the file cannot be read, or holds something else.
    """
    import pandas as pd

    if not path.is_file():
        return None
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read: {_one_line(error)}.") from None
    if "device" not in table or table["device"].dtype.kind != "i":
        raise ResultsError(f"{path} is damaged: it has no column of device numbers.")
    words = [name for name in table.columns if table[name].dtype.kind not in "iuf"]
    if words:
        raise ResultsError(f"{path} is damaged: its column {words[0]} holds no numbers.")
    return table


def read_partition(path: Path) -> dict[str, Any] | None:
    """partition.json: {"labels": [C], "counts": [K][C]}; None where the run has no such file.

    Raises:
        ResultsError: the file cannot be read, or holds something else.
    """
    if not path.is_file():
        return None
    content = read_json(path)
    labels, counts = content.get("labels"), content.get("counts")
    rows = counts if isinstance(counts, list) else []
    whole = all(isinstance(row, list) and all(type(count) is int for count in row) for row in rows)
    lengths = {len(row) for row in rows} if whole else set()
    if not isinstance(labels, list) or lengths != {len(labels)}:
        raise ResultsError(f"{path} is damaged: it does not hold one count per device and label.")
    return content


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
