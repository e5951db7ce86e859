"""Files of figures."""

import re
from dataclasses import asdict, replace

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from pytest import approx

from reports.axis_units import USUAL_UNITS
from reports.figure_catalog import report_figures
from reports.figure_files import file_style, lay_out
from reports.interactive.chart_data import chart_data
from reports.report_options import options_from
from reports.styling.figure_style import STYLES, styled


@pytest.mark.parametrize("serif", [False, True])
def test_lines_of_a_text_stand_as_close_in_either_font(serif):
    """STIX asks for nearly two lines between lines."""
    with styled(replace(STYLES["ieee"], serif=serif)):
        figure = Figure()
        texts = [figure.text(0.5, 0.5, "\n".join(["(joint)"] * n)) for n in (2, 3)]
        FigureCanvasAgg(figure)
        lay_out(figure)
        two, three = (text.get_window_extent().height for text in texts)
    assert (three - two) * 72 / figure.dpi == approx(1.2 * 8, rel=0.05)


CHOSEN = {"latency": "s", "time": "ms", "bits": "kbit", "energy": "mJ"}
OTHERS = {"ms": ("s", 1e-3), "s": ("ms", 1e3), "Mbit": ("kbit", 1e3), "J": ("mJ", 1e3)}


def drawn_panels(schemes, **options):
    """(figure, title, the ends of its data) of every axis, and all texts."""
    chosen = options_from(options)
    for figure in report_figures(schemes, chosen)[0]:
        with styled(file_style(chosen)):
            drawn = figure.draw(file_style(chosen))
        for panel in drawn.axes if drawn else ():
            texts = [text.get_text() for text in drawn.findobj(Text)]
            yield figure.name, panel.get_xlabel(), panel.dataLim.intervalx, texts
            yield figure.name, panel.get_ylabel(), panel.dataLim.intervaly, texts


@pytest.mark.slow
@pytest.mark.parametrize("clocked", [False, True])
def test_every_axis_has_the_unit_that_is_chosen(two_schemes, overlapping, clocked):
    schemes = [overlapping] if clocked else two_schemes
    both = zip(drawn_panels(schemes), drawn_panels(schemes, units=CHOSEN), strict=True)
    seen = set()
    for (name, title, ends, _), (_, other_title, other_ends, texts) in both:
        unit = re.search(r"\((ms|s|Mbit|J)\)", title)
        symbol, factor = OTHERS[unit[1]] if unit else ("", 1.0)
        expected = title.replace(unit[0], f"({symbol})") if unit else title
        assert (name, other_title) == (name, expected)
        assert other_ends == approx(ends * factor), (name, title)
        assert not [text for text in texts if re.search(r"\d (ms|J|Mbit)\b", text)], name
        seen |= {unit[1]} if unit else set()
    assert seen == set(OTHERS)


def test_the_charts_of_the_page_have_the_units_that_are_chosen(two_schemes):
    usual, other = (
        chart_data(two_schemes, [], options_from({"units": units}).units)["curves"]
        for units in (asdict(USUAL_UNITS), CHOSEN)
    )
    assert [axis["title"] for axis in other["axes"]] == [
        *("simulated time (ms)", "global round"),
        *("payload, up and down (kbit)", "energy, all devices (mJ)"),
    ]
    latency, in_seconds = usual["quantities"][2], other["quantities"][2]
    assert in_seconds["title"] == "latency per round (s)"
    line, scaled = latency["lines"][0], in_seconds["lines"][0]
    assert scaled["y"] == approx([y / 1e3 for y in line["y"]])
    assert scaled["time"] == approx([x * 1e3 for x in line["time"]])
