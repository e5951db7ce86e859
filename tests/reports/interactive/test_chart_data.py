"""The numbers of the page's charts."""

import json

import pytest
from pytest import approx

from reports.interactive import chart_data as charts
from reports.run_data.scheme_grouping import swept_keys


def test_curves_have_every_axis_and_percent(two_schemes):
    data = charts.chart_data(two_schemes, [])
    assert data["sweep"] is None
    accuracy = data["curves"]["quantities"][0]
    assert accuracy["title"] == "test accuracy (%)"
    joint = accuracy["lines"][0]
    assert (joint["label"], joint["rounds"], joint["half"]) == ("joint", [2, 4], None)
    assert joint["y"] == approx([50, 90]) and joint["time"] == approx([0.05, 0.1])
    assert joint["bits"] == approx([60, 120]) and joint["energy"] == approx([1, 2])


def test_a_metric_of_the_users_own_is_the_last_quantity(scheme_of):
    data = charts.chart_data([scheme_of(), scheme_of(scheme="b", top3=(0.2, 0.3, 0.4, 0.5))], [])
    own = data["curves"]["quantities"][-1]
    assert own["title"] == "top3" and [line["label"] for line in own["lines"]] == ["b"]
    assert own["lines"][0]["y"] == approx([0.2, 0.3, 0.4, 0.5])


def test_points_of_a_sweep_have_their_keys_and_means(swept_schemes):
    found = charts.chart_data(swept_schemes, swept_keys(swept_schemes))["sweep"]
    first = found["points"][0]
    assert [key["title"] for key in found["keys"]] == ["bandwidth (MHz)", "latency threshold (ms)"]
    assert (first["series"], first["at"]) == ("liu", [10.0, 15.0])
    # of two seeds no interval
    assert first["values"][0] == [20.5, None] and len(found["points"]) == 12


def test_a_long_curve_is_thinned_and_keeps_its_end(scheme_of, monkeypatch):
    monkeypatch.setattr(charts, "MOST_POINTS", 4)
    scheme = scheme_of(latency_s=(0.01,) * 9, accuracy=tuple(i / 10 for i in range(9)))
    line = charts.chart_data([scheme], [])["curves"]["quantities"][0]["lines"][0]
    assert line["rounds"] == [3, 6, 9]


def test_no_text_ends_the_script_it_stands_in():
    nasty = {"label": "</script><script>alert(1)</script>", "other": "a\u2028b"}
    text = charts.as_script_text(nasty)
    assert "<" not in text and "\u2028" not in text and json.loads(text) == nasty


def test_losses_that_are_all_infinite_have_no_chart(scheme_of):
    diverged = scheme_of(loss=(float("nan"), float("inf")) * 2)
    titles = [each["title"] for each in charts.chart_data([diverged], [])["curves"]["quantities"]]
    assert titles == ["test accuracy (%)", "latency per round (ms)"]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (8, ""),
        (12, "Of the 12 schemes the curves of the first 8 are switched on."),
        (
            41,
            "Of the 41 schemes the first 40 have a curve here, of which the first 8 are switched "
            "on.",
        ),
    ],
)
def test_the_page_says_which_curves_it_does_not_show_at_first(two_schemes, count, text):
    assert charts.lines_text((two_schemes * count)[:count]) == text
