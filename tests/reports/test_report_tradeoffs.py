"""Pareto front, cost to a target, and the parts of the latency, against numbers made by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from reports.figures import accuracy_cost_tradeoff as tradeoffs
from reports.figures import cell_topology as places
from reports.figures import round_latency as latencies
from reports.figures.accuracy_cost_tradeoff import pareto_front as front
from reports.run_data import run_statistics as stats
from reports.run_data.scheme_grouping import load_schemes
from reports.styling import figure_style as style

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
    """Reached after 2, 3 and 1 rounds: 0.03, 0.06 and 0.01 s; 60, 90 and 30 Mbit; t of 2 degrees is 4.30265."""
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


def test_nothing_reached_is_no_figure(scheme_of):
    assert tradeoffs.target_costs([scheme_of(accuracy=(0.1,) * 4)], style.SCREEN) is None


def test_estimate_of_one_seed_has_no_interval(scheme_of):
    found = stats.estimate(scheme_of(), lambda run: 2.0)
    assert (found.mean, found.n) == (2.0, 1) and math.isnan(found.half)


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
    assert stairs.get_xydata().tolist() == [approx([10, 50]), approx([30, 90])]


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


def test_parts_of_the_latency_add_up(scheme_of):
    """Device 1 computes a quarter of the round and uploads the rest; device 0 is done at half of it."""
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
    assert latencies.latency_by_phase([scheme], style.SCREEN) is None


def test_parts_of_real_runs_add_up_to_the_latency(real_runs):
    for scheme in load_schemes(sorted(real_runs.iterdir())):
        for who in (latencies.SLOWEST, latencies.MEAN):
            total = sum(latencies.phase_lengths_s(scheme, who).values())
            assert total == approx(stats.latencies_s(scheme).mean(), rel=1e-12)


def test_distribution_over_all_rounds_and_seeds(tmp_path, write_run):
    one = write_run(tmp_path / "0", seed=0, latency_s=(0.02, 0.04), accuracy=(0.1, 0.2))
    two = write_run(tmp_path / "1", seed=1, latency_s=(0.03, 0.01), accuracy=(0.1, 0.2))
    x, y = latencies.distribution(load_schemes([one, two])[0])
    assert (x.tolist(), y.tolist()) == ([0.01, 0.02, 0.03, 0.04], [0.25, 0.5, 0.75, 1.0])


def test_devices_lie_at_their_distances(scheme_of):
    run = scheme_of().first
    assert places.node_positions(run.devices)[1] == "star"
    run.devices["distance_m"] = [30.0, 40.0]
    where, kind = places.node_positions(run.devices)
    assert kind == "distances" and [math.hypot(*where[k]) for k in (0, 1)] == approx([30, 40])
    run.devices["x_m"], run.devices["y_m"] = [1.0, 2.0], [3.0, 4.0]
    where, kind = places.node_positions(run.devices)
    assert kind == "positions" and where[1] == [2.0, 4.0]


def test_a_number_stands_on_the_circle_that_lies_on_top(scheme_of):
    scheme = scheme_of()
    scheme.first.devices["x_m"], scheme.first.devices["y_m"] = [50.0, 50.5], [50.0, 50.0]
    with style.styled(style.SCREEN):
        panel, _ = places.cell_topology([scheme], style.SCREEN).axes
        assert [text.get_text() for text in panel.texts] == ["1"]
        scheme.first.devices["y_m"] = [50.0, -50.0]
        panel, _ = places.cell_topology([scheme], style.SCREEN).axes
    assert sorted(text.get_text() for text in panel.texts) == ["0", "1"]
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("x (m)", "y (m)")


def test_the_cell_is_a_star_of_all_devices(scheme_of):
    graph = places.star_graph(scheme_of().first.devices)
    assert (
        sorted(map(str, graph.neighbors(places.STATION))) == ["0", "1"]
        and graph.nodes[1]["rate_bps"] == 1e8
    )
