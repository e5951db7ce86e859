"""The cost to a target, against numbers made by hand."""

import math
from dataclasses import replace

import pytest
from pytest import approx

from reports.figures.costs import target_costs as costs
from reports.run_data.scheme_grouping import load_schemes
from reports.styling import figure_style as style

NAN = float("nan")


@pytest.fixture
def three_seeds(tmp_path, write_run):
    rows = {0: (0.1, 0.8, 0.9), 1: (0.1, 0.4, 0.8), 2: (0.9, 0.9, 0.9)}
    folders = [
        write_run(
            tmp_path / str(seed),
            seed=seed,
            accuracy=accuracy,
            latency_s=(0.01, 0.02, 0.03),
            targets=("0.8",),
        )
        for seed, accuracy in rows.items()
    ]
    return load_schemes(folders)


def test_cost_to_target_over_seeds(three_seeds):
    """Reached after 2, 3, 1 rounds: 0.03, 0.06, 0.01 s; 60, 90, 30 Mbit; t(2 degrees) = 4.30265."""
    time, bits = (costs.target_estimate(three_seeds[0], 0.8, name) for name in ("time_s", "bits"))
    assert (time.mean, time.n, bits.mean) == (approx(1 / 30), 3, approx(60e6))
    assert bits.half == approx(4.30265 * 30e6 / math.sqrt(3), rel=1e-5)


def test_a_target_that_some_seeds_miss_counts_those_that_reach_it(three_seeds):
    assert costs.target_estimate(three_seeds[0], 0.85, "time_s").n == 2
    nobody = costs.target_estimate(three_seeds[0], 0.95, "time_s")
    assert nobody.n == 0 and math.isnan(nobody.mean)
    rows = costs.target_cost_table(three_seeds).rows
    assert rows[0][:4] == (0.8, "joint", 3, 3)


@pytest.mark.slow
def test_the_figure_says_how_many_seeds_a_mean_is_of(drawn, tmp_path, write_run):
    """0.8 is reached with the seeds 0 and 2 of three, 0.3 with every one."""
    given = {"targets": ("0.3", "0.8"), "latency_s": (0.01, 0.02)}
    finals = {"a": (0.9, 0.7, 0.8), "b": (0.9, 0.9, 0.9)}
    schemes = load_schemes(
        [
            write_run(
                tmp_path / f"{name}{seed}", scheme=name, seed=seed, accuracy=(0.1, x), **given
            )
            for name, values in finals.items()
            for seed, x in enumerate(values)
        ]
    )
    names = drawn(costs.target_costs, schemes).axes[0].get_yticklabels()
    assert [name.get_text() for name in names] == ["a\n(80%: 2 of 3 seeds)", "b"]


def test_the_costs_have_the_scale_that_a_report_asks_for(three_seeds):
    """Schemes stand along y, which has no scale; the mean of 33.3 ms lies on every axis."""
    look = replace(style.SCREEN, x_scale="log", y_scale="log")
    for panel, mean in zip(
        costs.target_costs(three_seeds, look).axes, (1 / 30, 60, 1), strict=True
    ):
        assert (panel.get_xscale(), panel.get_yscale()) == ("log", "linear")
        low, high = panel.get_xlim()
        assert 0 < low < mean < high
    for panel in costs.target_costs(three_seeds, style.SCREEN).axes:
        assert panel.get_xscale() == "linear" and panel.get_xlim()[0] == 0


@pytest.mark.filterwarnings("error")
def test_costs_that_are_all_zero_have_no_logarithm(scheme_of):
    look = replace(style.SCREEN, x_scale="log")
    panels = costs.target_costs([scheme_of(energy_j=0.0)], look).axes
    assert [panel.get_xscale() for panel in panels] == ["log", "log", "linear"]


@pytest.fixture
def eight_targets(tmp_path, write_run):
    """Finals 0.32, 0.95, 0.96 of a, and of b 0.52, 0.71, 0.95; targets 35 % and 35.4 % are two."""
    finals = {"a scheme": (0.32, 0.95, 0.96), "b": (0.52, 0.71, 0.95)}
    targets = ("0.3", "0.35", "0.354", "0.5", "0.6", "0.7", "0.8", "0.9")
    return load_schemes(
        [
            write_run(
                tmp_path / f"{name}{seed}", scheme=name, seed=seed, accuracy=(0.1, final),
                latency_s=(0.01, 0.02), targets=targets,
            )
            for name, values in finals.items()
            for seed, final in enumerate(values)
        ]
    )  # fmt: skip


@pytest.mark.slow
def test_targets_that_as_many_seeds_missed_are_named_together(drawn, eight_targets):
    """a reaches 0.3 with all and 0.35 to 0.9 with two seeds; b 0.6, 0.7 with two, more with one."""
    names = drawn(costs.target_costs, eight_targets).axes[0].get_yticklabels()
    assert [name.get_text() for name in names] == [
        "a scheme\n(35–90%: 2 of 3 seeds)",
        "b\n(60–70%: 2, 80–90%: 1 of 3 seeds)",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", style.STYLES)
def test_names_beside_many_targets_leave_room_for_the_panels(eight_targets, name):
    with style.styled(style.STYLES[name]):
        figure = costs.target_costs(eight_targets, style.STYLES[name])
        figure.draw_without_rendering()
    names = figure.axes[0].get_yticklabels()
    widest = max(text.get_window_extent().width for text in names)
    assert widest < 0.45 * figure.bbox.width


@pytest.mark.slow
def test_every_target_has_a_name_and_a_marker_of_its_own(drawn, eight_targets):
    shown = drawn(costs.target_costs, eight_targets).legends[0]
    assert [text.get_text() for text in shown.get_texts()] == [
        *("30%", "35%", "35.4%", "50%", "60%", "70%", "80%", "90%")
    ]
    assert len({handle.get_marker() for handle in shown.legend_handles}) == 8
    rows = costs.target_cost_table(eight_targets).cells()
    assert [row[0] for row in rows[::2]] == ["30", "35", "35.4", "50", "60", "70", "80", "90"]


def test_nothing_reached_is_no_figure(scheme_of):
    assert costs.reached_targets([scheme_of(accuracy=(0.1,) * 4)]) == []
