"""Curves over rounds, against numbers made by hand."""

import pandas as pd
from pytest import approx

from reports.run_data.scheme_grouping import load_schemes
from reports.run_data.statistics.round_curves import round_curve
from reports.run_data.statistics.run_totals import cost_to_target

NAN = float("nan")


def test_curve_over_seeds_uses_the_rounds_all_have(tmp_path, write_run):
    one = write_run(tmp_path / "0", seed=0, accuracy=(0.1, 0.5, NAN, 0.9), latency_s=(0.02,) * 4)
    two = write_run(tmp_path / "1", seed=1, accuracy=(0.3, NAN, 0.6, 0.7), latency_s=(0.04,) * 4)
    curve = round_curve(load_schemes([two, one])[0], "accuracy")
    assert curve.rounds.tolist() == [1, 4]
    assert curve.mean.tolist() == approx([0.2, 0.8])
    assert curve.time_s.tolist() == approx([0.03, 0.12])
    assert curve.half is None and curve.values.tolist() == [[0.1, 0.9], [0.3, 0.7]]


def test_seeds_evaluated_after_times_have_a_curve_though_in_other_rounds(tmp_path, write_run):
    """Every 40 ms, of rounds of 20 and of 30 ms; the slower one ends at 90 ms, with its third."""
    given = {0: (0.02, (NAN, 0.5, NAN, 0.7, NAN, 0.9)), 1: (0.03, (NAN, 0.3, 0.6))}
    folders = [
        write_run(
            tmp_path / str(seed), seed=seed, accuracy=accuracy, bits_up=10e6, bits_down=20e6,
            latency_s=(latency_s,) * len(accuracy), extra="evaluate: {every: 40 ms}",
        )
        for seed, (latency_s, accuracy) in given.items()
    ]  # fmt: skip
    curve = round_curve(load_schemes(folders)[0], "accuracy")
    assert curve.rounds.tolist() == [2, 3.5] and curve.time_s.tolist() == approx([0.05, 0.085])
    assert curve.mean.tolist() == approx([0.4, 0.65])
    assert curve.bits.tolist() == approx([60e6, 105e6])  # 30 Mbit a round


def test_seeds_are_compared_after_the_same_times(tmp_path, write_run):
    """Every 60 s. One's first round passes two of them; the other's measure is nan once."""
    given = {
        0: ((150.0, 30.0, 60.0, 60.0), (0.2, 0.3, 0.4, 0.5)),
        1: ((60.0,) * 5, (0.1, 0.2, 0.3, NAN, 0.5)),
    }
    folders = [
        write_run(
            tmp_path / str(seed), seed=seed, accuracy=accuracy, latency_s=latency_s,
            extra="evaluate: {every: 60 s}",
        )
        for seed, (latency_s, accuracy) in given.items()
    ]  # fmt: skip
    curve = round_curve(load_schemes(folders)[0], "accuracy")
    assert curve.time_s.tolist() == approx([135.0, 180.0, 300.0])
    assert curve.values.tolist() == [[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]]


def test_a_sum_of_latencies_that_falls_short_of_a_time_counts_as_having_reached_it(
    tmp_path, write_run
):
    """Every 60 ms, of rounds of 60 ms, which end a rounding error early or late."""
    accuracy = tuple(0.05 * g for g in range(1, 13))
    folders = [
        write_run(
            tmp_path / str(seed), seed=seed, accuracy=accuracy, latency_s=(latency_s,) * 12,
            extra="evaluate: {every: 60 ms}",
        )
        for seed, latency_s in enumerate((0.05999999999999999, 0.06000000000000002))
    ]  # fmt: skip
    curve = round_curve(load_schemes(folders)[0], "accuracy")
    assert curve.rounds.tolist() == list(range(1, 13))
    assert curve.mean.tolist() == approx(accuracy)


def test_latencies_are_those_of_all_rounds_though_evaluations_follow_times(tmp_path, write_run):
    """Every 40 ms: all rounds that reach a multiple take 30 ms, the mean round at most 20."""
    given = {0: (0.01, 0.03, 0.01, 0.03), 1: (0.01, 0.01, 0.03, 0.03, 0.01)}
    folders = [
        write_run(
            tmp_path / str(seed), seed=seed, accuracy=(0.5,) * len(latency_s), latency_s=latency_s,
            extra="evaluate: {every: 40 ms}",
        )
        for seed, latency_s in given.items()
    ]  # fmt: skip
    curve = round_curve(load_schemes(folders)[0], "latency_s")
    assert curve.rounds.tolist() == [1, 2, 3, 4]
    assert curve.mean.tolist() == approx([0.01, 0.02, 0.02, 0.03])


def test_the_spread_over_devices_stands_apart(scheme_of):
    curve = round_curve(scheme_of(), "accuracy")
    assert (curve.devices_std.tolist(), curve.half) == ([0.1, 0.1], None)


def test_curves_over_bits_and_joules_count_what_overlapping_jobs_have_spent_by_then(scheme_of):
    """Two jobs of round 1 begin in round 0, as of a clock whose jobs overlap.

    By 1 s: all of round 0, 8 bits and 1 J, and a quarter of what they spend, 4 bits and 2 J.
    """
    scheme = scheme_of(latency_s=(1.0, 1.0), accuracy=(0.5, 0.6), bits_up=8.0, bits_down=0.0)
    run = scheme.first
    run.rounds["energy_j"], run.rounds["in_flight"] = [1.0, 2.0], [2, 0]
    spans = [(0, 0.0, 1.0, 8.0, 1.0), (1, 0.75, 1.75, 4.0, 1.0), (1, 0.5, 2.5, 4.0, 1.0)]
    object.__setattr__(
        run, "spans", pd.DataFrame(spans, columns=["round", "start_s", "end_s", "bits", "energy_j"])
    )
    curve = round_curve(scheme, "accuracy")
    assert curve.bits.tolist() == [8 + 1 + 1, 16] and curve.energy_j.tolist() == [1.5, 3]
    for target, i in ((0.5, 0), (0.6, 1)):  # the table to-target has the same
        cost = cost_to_target(run, target)
        assert (cost.bits, cost.energy_j) == (curve.bits[i], curve.energy_j[i])
    run.rounds["in_flight"] = 0
    assert round_curve(scheme, "accuracy").bits.tolist() == [8, 16]
