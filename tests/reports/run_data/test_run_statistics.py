"""Statistics of runs and schemes, against numbers made by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from edgesim.results.finished_run import FinishedRun
from reports.run_data import run_statistics as stats
from reports.run_data.metrics import LOSS
from reports.run_data.scheme_grouping import Scheme, load_schemes

NAN = float("nan")


def test_first_evaluated_round_at_the_target(scheme_of):
    run = scheme_of(latency_s=(0.01, 0.02, 0.03, 0.04), accuracy=(0.1, 0.8, 0.7, 0.9)).first
    hit = stats.cost_to_target(run, 0.8)
    assert (hit.rounds, hit.time_s, hit.bits, hit.energy_j) == (
        2,
        approx(0.03),
        approx(60e6),
        approx(1.0),
    )
    assert stats.cost_to_target(run, 0.85).time_s == approx(0.1)
    assert stats.cost_to_target(run, 0.91) is None
    # what rounding leaves of six devices with 80 %
    run.rounds["accuracy"] = [0.1, 0.7999999999999999, 0.7, 0.9]
    assert stats.cost_to_target(run, 0.8) == hit


def test_a_round_without_evaluation_reaches_nothing(scheme_of):
    run = scheme_of(accuracy=(NAN, NAN, 0.85, 0.8)).first
    assert stats.cost_to_target(run, 0.8).rounds == 3
    assert stats.final(run, "accuracy") == 0.8


def test_real_targets_have_a_final_loss_without_an_accuracy(scheme_of):
    scheme = scheme_of(accuracy=(0.5, NAN, 0.8, NAN))  # the loss is 1 less the accuracy
    scheme.first.rounds["accuracy"] = NAN
    assert math.isnan(stats.final(scheme.first, "accuracy"))
    assert LOSS.of(scheme.first) == approx(0.2)


@pytest.mark.slow
@given(
    st.lists(st.one_of(st.just(NAN), st.floats(0, 1)), min_size=1, max_size=12),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_a_higher_target_is_never_cheaper(accuracy, one, other):
    rounds = pd.DataFrame({"round": range(len(accuracy)), "accuracy": accuracy}).assign(
        bits_up=1.0, bits_down=2.0
    )
    rounds = rounds.assign(time_s=rounds["round"] + 1.0, energy_j=0.5)
    run = FinishedRun(None, {}, {}, "", rounds, *[None] * 6)
    low, high = (stats.cost_to_target(run, target) for target in sorted((one, other)))
    assert high is None or (low.rounds <= high.rounds and low.bits <= high.bits)
    assert (low is None) == (not any(value >= min(one, other) for value in accuracy))


def test_gap_to_the_threshold(scheme_of):
    gap = stats.threshold_gap(scheme_of(latency_s=(0.020, 0.025, 0.025 * (1 + 1e-6), 0.035)))
    assert (gap.above, gap.below) == (0.25, 0.25)  # the engine's slack of 1e-6 is on the threshold
    assert (gap.mean_s, gap.least_s, gap.most_s) == (approx(0.02625, rel=1e-6), 0.020, 0.035)


def test_no_threshold_no_gap(scheme_of):
    assert stats.threshold_gap(scheme_of(threshold_s=None)) is None


def test_ratio_is_the_mean_over_devices_that_took_part(scheme_of):
    run = scheme_of(rho=(0.0, 0.6)).first
    run.device_rounds.loc[run.device_rounds["device"] == 0, "status"] = "infeasible"
    assert stats.rho_mean(run) == approx(0.6)
    assert stats.per_device(Scheme("x", None, (run,)), "rho").index.tolist() == [1]


def test_interval_over_two_seeds():
    assert stats.half_width(np.array([0.8, 0.9])) == approx(
        12.7062 * 0.05, rel=1e-5
    )  # t(1 degree) s / sqrt(2)


def test_no_interval_of_a_loss_that_is_no_finite_number():
    """Without a warning, too: a RuntimeWarning fails a test."""
    half = stats.half_width(np.array([[math.inf, 0.8], [1.0, 0.9], [1.0, 1.0]]))
    assert math.isnan(half[0]) and half[1] == approx(4.30265 * 0.1 / math.sqrt(3), rel=1e-5)


def test_curve_over_seeds_uses_the_rounds_all_have(tmp_path, write_run):
    one = write_run(tmp_path / "0", seed=0, accuracy=(0.1, 0.5, NAN, 0.9), latency_s=(0.02,) * 4)
    two = write_run(tmp_path / "1", seed=1, accuracy=(0.3, NAN, 0.6, 0.7), latency_s=(0.04,) * 4)
    curve = stats.round_curve(load_schemes([two, one])[0], "accuracy")
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
    curve = stats.round_curve(load_schemes(folders)[0], "accuracy")
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
    curve = stats.round_curve(load_schemes(folders)[0], "accuracy")
    assert curve.time_s.tolist() == approx([135.0, 180.0, 300.0])
    assert curve.values.tolist() == [[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]]


def test_the_spread_over_devices_stands_apart(scheme_of):
    curve = stats.round_curve(scheme_of(), "accuracy")
    assert (curve.devices_std.tolist(), curve.half) == ([0.1, 0.1], None)


def test_estimate_of_one_seed_has_no_interval(scheme_of):
    found = stats.estimate(scheme_of(), lambda run: 2.0)
    assert (found.mean, found.n) == (2.0, 1) and math.isnan(found.half)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((0.5, 0.1), (0.65, 0.1), True),
        ((0.5, 0.1), (0.75, 0.1), False),
        ((0.5, 0.0), (0.5, 0.0), True),
        ((0.0, 0.0), (0.0, 0.0), True),
        ((0.5, 0.0), (0.5 + 1e-14, 0.0), True),  # what rounding leaves of equal means
        ((0.5, 0.0), (0.5 + 1e-9, 0.0), False),
        ((0.5, NAN), (0.5, 0.1), False),
    ],
)
def test_intervals_overlap_also_where_equal_means_have_none(one, other, expected):
    assert stats.overlap(*one, *other) is stats.overlap(*other, *one) is expected


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
    curve = stats.round_curve(scheme, "accuracy")
    assert curve.bits.tolist() == [8 + 1 + 1, 16] and curve.energy_j.tolist() == [1.5, 3]
    for target, i in ((0.5, 0), (0.6, 1)):  # the table to-target has the same
        cost = stats.cost_to_target(run, target)
        assert (cost.bits, cost.energy_j) == (curve.bits[i], curve.energy_j[i])
    run.rounds["in_flight"] = 0
    assert stats.round_curve(scheme, "accuracy").bits.tolist() == [8, 16]
