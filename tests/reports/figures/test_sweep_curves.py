"""Curves over the keys of a sweep."""

import itertools
import math
from dataclasses import replace

import pytest
from pytest import approx

from edgesim.results.run_search import find_runs
from reports.figure_catalog import report_figures
from reports.figures import sweep_curves as swept
from reports.report_options import ReportOptions
from reports.run_data.given_runs import schemes_of
from reports.run_data.scheme_grouping import (
    at_middle_value,
    few_schemes,
    load_schemes,
    swept_keys,
)
from reports.run_data.statistics.metrics import ACCURACY, ENERGY, LATENCY, PRUNING
from reports.run_data.statistics.seed_intervals import Estimate
from reports.styling import figure_style as style


@pytest.mark.slow
def test_lines_are_means_with_the_interval_of_the_t_table(swept_schemes):
    band, threshold = swept_keys(swept_schemes)
    lines, fixed = swept.sweep_lines(swept_schemes, [band, threshold], band, ACCURACY)
    assert fixed == "" and [line.label for line in lines][:2] == [
        "liu, latency threshold 15 ms",
        "liu, latency threshold 30 ms",
    ]
    assert lines[0].x == [10, 20, 40]
    assert [y.mean for y in lines[0].y] == approx([0.205, 0.305, 0.505])
    # two seeds: dots in place of an interval
    assert math.isnan(lines[0].y[0].half) and lines[0].y[0].dots == approx((0.2, 0.21))
    assert {y.n for line in lines for y in line.y} == {2}


@pytest.mark.slow
def test_three_seeds_have_the_interval_of_the_t_table(write_sweep):
    schemes = schemes_of(write_sweep(thresholds=("15 ms",), seeds=(0, 1, 2)))
    (band,) = swept_keys(schemes)
    lines, _ = swept.sweep_lines(schemes, [band], band, ACCURACY)
    # t of two degrees; s / sqrt(3) = 0.01 / sqrt(3)
    assert lines[0].y[0].half == approx(4.30265 * 0.01 / math.sqrt(3), rel=1e-5)
    assert lines[0].y[0].dots == ()


@pytest.mark.slow
def test_too_many_lines_leave_the_middle_of_the_other_key(write_sweep):
    sweep = write_sweep(thresholds=tuple(f"{t} ms" for t in (10, 15, 20, 25, 30)), seeds=(0,))
    schemes = schemes_of(sweep)
    band, threshold = swept_keys(schemes)
    lines, fixed = swept.sweep_lines(schemes, [band, threshold], band, LATENCY)
    assert fixed == "latency threshold 20 ms" and [line.label for line in lines] == [
        "liu",
        "fedavg",
    ]
    assert [y.mean for y in lines[1].y] == approx([0.2] * 3)
    assert all(math.isnan(y.half) for y in lines[0].y)


@pytest.mark.slow
def test_of_three_keys_only_as_many_are_fixed_as_needed(tmp_path, write_run):
    """3 x 3 lines are too many: the first other key is held at its middle, the second is not."""
    for i, (noise, threshold, band) in enumerate(
        itertools.product((1, 2, 3), (10, 20, 30), (5, 6))
    ):
        extra = f"budget: {{latency_threshold: {threshold} ms}}\nevaluate: {{every: {noise}}}"
        latency_s = (noise + threshold / 100 + band / 1000,) * 2
        folder = tmp_path / "runs" / str(i)
        write_run(
            folder, bandwidth=f"{band} MHz", extra=extra, latency_s=latency_s, accuracy=(0.1, 0.2)
        )
    schemes = load_schemes(find_runs([tmp_path / "runs"]).finished)
    band, threshold, every = swept_keys(schemes)
    lines, chosen = swept.sweep_lines(schemes, [band, threshold, every], band, LATENCY)
    assert chosen == "latency threshold 20 ms"
    assert [line.label for line in lines] == [f"joint, every {n}" for n in (1, 2, 3)]
    assert [y.mean for y in lines[1].y] == approx([2.205, 2.206])


def test_what_is_drawn_against_the_threshold(swept_schemes):
    band, threshold = swept_keys(swept_schemes)
    with style.styled(style.IEEE):
        lines, _ = swept.sweep_lines(swept_schemes, [band, threshold], threshold, LATENCY)
        figure = swept.sweep_curves(swept_schemes, lines, threshold, LATENCY, style.IEEE)
    (panel,) = figure.axes
    assert (panel.get_xlabel(), panel.get_ylabel()) == (
        "latency threshold (ms)",
        "mean latency per round (ms)",
    )
    drawn = [line for line in panel.lines if line.get_marker() not in ("None", "", "_", "|", ".")]
    assert drawn[0].get_xydata().tolist() == [approx([15, 15]), approx([30, 30])]
    assert drawn[-1].get_xydata().tolist() == [approx([15, 150]), approx([30, 300])]
    looks = {(line.get_marker(), str(line._unscaled_dash_pattern)) for line in drawn}
    assert len(looks) == len(drawn) == 6  # in grey, every line has its own dashes and marker
    assert figure.get_figwidth() == 3.5


def test_the_data_of_a_figure_has_the_keys_the_interval_and_n(swept_schemes):
    table = swept.sweep_table(swept_schemes, swept_keys(swept_schemes), ACCURACY)
    assert table.caption.startswith("Final test accuracy (%) by bandwidth and latency threshold: ")
    assert "CSV" not in table.latex() + table.markdown()
    assert table.csv().splitlines()[:2] == [
        "scheme,network.bandwidth (MHz),budget.latency_threshold (ms),accuracy,accuracy_ci95,seeds",
        f"liu,10.0,15.0,{table.rows[0][3]!r},,2",
    ]
    assert table.rows[0][3] == approx(0.205)


def test_small_joules_keep_their_digits_in_the_data_of_a_figure(tmp_path, write_run):
    """1.234 mJ a round was shown as 0.00."""
    for band in (10, 20):
        write_run(tmp_path / "runs" / str(band), bandwidth=f"{band} MHz", energy_j=1.234e-3)
    schemes = schemes_of(tmp_path / "runs")
    table = swept.sweep_table(schemes, swept_keys(schemes), ENERGY)
    assert [row[2] for row in table.cells()] == ["0.001234"] * 2


def test_a_line_at_none_says_so_beside_lines_at_numbers(tmp_path, write_run):
    for limit, band in itertools.product(("none", "15 ms", "20 ms"), (10, 20)):
        write_run(
            tmp_path / "runs" / f"{limit}-{band}",
            bandwidth=f"{band} MHz",
            extra=f"budget: {{latency_threshold: {limit}}}",
        )
    schemes = schemes_of(tmp_path / "runs")
    keys = swept_keys(schemes)
    (band,) = (key for key in keys if key.name == "bandwidth")
    lines, _ = swept.sweep_lines(schemes, keys, band, LATENCY)
    assert [line.label for line in lines] == [
        "joint, latency threshold 15 ms", "joint, latency threshold 20 ms",
        "joint, latency threshold none",
    ]  # fmt: skip


def schemes_at(runs, tmp_path, write_run):
    """Schemes with runs at (scheme, threshold, MHz)."""
    for scheme, limit, band in runs:
        write_run(
            tmp_path / "runs" / f"{scheme}-{limit}-{band}",
            scheme=scheme,
            bandwidth=f"{band} MHz",
            extra=f"budget: {{latency_threshold: {limit}}}",
        )
    return schemes_of(tmp_path / "runs")


def test_lines_held_at_the_middle_of_a_key_leave_out_what_has_none_there(tmp_path, write_run):
    """Three schemes at 15 ms, 20 ms and none are nine lines: one of each is left."""
    runs = itertools.product("abc", ("none", "15 ms", "20 ms"), (10, 20))
    schemes = schemes_at(runs, tmp_path, write_run)
    keys = swept_keys(schemes)
    (band,) = (key for key in keys if key.name == "bandwidth")
    lines, chosen = swept.sweep_lines(schemes, keys, band, LATENCY)
    assert chosen == "latency threshold 15 ms"
    assert [(line.label, line.x) for line in lines] == [(name, [10.0, 20.0]) for name in "abc"]
    few, _ = few_schemes(schemes, keys)
    assert {scheme.values["budget.latency_threshold"] for scheme in few} == {"15 ms"}


def test_a_scheme_that_has_no_number_of_a_key_at_all_stays_beside_lines_held_at_one(
    tmp_path, write_run
):
    """FedAvg without a threshold, beside schemes that sweep it."""
    runs = [*itertools.product("ab", ("15 ms", "20 ms"), (10, 20)), ("fedavg", "none", 10)]
    schemes = schemes_at([*runs, ("fedavg", "none", 20)], tmp_path, write_run)
    (limit,) = (key for key in swept_keys(schemes) if key.name == "latency threshold")
    kept, _ = at_middle_value(schemes, limit)
    assert [scheme.series for scheme in kept] == ["a", "a", "b", "b", "fedavg", "fedavg"]


@pytest.mark.parametrize(("metric", "whole"), [(ACCURACY, 100.0), (PRUNING, 1.0)])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_the_axis_of_a_share_ends_with_it(swept_schemes, drawn, metric, whole, value):
    """All ratios at 0 drew an axis from -0.055 to 0.055, with numbers below zero."""
    constant = replace(metric, of=lambda run: value)
    keys = swept_keys(swept_schemes)
    lines, _ = swept.sweep_lines(swept_schemes, keys, band := keys[0], constant)
    figure = drawn(lambda s, look: swept.sweep_curves(s, lines, band, metric, look), swept_schemes)
    (panel,) = figure.axes
    low, high = panel.get_ylim()
    assert -0.02 * high <= low <= value * whole <= high <= 1.02 * whole
    assert all(tick >= 0 for tick in panel.get_yticks() if low <= tick <= high)


@pytest.fixture
def on_the_threshold(tmp_path, write_run):
    """Two schemes at two bands whose latencies are all 25 ms, but for rounding."""
    for (i, name), (j, band) in itertools.product(enumerate(("a", "b")), enumerate((10, 40))):
        folder = tmp_path / f"{name}-{band}"
        latency_s = (0.025 * (1 + (1e-12, -3e-12, 2e-12)[(i + j) % 3]),) * 4
        write_run(folder, scheme=name, bandwidth=f"{band} MHz", latency_s=latency_s)
    return schemes_of(tmp_path)


def test_equal_but_for_rounding_is_a_level_line(drawn, on_the_threshold):
    """Plans that fill the threshold zigzagged over an axis in units of 1e-11 above 25 ms."""
    (band,) = swept_keys(on_the_threshold)
    lines, _ = swept.sweep_lines(on_the_threshold, [band], band, LATENCY)
    figure = drawn(
        lambda s, look: swept.sweep_curves(s, lines, band, LATENCY, look), on_the_threshold
    )
    assert figure.axes[0].get_ylim() == approx((23.75, 26.25))
    assert swept.equal_lines(lines) == [["a", "b"]]


def test_numbers_of_an_axis_are_whole(drawn, on_the_threshold):
    """Those from 25.0002 to 25.0010 were 0.2 to 1.0, and the rest of them in a corner."""
    near = replace(
        LATENCY, of=lambda run: LATENCY.of(run) * (1 + len(run.scenario["scheme"]) / 1e5)
    )
    on_the_threshold[0].first.scenario["scheme"] = "four"
    (band,) = swept_keys(on_the_threshold)
    lines, _ = swept.sweep_lines(on_the_threshold, [band], band, near)
    figure = drawn(lambda s, look: swept.sweep_curves(s, lines, band, near, look), on_the_threshold)
    figure.draw_without_rendering()
    (panel,) = figure.axes
    assert panel.yaxis.get_offset_text().get_text() == ""
    assert all(text.get_text().startswith("25.00") for text in panel.get_yticklabels())


def test_the_threshold_is_itself_between_the_points_of_a_logarithmic_axis(
    drawn, tmp_path, write_run
):
    """A straight line from 10 ms to 1 s was at half a second where the threshold is 0.1 s."""
    for limit in ("10 ms", "1000 ms"):
        write_run(tmp_path / limit, extra=f"budget: {{latency_threshold: {limit}}}")
    schemes = schemes_of(tmp_path)
    (threshold,) = swept_keys(schemes)
    lines, _ = swept.sweep_lines(schemes, [threshold], threshold, LATENCY)
    figure = drawn(lambda s, look: swept.sweep_curves(s, lines, threshold, LATENCY, look), schemes)
    (panel,) = figure.axes
    ((x, y),) = (each.get_data() for each in panel.lines if each.get_label() == "threshold")
    assert panel.get_xscale() == "log" and len(x) > 50 and list(y) == approx(list(x))
    assert [text.get_text() for text in panel.get_xticklabels()] == ["10", "1000"]  # no decades


def test_losses_that_are_all_infinite_have_no_figure_along_a_key(tmp_path, write_run):
    """As those of training that diverged at every bandwidth; one finite loss is drawn."""
    for losses, shown in ((("inf", "inf"), False), (("inf", "0.5"), True)):
        folder = tmp_path / losses[1]
        for band, loss in zip((10, 20), losses, strict=True):
            write_run(
                folder / str(band), bandwidth=f"{band} MHz", loss=(1.0, 1.0, 1.0, float(loss))
            )
        figures, _ = report_figures(schemes_of(folder))
        assert ("loss-by-bandwidth" in [figure.name for figure in figures]) == shown


def test_lines_that_hide_one_another_are_named(tmp_path, write_run):
    """Of b the latency is that of a; that of c differs in one of two points."""
    for name, latencies_s in {"a": (0.04, 0.02), "b": (0.04, 0.02), "c": (0.04, 0.021)}.items():
        for band, latency_s in zip((10, 20), latencies_s, strict=True):
            folder = tmp_path / f"{name}-{band}"
            write_run(folder, scheme=name, bandwidth=f"{band} MHz", latency_s=(latency_s,) * 4)
    captions = {each.name: each.caption for each in report_figures(schemes_of(tmp_path))[0]}
    assert "hide one another: a = b." in captions["latency-by-bandwidth"]
    assert "hide one another: a = b = c." in captions["accuracy-by-bandwidth"]


def test_lines_without_a_finite_value_hide_nothing():
    def line(label, *means):
        points = [Estimate(mean, math.nan, (mean,)) for mean in means]
        return swept.SweepLine(label, label, [1.0, 2.0], points)

    never = line("a", math.inf, math.inf), line("b", math.inf, math.inf)
    assert swept.equal_lines(never) == []
    once = line("c", math.inf, 2.0), line("d", math.inf, 2.0), line("e", 1.0, 2.0)
    assert swept.equal_lines([*never, *once]) == [["c", "d"]]
    assert swept.equal_lines([line("a", 0.0, 1.0), line("b", 0.0, 1.006)]) == []
    # 2 % of an axis from 25 to 25.0005 are seen, and rounding is none of a logarithmic one either
    assert swept.equal_lines([line("a", 25.0, 25.0005), line("b", 25.00001, 25.0005)]) == []
    near = line("a", 1.0, 1.0), line("b", 1.0 + 1e-9, 1.0 - 1e-9)
    assert swept.equal_lines(near) == swept.equal_lines(near, log=True) == [["a", "b"]]


def test_on_a_logarithmic_axis_small_values_lie_apart(tmp_path, write_run):
    """0.1 and 0.2 ms lie on one another where the axis goes to 100 ms, unless it has decades."""
    for name, low_s in {"a": 1e-4, "b": 2e-4, "c": 2.001e-4}.items():
        for band, latency_s in ((10, 0.1), (20, low_s)):
            folder = tmp_path / f"{name}-{band}"
            write_run(folder, scheme=name, bandwidth=f"{band} MHz", latency_s=(latency_s,) * 4)
    for scale, equal in (("linear", "a = b = c"), ("log", "b = c")):
        figures, _ = report_figures(schemes_of(tmp_path), ReportOptions(y_scale=scale))
        captions = {each.name: each.caption for each in figures}
        assert f"hide one another: {equal}." in captions["latency-by-bandwidth"]


def test_the_threshold_of_jobs_that_overlap_has_no_line(write_sweep):
    (key,) = swept_keys(schemes := schemes_of(write_sweep(bands=("10 MHz",), seeds=(0,))))
    lines, _ = swept.sweep_lines(schemes, [key], key, LATENCY)
    for run in (scheme.first for scheme in schemes):
        rounds, jobs = run.rounds.assign(in_flight=1), run.device_rounds.assign(job=0)
        vars(run).update(rounds=rounds, device_rounds=jobs)
    (panel,) = swept.sweep_curves(schemes, lines, key, LATENCY, style.IEEE).axes
    assert "threshold" not in [line.get_label() for line in panel.lines]
