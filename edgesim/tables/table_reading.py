"""Readers of the tables in a run's folder; what cannot be used is named with column and row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgesim.errors import ResultsError, one_line, shorten
from edgesim.records.checksums import DamagedRunError, read_summed
from edgesim.records.run_tables.table_columns import ROUND_SCHEMAS, SCHEMAS
from edgesim.records.run_tables.table_files import FILES, ONLY_WITH_ROWS, frame
from edgesim.tables.table_checks import TableError, check_table

if TYPE_CHECKING:
    import pandas
    import pyarrow

MAX_BYTES = 8 << 30  # of a table in memory
MAX_CSV_BYTES = 128 << 20
AGAIN = "the command that made the run writes it again"


def read_event_log(
    folder: Path, names: Iterable[str] = tuple(FILES)
) -> dict[str, pandas.DataFrame]:
    """Tables of a run by name, each with the columns of its schema that the file has.

    Tables that are written only with rows (`table_files.ONLY_WITH_ROWS`) are empty without a file.

    Raises:
        ResultsError: a table is missing, damaged or cannot be read.
    """
    return {name: read_table(Path(folder), name) for name in names}


def read_table(folder: Path, name: str) -> pandas.DataFrame:
    """One table by its name in `table_files.FILES`, with the columns of its schema that it has.

    The table rounds has a metric of the user's own, too.

    Raises:
        ResultsError: it is missing, damaged or cannot be read.
    """
    path, schema = folder / FILES[name], SCHEMAS[name]
    if name in ONLY_WITH_ROWS and not path.exists():
        everywhere = ROUND_SCHEMAS[name]
        return frame({column: [] for column in everywhere}, everywhere)
    is_csv = path.suffix == ".csv"
    try:
        content = read_summed(path, MAX_CSV_BYTES if is_csv else MAX_BYTES)
        columns = _csv_columns(content, name) if is_csv else _parquet_columns(content, name)
        if not columns:
            raise TableError(f"it has no column of the table {name}")
        check_table(name, columns)
    except FileNotFoundError:
        raise ResultsError(f"The table {path} is missing; {AGAIN}.") from None
    except OSError as error:
        raise ResultsError(f"The table {path} cannot be read: {error.strerror}.") from None
    except DamagedRunError as error:
        raise ResultsError(f"The table {clause(error)}.") from None
    except TableError as error:
        raise ResultsError(
            f"The table {path} is damaged: {error}; delete it, and {AGAIN}."
        ) from None
    return frame(columns, {column: schema.get(column, float) for column in columns})


def _csv_columns(content: bytes, name: str) -> dict[str, np.ndarray]:
    """The columns of a CSV file; numbers to their last bit, empty fields as nan."""
    try:
        rows = csv.reader(io.StringIO(content.decode(), newline=""), strict=True)
        head = next(rows, [])
        _refuse_repeated(head)
        lines = list(rows)
    except (csv.Error, UnicodeDecodeError) as error:
        raise TableError(f"it is no CSV file ({clause(error)})") from None
    for i, line in enumerate(lines, 1):
        if len(line) != len(head):
            raise TableError(f"row {i} has {len(line)} fields and the head has {len(head)}")
    texts = dict(zip(head, zip(*lines, strict=True), strict=True)) if lines else {}
    kinds = {column: kind for column, kind in SCHEMAS[name].items() if column in head}
    if kinds and name == "rounds":  # a metric of the user's own stands behind its columns
        if not head[-1].isidentifier():  # as a name of a function is; reports name files after it
            raise TableError(f"column {shorten(head[-1])} is no name of a metric")
        kinds.setdefault(head[-1], float)
    return {column: _numbers(column, texts.get(column, ()), kind) for column, kind in kinds.items()}


def _numbers(column: str, texts: tuple[str, ...] | list, kind: type) -> np.ndarray:
    if kind is str:
        return np.array(texts, dtype=object)
    values = []
    for i, text in enumerate(texts, 1):
        try:
            values.append(float("nan") if kind is float and not text else kind(text))
        except ValueError:
            what = "whole number" if kind is int else "number"
            problem = f"is {shorten(text) if text else 'empty'}, which is no {what}"
            raise TableError(f"column {column}, row {i}: {problem}") from None
    try:
        return np.array(values, dtype=np.int64 if kind is int else np.float64)
    except OverflowError:
        raise TableError(f"column {column} holds a number that is too large") from None


def _parquet_columns(content: bytes, name: str) -> dict[str, np.ndarray]:
    """The columns of a Parquet file that its table has."""
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(content))
        groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
        if sum(group.total_byte_size for group in groups) > MAX_BYTES:
            raise TableError("unpacked it would be larger than 8 GiB")
        names = file.schema_arrow.names
        _refuse_repeated(names)
        table = file.read(columns=[column for column in SCHEMAS[name] if column in names])
    except TableError:
        raise
    except (OSError, ValueError, KeyError, NotImplementedError, pyarrow.ArrowException) as error:
        raise TableError(f"it is no Parquet file ({clause(error)[:200]})") from None
    return {column: _values(column, table[column]) for column in table.column_names}


def _values(column: str, values: pyarrow.ChunkedArray) -> np.ndarray:
    if values.null_count and str(values.type) != "double":  # of numbers, empty is nan
        row = next(i for i, value in enumerate(values, 1) if not value.is_valid)
        raise TableError(f"column {column}, row {row}: is empty")
    return values.to_numpy()


def _refuse_repeated(names: list[str]) -> None:
    repeated = [column for i, column in enumerate(names) if column in names[:i]]
    if repeated:
        raise TableError(f"column {shorten(repeated[0])} stands twice")


def clause(error: Exception) -> str:
    """The message of an error on one line, without its full stop."""
    return one_line(error).rstrip(".")
