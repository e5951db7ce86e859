"""sweep.parquet."""

import pandas as pd

import edgesim
from edgesim.results.loaded_results import write_sweep_table


def test_the_table_is_read_back_with_its_types_and_units_and_has_the_same_bytes(swept):
    write_sweep_table(swept)
    path = swept / "sweep.parquet"
    table, content = pd.read_parquet(path), path.read_bytes()
    pd.testing.assert_frame_equal(table, edgesim.load_sweep(swept).points)
    assert table.attrs["units"] == {"network.bandwidth": "Hz"}
    assert table["rounds"].dtype == "Int64" and table["network.bandwidth"].dtype == float
    write_sweep_table(swept)
    assert path.read_bytes() == content
