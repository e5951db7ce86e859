"""The tables of a run as files and data frames. The same rows always give the same bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgesim.records.run_tables.arrow_columns import arrow_table
from edgesim.records.run_tables.table_columns import DTYPES, SCHEMAS, Columns, as_list, rows_of

if TYPE_CHECKING:
    import pandas


FILES = {  # table -> file in a run's folder
    "rounds": "rounds.csv",
    "device_rounds": "device_rounds.parquet",
    "spans": "spans.parquet",
    "scores": "scores.parquet",
    "measures": "measures.csv",
    "upload_forecasts": "upload_forecasts.parquet",
    "device_states": "device_states.parquet",
    "backhaul": "backhaul.csv",
    "presence": "presence.parquet",
}
# Tables without a file where there is nothing to say.
ONLY_WITH_ROWS = ("upload_forecasts", "device_states", "backhaul", "presence")


def write_tables(
    tables: Mapping[str, Columns], folder: Path, write: Callable[[Path, bytes | str], None]
) -> None:
    """Write every table that a run's folder keeps, by ``write(path, content)``."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in FILES.items():
        as_csv, table = file.endswith(".csv"), tables[name]
        if name in ONLY_WITH_ROWS and not rows_of(table):
            continue
        schema = {column: kind for column, kind in SCHEMAS[name].items() if column in table}
        write(folder / file, csv_text(table) if as_csv else parquet(table, schema))


def frame(columns: Mapping[str, list | np.ndarray], schema: Mapping[str, type]) -> pandas.DataFrame:
    """A table as a data frame with the types of its schema."""
    import pandas

    def column(name: str, kind: type) -> Any:
        # A frame compares the indices of series with each other, which costs more than the rest.
        if kind is str:
            return pandas.Series(columns[name], dtype=kind).array
        return np.asarray(columns[name], dtype=DTYPES[kind])

    return pandas.DataFrame({name: column(name, kind) for name, kind in schema.items()})


def csv_text(columns: Columns) -> str:
    """Floats as their shortest exact form, nan as an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*(as_list(values) for values in columns.values()), strict=True):
        writer.writerow("" if value != value else str(value) for value in row)
    return text.getvalue()


def parquet(columns: Columns, schema: Mapping[str, type]) -> bytes:
    """A table as the bytes of a Parquet file, compressed by zstd."""
    import pyarrow.parquet

    sink = io.BytesIO()
    pyarrow.parquet.write_table(arrow_table(columns, schema), sink, compression="zstd")
    return sink.getvalue()
