"""Latency per round, its distribution and its parts."""

import itertools
from dataclasses import replace

import pytest
from matplotlib.figure import Figure
from pytest import approx

from reports.axis_units import AxisUnits
from reports.figures import round_latency
from reports.figures import round_latency as latencies
from reports.run_data.scheme_grouping import load_schemes
from reports.run_data.statistics.round_latencies import latencies_s
from reports.styling import figure_style as style


def test_latency_has_every_round_and_the_threshold(drawn, two_schemes):
    left, right = drawn(round_latency.latency_by_round, two_schemes).axes
    assert right.lines[1].get_ydata().tolist() == approx([30, 50, 40, 40])
    assert right.lines[2].get_ydata()[0] == approx(25)
    assert left.lines[2].get_xdata().tolist() == approx([30, 50]) and left.lines[3].get_xdata()[
        0
    ] == approx(40)
    assert "threshold 25 ms" in [text.get_text() for text in left.texts]


def test_a_threshold_of_many_small_units_has_no_exponent(two_schemes):
    """As its axis has none: it was called 2.5e+04 us."""
    small = replace(style.SCREEN, units=AxisUnits(latency="us"))
    with style.styled(small):
        left, right = round_latency.latency_by_round(two_schemes, small).axes
    assert "threshold 25000 us" in [text.get_text() for text in left.texts]
    assert "threshold 25000 us" in right.get_legend_handles_labels()[1]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_distribution_fills_its_panel_on_both_scales(two_schemes, scale):
    """From -2 % on, a logarithmic axis begins at 10^-1000."""
    look = replace(style.SCREEN, y_scale=scale)
    with style.styled(look):
        low, high = round_latency.latency_cdf(two_schemes, look).axes[0].get_ylim()
    assert (low, high) == (-2, 104) if scale == "linear" else low > 0.1


def test_rounds_that_are_equal_but_for_rounding_are_one_step(drawn, scheme_of):
    """The axis was in units of 1e-11 above 25 ms."""
    scheme = scheme_of(latency_s=(0.025, 0.025 * (1 + 1e-12), 0.025, 0.025 * (1 - 1e-12)))
    (panel,) = drawn(round_latency.latency_cdf, [scheme]).axes
    assert panel.get_xlim() == approx((23.75, 26.25))


def test_versions_of_overlapping_jobs_have_no_line_of_the_threshold(drawn, overlapping):
    overlapping.first.summary["latency_threshold_s"] = 2.0  # of a job, from its dispatch on
    left, right = drawn(round_latency.latency_by_round, [overlapping]).axes
    assert (len(left.lines), len(right.lines)) == (2, 1)


@pytest.mark.parametrize("name", style.STYLES)
@pytest.mark.parametrize("limits_ms", [[24, 30], [24, 26, 28, 30, 34, 38], [24, 150], [90, 95]])
def test_names_of_thresholds_do_not_touch(name, limits_ms):
    """24 and 30 ms of a sweep, where rounds take up to 200 ms, stood one on the other."""
    with style.styled(style.STYLES[name]):
        panel = Figure(figsize=(3.3, 2.5)).subplots()
        panel.set_xlim(0, 200)
        limits_s = [limit / 1e3 for limit in limits_ms]
        round_latency._name_thresholds(panel, limits_s, style.STYLES[name])
        boxes = [text.get_window_extent() for text in panel.texts]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    shown = " ".join(text.get_text() for text in panel.texts)
    assert shown.startswith("threshold") and all(f"{each} ms" in shown for each in limits_ms[::9])
    assert f"{limits_ms[-1]} ms" in shown


def test_one_round_has_one_tick(drawn, scheme_of):
    right = drawn(
        round_latency.latency_by_round, [scheme_of(latency_s=(0.02,), accuracy=(0.5,))]
    ).axes[1]
    low, high = right.get_xlim()
    assert [tick for tick in right.get_xticks() if low <= tick <= high] == [1]


def test_parts_of_the_latency_add_up(scheme_of):
    """Device 1 computes a quarter of the round, then uploads; device 0 is done at half of it."""
    scheme = scheme_of(latency_s=(0.02, 0.04), accuracy=(0.1, 0.5))
    slowest, mean = (
        latencies.phase_lengths_s(scheme, who) for who in (latencies.SLOWEST, latencies.MEAN)
    )
    assert slowest == {
        "download": 0,
        "train": approx(0.0075),
        "upload": approx(0.0225),
        "waiting": approx(0, abs=1e-12),
    }
    assert mean == {
        "download": 0,
        "train": approx(0.005625),
        "upload": approx(0.016875),
        "waiting": approx(0.0075),
    }


def test_idle_spans_are_waiting(scheme_of):
    import pandas as pd

    scheme = scheme_of(latency_s=(0.04,), accuracy=(0.5,))
    idle = scheme.first.spans.iloc[:1].assign(phase="idle", start_s=0.02, end_s=0.04)
    object.__setattr__(scheme.first, "spans", pd.concat([scheme.first.spans, idle]))
    assert latencies.phase_lengths_s(scheme, latencies.MEAN)["waiting"] == approx(0.01)
    assert "idle" not in latencies.phase_lengths_s(scheme, latencies.SLOWEST)


def test_rounds_in_which_nobody_did_anything_are_waiting(scheme_of):
    scheme = scheme_of(latency_s=(0.02, 0.04), accuracy=(0.1, 0.5))
    object.__setattr__(scheme.first, "spans", scheme.first.spans.iloc[:0])
    assert latencies.phase_lengths_s(scheme, latencies.SLOWEST) == {latencies.WAITING: approx(0.03)}
    assert not latencies.any_phase([scheme])


@pytest.mark.slow
def test_parts_of_real_runs_add_up_to_the_latency(real_runs):
    for scheme in load_schemes(sorted(real_runs.iterdir())):
        for who in (latencies.SLOWEST, latencies.MEAN):
            total = sum(latencies.phase_lengths_s(scheme, who).values())
            assert total == approx(latencies_s(scheme).mean(), rel=1e-12)


def test_seeds_with_other_numbers_of_rounds_count_alike(drawn, tmp_path, write_run):
    """As in the tables: two rounds of 30 ms and four of 15 ms have a mean of 22.5."""
    folders = [
        write_run(tmp_path / str(k), seed=k, latency_s=each, accuracy=(0.5,) * len(each))
        for k, each in enumerate([(0.03,) * 2, (0.015,) * 4])
    ]
    (scheme,) = load_schemes(folders)
    for who in (latencies.SLOWEST, latencies.MEAN):
        assert sum(latencies.phase_lengths_s(scheme, who).values()) == approx(0.0225)
    left, _ = drawn(round_latency.latency_by_round, [scheme]).axes
    assert left.lines[1].get_xdata()[0] == approx(22.5)


def test_distribution_over_all_rounds_and_seeds(tmp_path, write_run):
    one = write_run(tmp_path / "0", seed=0, latency_s=(0.02, 0.04), accuracy=(0.1, 0.2))
    two = write_run(tmp_path / "1", seed=1, latency_s=(0.03, 0.01), accuracy=(0.1, 0.2))
    x, y = latencies.distribution(load_schemes([one, two])[0])
    assert (x.tolist(), y.tolist()) == ([0.01, 0.02, 0.03, 0.04], [0.25, 0.5, 0.75, 1.0])
