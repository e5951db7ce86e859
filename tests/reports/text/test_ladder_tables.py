"""How far a conclusion moves over the rungs of network.fidelity."""

import math
from dataclasses import replace

import pytest
from pytest import approx

from reports.run_data import ladder
from reports.run_data.scheme_grouping import load_schemes
from reports.text.ladder_tables import ladder_tables

NAN = float("nan")


@pytest.fixture
def played(tmp_path, write_run):
    """played(rung, name, latencies of the seeds, ...) -> a scheme on a rung."""

    def make(rung, name, latencies_s, **given):
        places = [
            write_run(tmp_path / f"{rung}-{name}-{seed}", scheme=name, seed=seed,
                      latency_s=(latency_s,) * 4, **given)
            for seed, latency_s in enumerate(latencies_s)
        ]  # fmt: skip
        (scheme,) = load_schemes(places)
        label = f"{name} (fidelity {rung})"
        return replace(scheme, label=label, values=scheme.values | {ladder.KEY: rung})

    return make


def cell(table, row, name):
    return table.rows[row][[column.name for column in table.columns].index(name)]


@pytest.mark.slow
def test_rungs_stand_in_their_order_with_every_scheme(played):
    schemes = [
        *(played("cell", "a", (0.02,)), played("cell", "b", (0.03,))),
        *(played("paper", "a", (0.01,)), played("paper", "b", (0.04,))),
    ]
    results, orders = ladder_tables(schemes)
    assert [row[:2] for row in results.rows] == [
        *(("paper", "a"), ("paper", "b"), ("cell", "a"), ("cell", "b"))
    ]
    assert cell(results, 1, "mean_latency_s") == approx(0.04)
    assert cell(results, 1, "late_share") == 1.0 and cell(results, 0, "late_share") == 0.0
    assert cell(results, 1, "energy_per_round_j") == 0.5
    # the shortest run of the rung lasts 4 x 0.01 s, a round of b, which is not evaluated
    assert cell(results, 1, "time_s") == approx(0.04)
    assert cell(results, 0, "accuracy_at_time") == 0.9
    assert math.isnan(cell(results, 1, "accuracy_at_time"))
    assert orders.rows[0] == ("latency", "a < b", "nothing")


def test_an_accuracy_that_a_seed_lacks_by_then_has_no_interval(played):
    """Seed 3 has played no evaluated round after 4 x 0.01 s."""
    rungs = (played(rung, "a", (0.01, 0.011, 0.012, 0.05)) for rung in ("paper", "cell"))
    results, _ = ladder_tables(list(rungs))
    assert cell(results, 0, "accuracy_at_time") > 0
    assert math.isnan(cell(results, 0, "accuracy_at_time_ci95"))
    assert cell(results, 0, "mean_latency_s_ci95") > 0


def test_accuracy_at_a_time_is_the_last_one_measured(played):
    run = played("paper", "a", (0.01,), accuracy=(NAN, 0.5, 0.6, 0.9)).first
    times = (0.015, 0.02, 0.0299, 0.03, 1.0)
    assert [ladder.accuracy_at(run, time_s) for time_s in times[1:]] == [0.5, 0.5, 0.6, 0.9]
    assert ladder.accuracy_at(run, times[0]) != ladder.accuracy_at(run, times[0])  # nan


@pytest.mark.slow
def test_an_order_that_is_turned_round_is_named(played):
    schemes = [
        *(played("paper", "a", (0.010, 0.011, 0.012)), played("paper", "b", (0.02, 0.021, 0.022))),
        *(played("errors", "a", (0.020, 0.021, 0.023)), played("errors", "b", (0.01, 0.01, 0.01))),
    ]
    results, orders = ladder_tables(schemes)
    assert orders.rows[0][1:] == ("a < b", "b before a")
    assert "interval over 3 seeds" in results.caption


@pytest.mark.slow
def test_what_the_seeds_do_not_decide_is_no_order(played):
    """The paired differences are -1, 1 and 4 ms: mean 1.33 ms, interval +- 6.25 ms."""
    a = played("paper", "a", (0.011, 0.011, 0.011))
    b = played("paper", "b", (0.010, 0.012, 0.015))
    by = ladder.quantities(1.0)[0]
    assert ladder.before(a, b, by) == 0
    assert ladder.before(played("cell", "a", (0.011,)), played("cell", "b", (0.012,)), by) == 1
    turned = [played("adapted", "a", (0.02,) * 3), played("adapted", "b", (0.01,) * 3)]
    assert ladder_tables([a, b, *turned])[1].rows[0][1:] == ("a = b", "nothing")


def test_one_rung_is_no_ladder(played, two_schemes):
    assert ladder_tables([played("paper", "a", (0.01,)), *two_schemes]) == []


def test_schemes_that_are_not_tuned_have_no_order_by_accuracy(played):
    reason = "report: {untuned: As printed.}"
    schemes = [
        played(rung, name, (0.01,), extra=reason) for rung in ("paper", "cell") for name in "ab"
    ]
    results, orders = ladder_tables(schemes)
    assert [row[0] for row in orders.rows] == ["latency", "late share", "pruning ratio ρ", "energy"]
    for table in (results, orders):
        assert table.caption.endswith("Not a comparison of accuracies: As printed.")
