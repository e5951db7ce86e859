"""The files of tables: exact, with the types of the schema, and read back as they were written."""

import math

import numpy as np

from edgesim.records.run_tables.table_columns import ROUND_SCHEMAS as SCHEMAS
from edgesim.tables.table_reading import read_event_log


def test_tables_come_back_as_they_were_written(logged, tmp_path):
    log = logged()
    log.write_tables(tmp_path)
    for name, frame in read_event_log(tmp_path).items():
        own = log.table(name)
        assert list(frame.columns) == list(own.columns)
        for column, kind in SCHEMAS[name].items():
            np.testing.assert_array_equal(frame[column], own[column])
            assert kind is str or frame[column].dtype == np.dtype(kind)


def test_csv_is_exact_and_leaves_unknown_numbers_empty(logged, tmp_path):
    log = logged(rounds=1)
    log.columns("rounds")["bits_up"][0] = 0.1 + 0.2
    log.write_tables(tmp_path)
    header, row = (tmp_path / "rounds.csv").read_bytes().decode().splitlines()
    assert header.split(",") == list(SCHEMAS["rounds"])
    assert (
        row
        == "0,3.0,3.0,3,1,1,0,1,,,,0.25,0.5,0.30000000000000004,0.0,28.0,14.0,28.0,1e-12,-2e-07,-50.0"  # noqa: E501
    )


def test_measures_keep_the_order_of_the_method(logged, tmp_path):
    log = logged()
    names = ["density", "accuracy global", "NA", "a, b"]
    assert log.columns("measures")["name"] == names
    log.write_tables(tmp_path)
    text = (tmp_path / "measures.csv").read_text()
    assert text == 'round,name,value\n1,density,0.35\n1,accuracy global,\n1,NA,inf\n1,"a, b",3.0\n'
    back = read_event_log(tmp_path)["measures"]
    assert back.name.tolist() == names
    np.testing.assert_array_equal(back.value, [0.35, math.nan, math.inf, 3.0])
