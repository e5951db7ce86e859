"""What a table may hold, and the sentence about what it may not."""

import sys

import numpy as np
import pytest

from edgesim.records.run_tables.table_columns import SCHEMAS
from edgesim.tables.table_checks import TableError, check_table

SPANS = {
    "round": [0, 0, 1],
    "device": [0, 1, 0],
    "phase": ["train", "upload", "train"],
    "start_s": [0.0, 0.0, 1.5],
    "end_s": [1.0, 1.0, 2.0],
    "bits": [0.0, 8.0, 0.0],
    "cycles": [1.0, 0.0, 1.0],
    "energy_j": [0.5, 0.1, 0.5],
}


def arrays(columns):
    kinds = {int: np.int64, float: float, str: object}
    return {
        name: np.array(values, dtype=kinds[SCHEMAS["spans"][name]])
        for name, values in columns.items()
    }


def test_a_whole_table_passes_and_so_does_one_of_a_version_with_fewer_columns():
    check_table("spans", arrays(SPANS))
    check_table("spans", {"round": np.array([0, 1])})


@pytest.mark.parametrize(
    ("column", "row", "value", "sentence"),
    [
        ("energy_j", 1, 1e308, "column energy_j, row 2: is 1e+308; allowed are numbers from 0 to"),
        ("energy_j", 2, np.nan, "column energy_j, row 3: is nan; allowed are numbers from 0"),
        ("bits", 0, -1.0, "column bits, row 1: is -1.0; allowed are"),
        ("round", 0, -1, "column round, row 1: is -1; allowed are"),
        ("device", 1, 2**60, "column device, row 2: is 1152921504606846976; allowed are"),
        ("phase", 2, "", 'column phase, row 3: is "" with 0 letters; allowed are 1 to 200'),
        ("phase", 1, "x" * 10**6, "with 1000000 letters; allowed are 1 to 200"),
        ("phase", 1, 3, "column phase, row 2: is 3, which is no text"),
        ("round", 2, 0, "row 3: round 0, device 0, start_s 1.5 stands behind a later one"),
    ],
)
def test_the_first_wrong_value_is_named(column, row, value, sentence):
    table = arrays(SPANS)
    table[column][row] = value
    with pytest.raises(TableError) as error:
        check_table("spans", table)
    assert sentence in str(error.value)


def test_kinds_of_columns():
    table = arrays(SPANS)
    with pytest.raises(TableError, match="column device holds fractions or gaps, not whole"):
        check_table("spans", {**table, "device": np.array([0.0, 1.5, 0.0])})
    with pytest.raises(TableError, match="column bits holds text, not numbers"):
        check_table("spans", {**table, "bits": np.array(["a", "b", "c"], dtype=object)})


def test_a_device_stands_once_in_a_round_and_its_status_is_a_known_one():
    rounds, devices = np.array([0, 0]), np.array([1, 1])
    with pytest.raises(TableError, match="row 2: round 0, device 1 stands twice; rows are sorted"):
        check_table("device_rounds", {"round": rounds, "device": devices})
    with pytest.raises(TableError, match=r"allowed are arrived, .*, unfinished"):
        check_table("device_rounds", {"status": np.array(["late", "gone"], dtype=object)})


def test_a_table_is_checked_by_columns_not_by_rows():
    count = 100_000
    table = {
        "round": np.arange(count),
        "device": np.zeros(count, dtype=int),
        "phase": np.full(count, "train", dtype=object),
        "energy_j": np.ones(count),
    }
    calls = []
    sys.setprofile(lambda frame, event, argument: calls.append(event))
    try:
        check_table("spans", table)
    finally:
        sys.setprofile(None)
    assert len(calls) < 1_000
