"""Pareto fronts and the cost to a target, against numbers made by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from reports.figures import accuracy_cost_tradeoff as tradeoffs
from reports.figures.accuracy_cost_tradeoff import pareto_front as front
from reports.run_data.scheme_grouping import load_schemes
from reports.styling import figure_style as style
from reports.styling.colours_and_markers import MARKERS

NAN = float("nan")


POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12)


def test_front_by_hand():
    cost, gain = [3, 1, 2, 2, 4, NAN, 5], [7, 1, 5, 4, 7, 9, 8]
    assert front(cost, gain) == [
        1,
        2,
        0,
        6,
    ]  # (1,1) (2,5) (3,7) (5,8); (4,7) gains nothing over (3,7)


def test_equal_points_are_on_the_front_together():
    assert sorted(front([1, 1, 2], [5, 5, 5])) == [0, 1]


def test_what_rounding_alone_makes_cheaper_is_not_on_the_front():
    assert front([0.025000000000000012, 0.02499999999999993], [0.72, 0.69]) == [0]


@pytest.mark.slow
@given(POINTS)
def test_front_is_what_nothing_dominates(points):
    def dominated(a):
        return any(b[0] <= a[0] and b[1] >= a[1] and b != a for b in points)

    found = front([c for c, _ in points], [g for _, g in points])
    assert sorted(found) == [i for i, point in enumerate(points) if not dominated(point)]


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
    time, bits = (
        tradeoffs.target_estimate(three_seeds[0], 0.8, name) for name in ("time_s", "bits")
    )
    assert (time.mean, time.n, bits.mean) == (approx(1 / 30), 3, approx(60e6))
    assert bits.half == approx(4.30265 * 30e6 / math.sqrt(3), rel=1e-5)


def test_a_target_that_some_seeds_miss_counts_those_that_reach_it(three_seeds):
    assert tradeoffs.target_estimate(three_seeds[0], 0.85, "time_s").n == 2
    nobody = tradeoffs.target_estimate(three_seeds[0], 0.95, "time_s")
    assert nobody.n == 0 and math.isnan(nobody.mean)
    rows = tradeoffs.target_cost_table(three_seeds).rows
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
    names = drawn(tradeoffs.target_costs, schemes).axes[0].get_yticklabels()
    assert [name.get_text() for name in names] == ["a\n(80%: 2 of 3 seeds)", "b"]


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
    names = drawn(tradeoffs.target_costs, eight_targets).axes[0].get_yticklabels()
    assert [name.get_text() for name in names] == [
        "a scheme\n(35–90%: 2 of 3 seeds)",
        "b\n(60–70%: 2, 80–90%: 1 of 3 seeds)",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", style.STYLES)
def test_names_beside_many_targets_leave_room_for_the_panels(eight_targets, name):
    with style.styled(style.STYLES[name]):
        figure = tradeoffs.target_costs(eight_targets, style.STYLES[name])
        figure.draw_without_rendering()
    names = figure.axes[0].get_yticklabels()
    widest = max(text.get_window_extent().width for text in names)
    assert widest < 0.45 * figure.bbox.width


@pytest.mark.slow
def test_every_target_has_a_name_and_a_marker_of_its_own(drawn, eight_targets):
    shown = drawn(tradeoffs.target_costs, eight_targets).legends[0]
    assert [text.get_text() for text in shown.get_texts()] == [
        *("30%", "35%", "35.4%", "50%", "60%", "70%", "80%", "90%")
    ]
    assert len({handle.get_marker() for handle in shown.legend_handles}) == 8
    rows = tradeoffs.target_cost_table(eight_targets).cells()
    assert [row[0] for row in rows[::2]] == ["30", "35", "35.4", "50", "60", "70", "80", "90"]


@pytest.mark.slow
def test_the_points_of_a_sweep_are_named_by_their_values(drawn, tmp_path, write_run):
    bands = {"10 MHz": (0.01, 0.5), "20 MHz": (0.02, 0.7)}
    schemes = load_schemes(
        [
            write_run(
                tmp_path / band, bandwidth=band, latency_s=(latency,) * 2, accuracy=(0.1, final)
            )
            for band, (latency, final) in bands.items()
        ]
    )
    for panel in drawn(tradeoffs.accuracy_against_cost, schemes).axes:
        assert sorted(text.get_text() for text in panel.texts) == ["10 MHz", "20 MHz"]


def test_nothing_reached_is_no_figure(scheme_of):
    assert tradeoffs.target_costs([scheme_of(accuracy=(0.1,) * 4)], style.SCREEN) is None


@pytest.mark.slow
def test_pareto_draws_every_scheme_and_fills_those_on_the_front(tmp_path, write_run):
    given = {"a": (0.01, 0.5), "b": (0.02, 0.4), "c": (0.03, 0.9)}
    folders = [
        write_run(
            tmp_path / name,
            scheme=name,
            method="own",
            latency_s=(latency,) * 2,
            accuracy=(0.1, final),
        )
        for name, (latency, final) in given.items()
    ]
    schemes = load_schemes(folders)
    assert [row[-2] for row in tradeoffs.pareto_table(schemes).rows] == ["yes", "no", "yes"]
    with style.styled(style.SCREEN):
        left, _ = tradeoffs.accuracy_against_cost(schemes, style.SCREEN).axes
    marked = [line for line in left.lines if line.get_marker() != "None"]
    points = {tuple(line.get_xydata()[0].round(9)): line.get_markerfacecolor() for line in marked}
    assert points[(20.0, 40.0)] == "white" and "white" not in (
        points[(10.0, 50.0)],
        points[(30.0, 90.0)],
    )
    stairs = next(line for line in left.lines if line.get_drawstyle() == "steps-post")
    corners = [approx([10, 50]), approx([30, 90]), approx([left.get_xlim()[1], 90])]
    assert stairs.get_xydata().tolist() == corners


@pytest.mark.slow
def test_of_points_in_one_place_each_can_be_seen(drawn, scheme_of):
    """Three schemes of 25 ms and 90 %: the one drawn last hides none of the two before."""
    schemes = [scheme_of(scheme=name) for name in "abc"]
    left, _ = drawn(tradeoffs.accuracy_against_cost, schemes).axes
    marked = [line for line in left.lines if tuple(line.get_xydata()[0].round(9)) == (25.0, 90.0)]
    first, second, last = [line.get_markersize() for line in marked if line.get_marker() in MARKERS]
    assert first - second == approx(second - last) == approx(0.6 * 1.3 * style.SCREEN.marker_pt)


def test_a_front_of_one_scheme_is_a_line_that_can_be_seen(drawn, scheme_of):
    """25 ms and 90 %: whoever pays more gets no more."""
    left, _ = drawn(tradeoffs.accuracy_against_cost, [scheme_of()]).axes
    front = next(line for line in left.lines if line.get_drawstyle() == "steps-post")
    assert front.get_xydata().tolist() == [approx([25, 90]), approx([26.25, 90])]
    assert left.get_xlim() == approx((0, 26.25))


def test_markers_are_whole_where_all_cost_the_same(tmp_path, write_run):
    folders = [
        write_run(
            tmp_path / name,
            scheme=name,
            method="own",
            latency_s=(latency,) * 2,
            accuracy=(0.1, final),
        )
        for name, latency, final in (("a", 0.025, 0.5), ("b", 0.025 * (1 + 1e-14), 0.4))
    ]
    schemes = load_schemes(folders)
    with style.styled(style.SCREEN):
        left, _ = tradeoffs.accuracy_against_cost(schemes, style.SCREEN).axes
    assert left.get_xlim() == approx((0, 26.25))
