"""The list of figures."""

import itertools

from edgesim.results.run_search import find_runs
from reports.figure_catalog import report_figures
from reports.run_data.scheme_grouping import load_schemes


def test_two_keys_that_end_alike_give_two_sets_of_figures(tmp_path, write_run):
    """They had one name: the figures of the second lay on those of the first."""
    for fast, slow in itertools.product((1, 2), (3, 4)):
        groups = (
            f"devices: [{{cpu: {{frequency: {fast} GHz}}}}, {{cpu: {{frequency: {slow} GHz}}}}]"
        )
        write_run(tmp_path / "runs" / f"{fast}{slow}", extra=groups)
    found = load_schemes(find_runs([tmp_path / "runs"]).finished)
    assert found[1].label == "joint (devices 0 cpu frequency 1 GHz, devices 1 cpu frequency 4 GHz)"
    names = [plate.name for plate in report_figures(found)]
    assert len(set(names)) == len(names)
    assert {"rho-by-devices-0-cpu-frequency", "rho-by-devices-1-cpu-frequency"} <= set(names)
