"""Maps over two keys of a sweep."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from pytest import approx

from edgesim.results.run_search import find_runs
from reports.figure_catalog import report_figures
from reports.figure_files import lay_out
from reports.figures import sweep_maps
from reports.run_data.scheme_grouping import load_schemes, swept_keys
from reports.run_data.statistics.metrics import ACCURACY
from reports.styling.figure_style import SCREEN, STYLES, styled


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


@pytest.mark.parametrize("style", list(STYLES.values()), ids=STYLES)
@pytest.mark.parametrize("tied", [(), ("downlink bandwidth", "moving rounds")])
def test_titles_of_three_rows_stay_inside_the_image(swept_schemes, style, tied):
    across, up = swept_keys(swept_schemes)
    up = replace(up, name="latency thresholds", tied=tied)
    across = replace(across, tied=tied)
    schemes = [
        replace(each, series=f"{each.series} {i}") for i in range(3) for each in swept_schemes
    ]
    with styled(style):
        figure = sweep_maps.sweep_map_figure(schemes, [across, up], ACCURACY, style)
        FigureCanvasAgg(figure)
        lay_out(figure)
        panels = figure.axes[:6]
        titles = [axis.label.get_window_extent() for p in panels for axis in (p.xaxis, p.yaxis)]
        inside = Bbox.union([figure.bbox, *titles])
        assert inside.bounds == approx(figure.bbox.bounds, abs=1)
        assert not any(one.overlaps(other) for one, other in itertools.combinations(titles, 2))


def test_equal_values_have_one_colour_in_all_panels(swept_schemes):
    equal = replace(ACCURACY, of=lambda run: 0.5)
    figure = sweep_maps.sweep_map_figure(swept_schemes, swept_keys(swept_schemes), equal, SCREEN)
    FigureCanvasAgg(figure).draw()
    one, other = (panel.images[0] for panel in figure.axes[:2])
    assert one.to_rgba(50.0) == other.to_rgba(50.0)


def test_rounding_has_no_colours(swept_schemes):
    keys = swept_keys(swept_schemes)
    nearly = replace(ACCURACY, of=lambda run: 0.5 * (1 + 1e-12 * run.seed * run.rounds["loss"][1]))
    figure = sweep_maps.sweep_map_figure(swept_schemes, keys, nearly, SCREEN)
    FigureCanvasAgg(figure).draw()
    image = figure.axes[0].images[0]
    assert len({tuple(image.to_rgba(value)) for value in image.get_array().ravel()}) == 1
    assert figure.axes[-1].yaxis.get_offset_text().get_text() == ""


@pytest.mark.parametrize("limits", [("15 ms", "20 ms"), ("none", "15 ms", "20 ms")])
def test_the_caption_of_a_map_names_the_runs_that_it_leaves_out(tmp_path, write_run, limits):
    for limit, band in itertools.product(limits, (10, 20)):
        extra = f"budget: {{latency_threshold: {limit}}}"
        write_run(tmp_path / f"{limit}-{band}", bandwidth=f"{band} MHz", extra=extra)
    figures, _ = report_figures(load_schemes(find_runs([tmp_path]).finished))
    (text,) = (figure.caption for figure in figures if figure.name == "accuracy-map")
    sentence = "Runs at latency threshold none are in the data only."
    assert text.endswith(sentence) == ("none" in limits)
