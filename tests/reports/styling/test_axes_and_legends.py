"""Markers that look out from behind others, and labels of any text in legends."""

import warnings
from dataclasses import replace

import pytest
from matplotlib import rcParams
from matplotlib.figure import Figure
from pytest import approx

from reports.styling.axes_and_legends import legend, one_panel, staggered, ticks_at_values, wrap
from reports.styling.figure_style import STYLES, styled


def test_markers_of_few_rounds_are_at_most_1_6_times_as_large_as_the_last():
    """Of eight lines the first was drawn 3.1 times as large: over the curves around it."""
    sizes = [staggered(i, 8, 5)["ms"] / rcParams["lines.markersize"] for i in range(8)]
    assert (sizes[0], sizes[-1]) == (approx(1.6), 1.0) and sizes == sorted(sizes, reverse=True)
    assert staggered(0, 1, 5)["ms"] == staggered(0, 8, 7)["ms"] == rcParams["lines.markersize"]


@pytest.mark.parametrize(
    ("values", "are_shown"), [([0.6, 1.2, 2.4, 4.8], True), ([1.0, 99.0, 100.0], False)]
)
def test_ticks_of_a_logarithmic_axis_stand_at_values_that_have_room(values, are_shown):
    panel = Figure().subplots()
    panel.plot(values, values)
    panel.set_xscale("log")
    ticks_at_values(panel, values)
    assert (list(panel.get_xticks()) == values) is are_shown


@pytest.mark.parametrize("serif", [False, True])
@pytest.mark.parametrize("name", STYLES)
def test_a_label_that_begins_with_an_underscore_stands_in_the_legend(name, serif):
    """Matplotlib takes it for the label of a line that has none; every font has what is added."""
    style = replace(STYLES[name], serif=serif)
    with styled(style), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = Figure(layout="constrained")
        panel = figure.subplots()
        for label in ("_base", "new_one"):
            panel.plot([0, 1], label=wrap(label))
        legend(figure, panel, style)
        figure.draw_without_rendering()
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [text.strip("\N{ZERO WIDTH SPACE}") for text in shown] == ["_base", "new_one"]


@pytest.mark.parametrize("most", range(16, 50))
def test_a_number_stays_in_one_line_with_its_unit(most):
    """At some width a line ends behind every blank of the label."""
    quantities = ["10 MHz", "25 ms", "-110 dBm/Hz", "5 kbyte/s", "80 %", "3 µs"]
    label = f"liu (rate 5 kbyte/s, {', '.join(quantities)}), 2 of 3 seeds, 20 sections"
    lines = wrap(label, most).splitlines()
    assert " ".join(lines) == label and max(map(len, lines)) <= most
    assert all(any(quantity in line for line in lines) for quantity in quantities)


def test_a_number_that_fills_a_line_has_its_whole_unit_on_the_next_one():
    """It was broken within the unit: 0.30000000000000004 MH, z."""
    lines = wrap("liu (rate 0.30000000000000004 MHz)", 20).splitlines()
    assert lines == ["liu (rate", "0.30000000000000004", "MHz)"]


@pytest.mark.parametrize(("name", "columns", "lines"), [("screen", 1, 1), ("ieee", 2, 3)])
def test_long_labels_are_wrapped_for_the_lowest_legend(name, columns, lines):
    """Of a sweep of two keys: in one column of two lines each it was taller than its panel."""
    style = STYLES[name]
    keys = [
        (series, band, limit)
        for series in ("liu", "fedavg")
        for band in (1, 2)
        for limit in (15, 20)
    ]
    with styled(style):
        figure, panel = one_panel(style, 3.2, 2.5)
        for series, band, limit in keys:
            label = f"{series} (bandwidth {band}0 MHz, latency threshold {limit} ms)"
            panel.plot([0, 1], label=wrap(label))
        legend(figure, panel, style)
        figure.draw_without_rendering()
        (made,) = figure.legends
    assert len({round(text.get_window_extent().x0) for text in made.texts}) == columns
    assert {text.get_text().count("\n") + 1 for text in made.texts} == {lines}
    assert all(text.get_window_extent().x1 <= figure.bbox.x1 for text in made.texts)
    assert panel.bbox.height > 1.5 * figure.dpi
