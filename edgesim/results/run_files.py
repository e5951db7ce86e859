"""Readers of the files in a run's folder; what cannot be read is named in one sentence."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgesim.errors import EdgesimError, ResultsError, ScenarioError, shorten
from edgesim.records.checksums import read_summed
from edgesim.scenario.documents.yaml_text import MAX_RESOLVED_BYTES, document_of
from edgesim.scenario.fields.quantities import RoundsOrTime
from edgesim.scenario.section import ValueRefusedError
from edgesim.tables.table_reading import clause
from fl.stored_files import MAX_JSON_BYTES, DamagedFileError, check_seal, is_sealed

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("rounds", "device_rounds", "spans", "scores", "measures")
MAX_DEVICES_BYTES = 1 << 30  # of devices.csv
MAX_DEVICE_COLUMNS = 100
MAX_FILE_BYTES = 8 << 30
MAX_NUMBER = 1e100


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; where it holds a digest, its bytes are compared with it.

    Raises:
        ResultsError: the file cannot be read, is damaged, or holds something else.
    """
    content = _content(path, MAX_JSON_BYTES)
    try:
        value = json.loads(content)
        json.dumps(value, ensure_ascii=False).encode()  # no half of a character of UTF-16
        if is_sealed(content) or (isinstance(value, dict) and "digest" in value):
            check_seal(content)
    except DamagedFileError as error:
        raise ResultsError(f"{path} is damaged: {error}.") from None
    except RecursionError:
        raise ResultsError(f"{path} cannot be read: it is nested too deep.") from None
    except ValueError as error:
        raise ResultsError(f"{path} cannot be read: {clause(error)}.") from None
    if not isinstance(value, dict):
        raise ResultsError(f"{path} holds no JSON object.")
    return value


def read_scenario(path: Path) -> tuple[str, dict[str, Any]]:
    """A resolved scenario as its text and as parsed YAML.

    Raises:
        ResultsError: the file cannot be read, is damaged, or holds no mapping.
    """
    content = _content(path, MAX_RESOLVED_BYTES)
    try:
        scenario = document_of(content, path).tree
    except ScenarioError as error:
        raise ResultsError(f"{path} cannot be read: {clause(error)}.") from None
    report = scenario.get("report")
    mappings = {key: scenario.get(key) for key in ("provenance", "evaluate")}
    mappings["report.schemes"] = report.get("schemes") if isinstance(report, dict) else None
    for key, value in mappings.items():
        if not isinstance(value or {}, dict):
            raise ResultsError(f"{path} is damaged: {key} is {shorten(value)}, not a mapping.")
    evaluate = scenario.get("evaluate") or {}
    try:
        if "every" in evaluate:
            RoundsOrTime().read(evaluate["every"])
    except ValueRefusedError as error:
        raise ResultsError(f"{path} is damaged: evaluate.every is {error}.") from None
    return content.decode("utf-8", "replace"), scenario


def read_devices(path: Path) -> pd.DataFrame | None:
    """devices.csv: one row per device, of numbers and the text ``client``; None: no such file.

    Raises:
        ResultsError: the file cannot be read, or holds something else.
    """
    import pandas as pd

    if not path.is_file():
        return None
    content = _content(path, MAX_DEVICES_BYTES)
    try:
        if content.partition(b"\n")[0].count(b",") >= MAX_DEVICE_COLUMNS:
            raise ValueError(f"it has more than {MAX_DEVICE_COLUMNS} columns")
        numbers = pd.read_csv(io.BytesIO(content), nrows=0).columns.drop("client", errors="ignore")
        # ids stay as they are written: 007 is no number, and NA no gap
        gaps: Any = {"keep_default_na": False, "na_values": {name: [""] for name in numbers}}
        table = pd.read_csv(io.BytesIO(content), dtype={"client": str}, **gaps)
    except ValueError as error:
        raise ResultsError(f"{path} cannot be read: {clause(error)}.") from None
    if "device" not in table or table["device"].dtype.kind != "i":
        raise ResultsError(f"{path} is damaged: it has no column of device numbers.")
    for name in numbers:
        values = table[name]
        if values.dtype.kind not in "iuf":
            problem = "holds no numbers"
        elif name == "device" and values.tolist() != list(range(len(table))):
            problem = "does not count the devices from 0"
        elif (large := (values.abs() > MAX_NUMBER) & ~unconnected(values)).any():
            row = int(large.to_numpy().argmax())
            problem = f"is {values[row]} in row {row + 1}; allowed are numbers up to {MAX_NUMBER:g}"
        else:
            continue
        raise ResultsError(f"{path} is damaged: its column {_name(name)} {problem}.")
    return table


def unconnected(values: pd.Series) -> pd.Series:
    """Devices without a connection, whose path gain is -inf dB."""
    return (values == -math.inf) & (values.name == "path_gain_db")


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
    whole = all(isinstance(row, list) and all(map(_is_count, row)) for row in rows)
    lengths = {len(row) for row in rows} if whole else set()
    if not isinstance(labels, list) or lengths != {len(labels)}:
        raise ResultsError(f"{path} is damaged: it does not hold one count per device and label.")
    return content


def _content(path: Path, max_bytes: int) -> bytes:
    """The bytes of a file, compared with SHA256SUMS where the folder has one."""
    try:
        return read_summed(path, max_bytes)
    except OSError as error:
        reason = error.strerror or clause(error)
        raise ResultsError(f"{path} cannot be read: {reason}.") from None
    except EdgesimError as error:
        raise ResultsError(f"{clause(error)}.") from None


def content_of(path: Path) -> bytes | None:
    """The bytes of any file of a run; None where the run has none of that name.

    Raises:
        ResultsError: it cannot be read, or is damaged.
    """
    return _content(path, MAX_FILE_BYTES) if path.exists() else None


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _name(column: object) -> str:
    text = str(column)
    return text if len(text) <= 40 else shorten(text)
