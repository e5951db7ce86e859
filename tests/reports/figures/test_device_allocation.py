"""Pruning ratio and band share per device."""

import pytest
from pytest import approx

from edgesim.results.run_search import find_runs
from reports.figures import device_allocation
from reports.run_data.scheme_grouping import load_schemes
from reports.styling import figure_style as style


def test_devices_show_ratio_and_share(drawn, two_schemes):
    ratio, share = drawn(device_allocation.device_allocation, two_schemes).axes
    assert ratio.lines[0].get_ydata().tolist() == [0.25, 0.75]
    assert share.lines[0].get_ydata().tolist() == approx([40, 60])


def test_rounds_in_which_a_device_took_no_part_do_not_count(scheme_of):
    scheme = scheme_of(rho=(0.0, 0.6))
    rows = scheme.first.device_rounds
    rows.loc[rows["device"] == 0, "status"] = "infeasible"
    assert device_allocation.per_device(scheme, "rho").index.tolist() == [1]


@pytest.mark.slow
@pytest.mark.parametrize("look", [style.SCREEN, style.IEEE])
def test_marks_without_a_line_have_each_their_own_marker(write_sweep, look):
    found = load_schemes(find_runs([write_sweep(thresholds=("15 ms",), seeds=(0,))]).finished)
    with style.styled(look):
        panel = device_allocation.device_allocation(found, look).axes[0]
    markers = [bars.lines[0].get_marker() for bars in panel.containers]
    assert len(markers) == 6 == len(set(markers))
