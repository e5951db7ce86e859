"""Numbers and tables of the report, against tables made by hand."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from reports.figures.cell_topology import device_table
from reports.run_data import run_statistics as stats
from reports.run_data.finished_run import FinishedRun
from reports.run_data.scheme_grouping import Scheme, load_schemes
from reports.styling.table_formats import DASH
from reports.text import summary_tables as tables

NAN = float("nan")


def rows_of(table):
    return list(csv.DictReader(io.StringIO(table.csv())))


def test_first_evaluated_round_at_the_target(scheme_of):
    run = scheme_of(latency_s=(0.01, 0.02, 0.03, 0.04), accuracy=(0.1, 0.8, 0.7, 0.9)).first
    hit = stats.cost_to_target(run, 0.8)
    assert (hit.round, hit.time_s, hit.bits, hit.energy_j) == (
        1,
        approx(0.03),
        approx(60e6),
        approx(1.0),
    )
    assert stats.cost_to_target(run, 0.85).time_s == approx(0.1)
    assert stats.cost_to_target(run, 0.91) is None


def test_a_round_without_evaluation_reaches_nothing(scheme_of):
    run = scheme_of(accuracy=(NAN, NAN, 0.85, 0.8)).first
    assert stats.cost_to_target(run, 0.8).round == 2
    assert stats.final(run, "accuracy") == 0.8


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
    run = FinishedRun(None, {}, {}, "", rounds, None, None, None, None)
    low, high = (stats.cost_to_target(run, target) for target in sorted((one, other)))
    assert high is None or (low.round <= high.round and low.bits <= high.bits)
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


def test_curve_over_seeds_uses_the_rounds_all_have(tmp_path, write_run):
    one = write_run(tmp_path / "0", seed=0, accuracy=(0.1, 0.5, NAN, 0.9), latency_s=(0.02,) * 4)
    two = write_run(tmp_path / "1", seed=1, accuracy=(0.3, NAN, 0.6, 0.7), latency_s=(0.04,) * 4)
    curve = stats.round_curve(load_schemes([two, one])[0], "accuracy")
    assert curve.round.tolist() == [0, 3]
    assert curve.mean.tolist() == approx([0.2, 0.8])
    assert curve.time_s.tolist() == approx([0.03, 0.12])
    assert curve.spread.tolist() == approx([12.7062 * 0.1, 12.7062 * 0.1], rel=1e-5)


def test_one_seed_has_its_devices_as_band(scheme_of):
    curve = stats.round_curve(scheme_of(), "accuracy")
    assert (curve.spread.tolist(), curve.over) == ([0.1, 0.1], "devices")


def test_scheme_table_by_hand(scheme_of):
    (row,) = rows_of(tables.scheme_table([scheme_of()]))
    assert row["scheme"] == "joint" and row["seeds"] == "1" and row["rounds"] == "4"
    assert float(row["final_accuracy"]) == 0.9 and float(
        row["final_accuracy_std_devices"]
    ) == approx(0.1)
    assert row["final_accuracy_ci95_seeds"] == ""
    assert float(row["rho_mean"]) == 0.5 and float(row["certificate_worst"]) == 1e-12


def test_cost_table_by_hand(scheme_of):
    (row,) = rows_of(tables.cost_table([scheme_of(latency_s=(0.02, 0.02, 0.02, 0.04))]))
    assert float(row["mean_latency_s"]) == approx(0.025) and float(row["std_latency_s"]) == approx(
        0.0086602540
    )
    assert (
        float(row["max_latency_s"]),
        float(row["late_share"]),
        float(row["infeasible_share"]),
    ) == (0.04, 0.25, 0)
    assert (float(row["bits_up"]), float(row["bits_down"]), float(row["energy_j"])) == (
        40e6,
        80e6,
        2.0,
    )


def test_target_table_says_what_was_not_reached(scheme_of):
    table = tables.target_table([scheme_of(latency_s=(0.02, 0.02, 0.02, 0.04))])
    first, second = rows_of(table)
    assert (first["reached"], first["round"], first["bits"], first["energy_j"]) == (
        "yes",
        "3.0",
        "120000000.0",
        "2.0",
    )
    assert float(first["time_s"]) == approx(0.1)
    assert (second["reached"], second["time_s"], second["bits"]) == ("not reached", "", "")
    assert table.cells()[1] == ["95.0", "joint", "not reached", *[DASH] * 4]


def test_targets_over_seeds_count_who_reached(tmp_path, write_run):
    one = write_run(tmp_path / "0", seed=0, accuracy=(0.1, 0.5, 0.8, 0.9))
    two = write_run(tmp_path / "1", seed=1, accuracy=(0.1, 0.5, 0.6, 0.7))
    row = rows_of(tables.target_table(load_schemes([one, two])))[0]
    assert (row["reached"], row["round"]) == ("1 of 2 seeds", "2.0")


def test_no_targets_no_table(scheme_of):
    assert tables.target_table([scheme_of(targets=())]) is None


def test_latex_is_escaped(scheme_of):
    text = tables.cost_table([scheme_of(scheme=r"50% & a_b \x {$}")]).latex()
    assert r"50\% \& a\_b \textbackslash{}x \{\$\} & 25.00 & 0 &" in text
    assert text.count(r"\\") == 2 and r"\toprule" in text and r"\bottomrule" in text


def test_device_table_leaves_out_unknown_distances(scheme_of):
    table = device_table(scheme_of().first)
    assert [table.columns[i].name for i in table.filled()][:2] == ["device", "path_gain_db"]
    assert rows_of(table)[1]["rate_bps"] == "100000000.0"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1234.56, "1\u2009235"),
        (0.012346, "0.01235"),
        (999.96, "1\u2009000"),
        (3e-7, "3.000e-07"),
    ],
)
def test_four_significant_figures(value, text):
    assert tables.significant(4)(value) == text
