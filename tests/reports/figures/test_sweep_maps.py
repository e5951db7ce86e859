"""Maps over two keys of a sweep."""

import math

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.figure import Figure
from pytest import approx

from edgesim.results.run_search import find_runs
from reports.figures import sweep_maps
from reports.run_data.metrics import ACCURACY
from reports.run_data.scheme_grouping import load_schemes, swept_keys


def test_heat_map_cells_are_means_over_seeds_and_blank_without_runs(swept_schemes):
    axes = swept_keys(swept_schemes)
    kept = [
        s for s in swept_schemes if s.label != "fedavg (bandwidth 40 MHz, latency threshold 30 ms)"
    ]
    (liu, grid, x, y), (fedavg, other, _, _) = sweep_maps.sweep_maps(kept, axes, ACCURACY)
    assert (liu, fedavg, x, y) == ("liu", "fedavg", [10, 20, 40], [15, 30])
    assert grid == approx(np.array([[0.205, 0.305, 0.505]] * 2))
    assert other == approx(np.array([[0.105, 0.205, 0.405], [0.105, 0.205, math.nan]]), nan_ok=True)


@pytest.mark.slow
def test_one_axis_has_no_map(write_sweep):
    schemes = load_schemes(find_runs([write_sweep(thresholds=("15 ms",))]).finished)
    assert sweep_maps.sweep_maps(schemes, swept_keys(schemes), ACCURACY) == []


def test_cells_have_as_many_figures_each():
    panel = Figure().subplots()
    sweep_maps._write_cells(panel, np.array([[20.0, 7.125], [math.nan, 512.0]]), 10.0, 1.0)
    assert [text.get_text() for text in panel.texts] == ["20.0", "7.12", "512"]


def test_numbers_are_written_where_they_fit_into_the_cells(monkeypatch):
    """Four characters of 10 pt are about 0.33 inches wide."""
    monkeypatch.setitem(rcParams, "font.size", 10.0)
    written = {}
    for cell_in in (0.32, 0.35):
        panel = Figure().subplots()
        sweep_maps._write_cells(panel, np.full((2, 3), 20.0), 10.0, cell_in)
        written[cell_in] = len(panel.texts)
    assert written == {0.32: 0, 0.35: 6}
