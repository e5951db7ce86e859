"""The tables of a run that is going on: rows are added, drained for a checkpoint, and put back.

A table is kept as blocks of columns, one a round: lists, or arrays where there are many devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from edgesim.errors import EdgesimError
from edgesim.records.atomic_files import write_atomic
from edgesim.records.run_tables.table_columns import (
    SCHEMAS,
    Columns,
    FurtherColumns,
    joined,
    rows_of,
    schemas_with,
    typed,
)
from edgesim.records.run_tables.table_files import frame, write_tables
from fl.contracts import METRIC

if TYPE_CHECKING:
    import pandas


class LogError(EdgesimError):
    """The log was used out of order."""


class GrowingTables:
    """The tables of one run.

    Args:
        more: columns that they have beside `table_columns.ROUND_SCHEMAS`: some of
            `table_columns.FURTHER_COLUMNS`, in their order.
    """

    def __init__(self, *more: FurtherColumns) -> None:
        self.schemas = schemas_with(*more)
        self._blocks: dict[str, list[Columns]] = {name: [] for name in SCHEMAS}
        self._fresh: dict[str, list[Columns]] = {name: [] for name in SCHEMAS}  # not yet drained
        self._frozen = False

    def add(self, block: Mapping[str, Columns]) -> None:
        """Write finished rows: table -> column -> list or array."""
        if self._frozen:
            raise LogError("the log is frozen; nothing can be added")
        for name, columns in block.items():
            rows = {
                column: typed(columns[column], kind) for column, kind in self.schemas[name].items()
            }
            if rows_of(rows):
                self._blocks[name].append(rows)
                self._fresh[name].append(rows)

    def drain(self) -> dict[str, Columns]:
        """The rows recorded since the last drain: table -> column -> list or array."""
        fresh = {name: joined(blocks, self.schemas[name]) for name, blocks in self._fresh.items()}
        self._fresh = {name: [] for name in SCHEMAS}
        return fresh

    def restore(self, blocks: Mapping[str, Columns] | Iterable[Mapping[str, Columns]]) -> None:
        """Put drained rows back, one drain or several in order; they count as drained."""
        for block in [blocks] if isinstance(blocks, Mapping) else blocks:
            self.add(block)
        self._fresh = {name: [] for name in SCHEMAS}

    def columns(self, table: str) -> Columns:
        """One table by its name in `table_columns.SCHEMAS`, column -> list or array."""
        blocks = self._blocks[table]
        if len(blocks) != 1:
            blocks[:] = [joined(blocks, self.schemas[table])]
        return blocks[0]

    @property
    def tables(self) -> dict[str, Columns]:
        """Every table by name."""
        return {name: self.columns(name) for name in SCHEMAS} | {"rounds": self._rounds()}

    def _rounds(self) -> Columns:
        """The table rounds, with the task's own metric as its last column, if there is one."""
        rounds, own = self.columns("rounds"), dict[str, dict[int, float]]()
        for g, name, value in zip(*self.columns("measures").values(), strict=True):
            if name.startswith(METRIC):
                own.setdefault(name.removeprefix(METRIC), {})[g] = value
        return rounds | {
            name: [values.get(g, math.nan) for g in rounds["round"]] for name, values in own.items()
        }

    @property
    def stretched_rounds(self) -> int:
        """Number of rounds that were planned for more time than the threshold."""
        return int(sum(self.columns("plans")["stretched"]))

    def table(self, name: str) -> pandas.DataFrame:
        """One table as a data frame."""
        columns = self._rounds() if name == "rounds" else self.columns(name)
        schema = self.schemas[name]
        return frame(columns, schema | dict.fromkeys(set(columns) - set(schema), float))

    def write_tables(
        self, folder: Path, write: Callable[[Path, bytes | str], None] = write_atomic
    ) -> None:
        """Write the tables of a run's folder; the same rows always give the same bytes."""
        write_tables(self.tables, folder, write)
