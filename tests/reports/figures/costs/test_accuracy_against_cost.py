"""Pareto fronts, against numbers made by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from reports.catalog.cost_and_cell_figures import cost_figures
from reports.figures.costs import accuracy_against_cost as tradeoffs
from reports.figures.costs.accuracy_against_cost import pareto_front as front
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


def test_schemes_that_are_not_tuned_have_no_front(drawn, scheme_of):
    schemes = [scheme_of(scheme=name, extra="report: {untuned: As printed.}") for name in "ab"]
    left, _ = drawn(tradeoffs.accuracy_against_cost, schemes).axes
    marked = [line for line in left.lines if line.get_marker() in MARKERS]
    assert len(marked) == 2 and {line.get_markerfacecolor() for line in marked} == {"white"}
    assert "front" not in str([column.name for column in tradeoffs.pareto_table(schemes).columns])
    caption = cost_figures(schemes, schemes, "")[0].caption
    assert caption == (
        "Final accuracy against what a round costs. There is no front. Not a comparison of "
        "accuracies: As printed."
    )
