"""Labels of bars."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from reports.styling import labelled_bars
from reports.styling.figure_style import STYLES, THRESHOLD_LINE, styled
from reports.styling.number_formats import THIN


def test_a_long_label_is_cut_in_its_name_and_not_in_what_tells_it_apart():
    label = "personalization only (dataset fashion-mnist)"
    assert labelled_bars.shortened(label, 44) == label
    assert labelled_bars.shortened(label, 36) == "personaliza… (dataset fashion-mnist)"
    assert labelled_bars.shortened(label, 25) == "personalization only (da…"  # no room for both
    assert labelled_bars.shortened("a name without anything in brackets", 12) == "a name with…"


def test_no_two_labels_become_the_same():
    long = [f"personalization only of the {which} kind" for which in ("first", "other")]
    apart = ["personaliz…first kind", "personaliz…other kind"]
    assert labelled_bars.told_apart(long, [21, 21]) == apart
    same_ends = [f"joint (band 10 MHz, threshold {t} ms, K 10)" for t in (15, 30)]
    apart = ["1. joint (band 10…", "2. joint (band 10…"]
    assert labelled_bars.told_apart(same_ends, [18, 18]) == apart
    twice = ["personalization only"] * 2  # these were the same before
    assert labelled_bars.told_apart(twice, [12, 12]) == ["personaliza…"] * 2


@pytest.mark.parametrize("name", STYLES)
def test_a_threshold_does_not_run_through_the_label_of_a_row(name):
    with styled(STYLES[name]):
        figure = Figure(figsize=(3, 2))
        panel = figure.subplots()
        panel.axvline(0.3, **THRESHOLD_LINE | {"ls": "-"})
        labelled_bars.row_labels(panel, ["a scheme with a name that is long"], ["29.28 ms"])
        labelled_bars.rows_from_above(panel, 1)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    red, green = (np.asarray(canvas.buffer_rgba())[::-1, :, i].astype(int) for i in (0, 1))
    coloured, text = red - green > 9, panel.texts[0].get_window_extent()
    rows = slice(int(text.y0), int(text.y1))
    assert coloured.any() and not coloured[rows, int(text.x0) : int(text.x1)].any()


@pytest.mark.parametrize("name", STYLES)
@pytest.mark.filterwarnings("error:Glyph")
def test_totals_have_as_many_figures_each(name):
    """29.28 beside 12: zeros at the end are figures too."""
    schemes = [SimpleNamespace(label=label) for label in "abcd"]
    parts = {"sent": [29.281, 12.0, 1234.56, 0.0]}
    with styled(STYLES[name]):
        figure = Figure(figsize=(3, 2))
        panel = figure.subplots()
        labelled_bars.stacked_bars(panel, schemes, parts, {"sent": "C0"}, {"sent": ""}, "ms")
        FigureCanvasAgg(figure).draw()
    totals = [text.get_text() for text in panel.texts]
    assert totals == ["a: 29.28 ms", "b: 12.00 ms", f"c: 1{THIN}235 ms", "d: 0 ms"]


def test_a_part_whose_name_begins_with_an_underscore_stands_in_the_legend():
    """matplotlib leaves such labels out; a span of a user's own may have any name."""
    parts = {"_idle": [1.0], "train": [2.0]}
    looks = dict.fromkeys(parts, "C0"), dict.fromkeys(parts, "")
    panel = Figure().subplots()
    labelled_bars.stacked_bars(panel, [SimpleNamespace(label="a")], parts, *looks, "J")
    shown = [text.get_text().lstrip("\N{ZERO WIDTH SPACE}") for text in panel.get_legend().texts]
    assert shown == list(parts)


def test_rows_of_bars_have_labels_of_their_own():
    long = [f"FedProx with a proximal term that is long, {which}" for which in ("new", "old")]
    panel = Figure().subplots()
    rows = [SimpleNamespace(label=label) for label in long]
    labelled_bars.stacked_bars(panel, rows, {"sent": [1.0, 1.0]}, {"sent": "C0"}, {"sent": ""}, "J")
    shown = [text.get_text() for text in panel.texts]
    assert len(set(shown)) == 2 and max(map(len, shown)) <= labelled_bars.ROW_CHARACTERS + 2
