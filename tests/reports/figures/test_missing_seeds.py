"""Figures of means that lack a seed, whose run ended before it was evaluated."""

import itertools
import math

import pytest
from pytest import approx

from reports.catalog.report_figure import ReportFigure
from reports.figure_catalog import report_figures
from reports.interactive.chart_data import chart_data
from reports.run_data.given_runs import schemes_of
from reports.run_data.scheme_grouping import swept_keys
from reports.styling.figure_style import SCREEN, styled

NAN = float("nan")


@pytest.fixture
def of_three_seeds(tmp_path, write_run):
    """of_three_seeds({(scheme, MHz, seconds a round): finals}) -> schemes."""

    def make(finals):
        for (name, band, latency_s), values in finals.items():
            for seed, value in enumerate(values):
                folder = tmp_path / "runs" / f"{name}-{band}-{seed}"
                write_run(
                    folder, scheme=name, seed=seed, bandwidth=f"{band} MHz",
                    latency_s=(latency_s,) * 2, accuracy=(NAN, value),
                )  # fmt: skip
        return schemes_of(tmp_path / "runs")

    return make


def figure_of(schemes, name) -> ReportFigure:
    return next(figure for figure in report_figures(schemes)[0] if figure.name == name)


def test_a_scheme_that_lacks_a_seed_is_on_no_front_and_named(of_three_seeds):
    """The seed that b lacks may be its worst; a of 50 % is not beaten by the mean of the others."""
    finals = {("a", 10, 0.02): (0.5, 0.51, 0.49), ("b", 10, 0.01): (0.9, 0.92, NAN)}
    pareto = figure_of(of_three_seeds(finals), "pareto")
    assert "Lacking seeds, without an interval and on no front: b, 2 of 3 seeds." in pareto.caption
    names = [column.name for column in pareto.table().columns]
    a, b = (dict(zip(names, row, strict=True)) for row in pareto.table().rows)
    assert (a["seeds_evaluated"], a["seeds"], a["front_latency"]) == (3, 3, "yes")
    assert (b["seeds_evaluated"], b["seeds"], b["front_latency"]) == (2, 3, "no")
    assert b["accuracy"] == approx(0.91) and math.isnan(b["accuracy_ci95"])
    with styled(SCREEN):
        panel = pareto.draw(SCREEN).axes[0]
    looks = {
        tuple(line.get_xydata()[0].round(9)): line.get_markerfacecolor()
        for line in panel.lines
        if line.get_marker() != "None"
    }
    assert looks[10.0, 91.0] == "white" != looks[20.0, 50.0]


def test_a_mean_of_a_sweep_that_lacks_a_seed_is_named(of_three_seeds):
    """With 10 MHz both values of the seeds left are dots; with 20 MHz there is the interval."""
    finals = {("a", 10, 0.02): (0.5, NAN, 0.6), ("a", 20, 0.02): (0.7, 0.71, 0.72)}
    schemes = of_three_seeds(finals)
    for name in ("accuracy-by-bandwidth", "loss-by-bandwidth"):
        figure = figure_of(schemes, name)
        said = "Lacking seeds, without an interval: a (bandwidth 10 MHz), 2 of 3 seeds."
        assert said in figure.caption
        assert "interval (Student t) over 3 seeds; dots: the values of two seeds." in figure.caption
        assert [row[-1] for row in figure.table().rows] == [2, 3]
    assert "Lacking" not in figure_of(schemes, "latency-by-bandwidth").caption


def test_three_of_four_seeds_have_no_interval_in_any_figure_of_a_sweep(of_three_seeds):
    finals = {("a", 10, 0.02): (0.5, NAN, 0.6, 0.7), ("a", 20, 0.02): (NAN, 0.7, 0.71, 0.72)}
    schemes = of_three_seeds(finals)
    figure = figure_of(schemes, "accuracy-by-bandwidth")
    assert "interval (Student t)" not in figure.caption
    assert all(math.isnan(row[3]) for row in figure.table().rows)
    points = chart_data(schemes, swept_keys(schemes))["sweep"]["points"]
    assert [point["values"][0] for point in points] == [[60.0, None], [71.0, None]]


def test_the_map_names_the_means_that_lack_a_seed(tmp_path, write_run):
    """Two bands and two thresholds, one of the four accuracies of one seed of two."""
    for band, limit, seed in itertools.product((10, 20), (15, 20), (0, 1)):
        last = NAN if (band, limit, seed) == (20, 15, 1) else 0.5
        extra = f"budget: {{latency_threshold: {limit} ms}}"
        write_run(
            tmp_path / f"{band}-{limit}-{seed}", seed=seed, bandwidth=f"{band} MHz", extra=extra,
            latency_s=(0.01,) * 2, accuracy=(NAN, last),
        )  # fmt: skip
    schemes = schemes_of(tmp_path)
    named = "joint (bandwidth 20 MHz, latency threshold 15 ms), 1 of 2 seeds."
    caption = figure_of(schemes, "accuracy-map").caption
    assert f"Lacking seeds, without an interval: {named}" in caption
    assert "Lacking" not in figure_of(schemes, "latency-map").caption


def test_a_scheme_without_a_curve_is_named(of_three_seeds):
    """Its third seed was never evaluated; it was left out of the three figures without a word."""
    schemes = of_three_seeds({("a", 10, 0.02): (0.5, 0.5, 0.4), ("b", 10, 0.01): (0.9, 0.9, NAN)})
    for name in ("accuracy", "spending", "loss"):
        figure = figure_of(schemes, name)
        said = "Not evaluated in a round of all seeds, so without a curve: b."
        assert said in figure.caption
        assert {row[0] for row in figure.table().rows} == {"a"}
