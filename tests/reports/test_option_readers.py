"""What a key of a report.yaml may hold."""

import pytest

from edgesim.errors import ScenarioError
from reports.report_options import read_options


@pytest.fixture
def units_file(tmp_path):
    path = tmp_path / "report.yaml"
    path.write_text("units:\n  latency: us\n  energy: mJ\n", encoding="utf-8")
    return path


def test_a_unit_of_the_command_line_joins_those_of_the_file(units_file):
    units = read_options(units_file, ["units.latency=s"]).units
    assert (units.latency, units.time, units.energy) == ("s", "s", "mJ")


def test_an_unknown_quantity_has_its_own_place(units_file):
    """It was that of `units`: the first line of the file, also for one of the command line."""
    with pytest.raises(ScenarioError) as wrong:
        read_options(units_file, ["units.latenc=s"])
    assert str(wrong.value) == "command line: units.latenc is unknown; did you mean latency?"
    units_file.write_text("units:\n  latency: us\n  joules: mJ\n", encoding="utf-8")
    with pytest.raises(ScenarioError) as wrong:
        read_options(units_file)
    assert str(wrong.value).endswith(
        "report.yaml:3: units.joules is unknown; allowed is latency or time or bits or energy"
    )
