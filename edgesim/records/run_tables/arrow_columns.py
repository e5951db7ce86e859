"""Columns as Arrow arrays, made without pandas, which `pyarrow.array` would import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Column = list | np.ndarray
KINDS = {"i": int, "f": float, "O": str, "U": str}  # of numpy's dtypes


def arrow_table(columns: Mapping[str, Column], schema: Mapping[str, type] | None = None) -> Any:
    """A `pyarrow.Table` of columns without gaps.

    Args:
        columns: name -> values, of one kind each.
        schema: name -> int, float or str; None: as the values are.
    """
    import pyarrow

    names = list(columns if schema is None else schema)
    kinds = schema or dict.fromkeys(names)
    arrays = [arrow_array(columns[name], kinds[name]) for name in names]
    return pyarrow.table(arrays, names=names)


def arrow_array(values: Column, kind: type | None = None) -> Any:
    """A `pyarrow.Array` of type int64, float64 or string; the arguments are those of a table."""
    import pyarrow

    column = np.asarray(values)
    kind = kind or KINDS[column.dtype.kind]
    if kind is str:
        words = [word.encode() for word in column.tolist()]
        ends = np.cumsum([0, *map(len, words)], dtype=np.int32)
        buffers = pyarrow.py_buffer(ends), pyarrow.py_buffer(b"".join(words))
        return pyarrow.StringArray.from_buffers(len(words), *buffers)
    data = np.ascontiguousarray(column, dtype=np.int64 if kind is int else np.float64)
    arrow_type = pyarrow.int64() if kind is int else pyarrow.float64()
    return pyarrow.Array.from_buffers(arrow_type, len(data), [None, pyarrow.py_buffer(data)])
