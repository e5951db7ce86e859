"""Points of a sweep chosen for a report."""

import itertools

import pytest

from reports.figure_catalog import report_figures
from reports.run_data.scheme_grouping import load_schemes, swept_keys
from reports.run_data.scheme_selection import sliced_schemes
from reports.text.sweep_tables import sweep_pivots


@pytest.fixture
def linked_sweep(tmp_path, write_run):
    """Schemes z and a, listed so: bandwidth and interval of evaluation together, by count."""
    folders = [
        write_run(
            tmp_path / f"{name}-{every}-{count}", scheme=name, bandwidth=f"{every} MHz",
            extra=f"evaluate: {{every: {every}}}\ndevices: [{{count: {count}}}]",
        )
        for name, every, count in itertools.product("za", (1, 2, 4), (3, 4))
    ]  # fmt: skip
    linked = [("network.bandwidth", "evaluate.every")]
    return load_schemes(folders, [folder.resolve() for folder in folders], linked)


def test_a_slice_keeps_the_keys_that_the_sweep_changed_together(linked_sweep):
    whole = {figure.name for figure in report_figures(linked_sweep)[0] if "-by-" in figure.name}
    schemes = sliced_schemes(linked_sweep, {"devices.0.count": "3"})
    figures, notes = report_figures(schemes)
    assert notes == [] and "latency-by-bandwidth" in whole
    assert {figure.name for figure in figures if "-by-" in figure.name} == {
        name for name in whole if not name.endswith("by-count")
    }
    (latency,) = (t for t in sweep_pivots(schemes, swept_keys(schemes)) if "latency" in t.name)
    assert [row[0] for row in latency.rows] == ["z", "a"]  # no row of its own for each value


def test_a_slice_keeps_the_order_of_the_sweep(linked_sweep):
    schemes = sliced_schemes(linked_sweep, {"count": "3", "bandwidth": "2 MHz"})
    assert [scheme.label for scheme in schemes] == ["z", "a"]
