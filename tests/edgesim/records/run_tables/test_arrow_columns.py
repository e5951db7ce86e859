"""Columns as Arrow arrays are those that pyarrow makes itself."""

import math

import numpy as np
import pyarrow
import pytest

from edgesim.records.run_tables.arrow_columns import arrow_array, arrow_table

COLUMNS = {
    "round": [0, -1, 2**62],
    "loss": [0.1, math.inf, -0.0],
    "status": ["late", "", "µ ±"],
    "share": np.array([0.5, 1e-300, 3.0]),
    "device": np.arange(6)[::2],
    "phase": np.array(["a", "bc", "d"], dtype=object),
}


def test_they_equal_pyarrows_own():
    made, expected = arrow_table(COLUMNS), pyarrow.table(COLUMNS)
    assert made.equals(expected) and made.schema == expected.schema
    made.validate(full=True)


@pytest.mark.parametrize(("kind", "name"), [(int, "int64"), (float, "double"), (str, "string")])
def test_an_empty_column_has_the_type_of_its_schema(kind, name):
    assert str(arrow_array([], kind).type) == name and len(arrow_array([], kind)) == 0


def test_nan_stays_nan_and_is_no_gap():
    column = arrow_array([math.nan, 1.0])
    assert column.null_count == 0 and math.isnan(column[0].as_py())
