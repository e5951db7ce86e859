"""Activities of devices that are away."""

import pandas as pd
import pytest

import edgesim
from edgesim.tables.table_reading import read_event_log
from edgesim.verification.check_result import FAILED, PASSED
from edgesim.verification.presence_check import check_presence


@pytest.mark.parametrize("lines", ["0,0,inf\n1,0.01,inf\n", "0,0.01,inf\n1,0.01,inf\n"])
def test_a_device_that_was_never_there_has_done_nothing(static_scenario, tmp_path, lines):
    """Device 2 has no line in the trace; device 0 is there at the start, or nobody is."""
    (static_scenario.parent / "there.csv").write_text("device,start_s,end_s\n" + lines)
    given = edgesim.load(
        static_scenario, ["rounds=1", "devices.0.presence={kind: trace, file: there.csv}"]
    )
    edgesim.simulate(given, out=tmp_path / "run")
    tables = read_event_log(tmp_path / "run")
    assert [check.outcome for check in check_presence(tmp_path / "run", tables)] == [PASSED]
    one = tables["spans"].iloc[[0]].assign(device=2)
    tables["spans"] = pd.concat([tables["spans"], one], ignore_index=True)
    (found,) = check_presence(tmp_path / "run", tables)
    assert found.outcome == FAILED
    assert found.detail.startswith("device 2 has ")
