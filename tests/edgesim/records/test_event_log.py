"""The log: typed rows, spans that end by interruption, bytes that depend on the rows alone."""

import math

import numpy as np
import pytest
import simpy

from edgesim.errors import ResultsError
from edgesim.records.event_log import EventLog
from edgesim.records.run_tables.growing_tables import LogError
from edgesim.records.run_tables.table_columns import ROUND_SCHEMAS as SCHEMAS
from edgesim.records.run_tables.table_columns import rows_of
from edgesim.tables.table_reading import read_event_log
from fl.contracts import RoundPlan, Scores

FILES = ("rounds.csv", "device_rounds.parquet", "spans.parquet", "scores.parquet", "measures.csv")


def test_spans_are_ordered_and_an_interrupted_one_counts_what_was_done(logged):
    spans = logged(rounds=1).columns("spans")
    assert spans["device"] == [0, 0, 1, 1]
    assert spans["phase"] == ["upload", "train"] * 2
    assert spans["end_s"] == [0.0, 2.0, 0.0, 3.0]
    assert spans["cycles"] == [0.0, 8.0, 0.0, 6.0]  # 3 of 4 s
    assert spans["energy_j"] == [0.0, 16.0, 0.0, 12.0]


def test_a_round_adds_up_its_spans(logged):
    log = logged()
    row = {name: values[1] for name, values in log.columns("rounds").items()}
    assert (row["time_s"], row["latency_s"]) == (6.0, 3.0)
    assert [row[name] for name in ("selected", "arrived", "late", "failed", "infeasible")] == [
        3,
        1,
        1,
        0,
        1,
    ]
    assert [row[name] for name in ("loss", "accuracy", "accuracy_std")] == [2.0, 0.75, 0.25]
    assert [row[name] for name in ("rho_mean", "rho_max", "solver_residual")] == [0.25, 0.5, 1e-12]
    assert (row["pruning_per_hz"], row["pruning_per_s"]) == (-2e-7, -50.0)
    assert [row[name] for name in ("bits_up", "bits_down", "flops", "cycles", "energy_j")] == [
        20,
        0,
        28,
        14,
        28,
    ]
    assert math.isnan(log.columns("rounds")["accuracy"][0])
    assert log.stretched_rounds == 2  # planned for 3 s, the threshold is 2 s


def test_infeasible_devices_have_a_row_without_times(logged):
    rows = logged(rounds=1).columns("device_rounds")
    assert rows["status"] == ["arrived", "late", "infeasible"]
    assert rows["compute_s"][:2] == [2.0, 3.0]
    assert all(
        math.isnan(rows[name][2])
        for name in ("rate_bps", "download_s", "compute_s", "upload_s", "finish_s")
    )
    assert [rows[name][2] for name in ("share", "rho", "bits_up", "energy_j")] == [0.0] * 4


def test_a_log_with_an_open_span_is_neither_closed_nor_frozen():
    log = EventLog()
    log.attach(simpy.Environment())
    with log.span(0, 4, "upload"):
        for end in (log.freeze, lambda: log.close_round(0, 0.0, 0.0, RoundPlan(()), [])):
            with pytest.raises(LogError, match="upload of device 4"):
                end()
    log.close_round(0, 0.0, 0.0, RoundPlan(()), [])
    log.freeze()
    with pytest.raises(LogError, match="frozen"):
        log.close_round(1, 0.0, 0.0, RoundPlan(()), [])


def test_drained_rows_put_back_give_the_same_bytes(logged, tmp_path):
    whole, parts = logged(rounds=3), []
    first = logged(rounds=1)
    parts.append(first.drain())
    assert first.drain()["rounds"]["round"] == []
    second = EventLog()
    second.restore(parts[0])
    assert second.drain()["spans"]["round"] == []
    for table, columns in whole.drain().items():
        known = rows_of(second.columns(table))
        second.add({table: {column: values[known:] for column, values in columns.items()}})
    for log, folder in ((whole, tmp_path / "whole"), (second, tmp_path / "parts")):
        log.write_tables(folder)
    for file in FILES:
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "parts" / file).read_bytes()


def test_scores_have_a_row_for_every_device_with_test_data_in_an_evaluated_round(logged):
    log = logged(rounds=3)
    assert log.columns("scores") == {
        "round": [1, 1, 2, 2],
        "device": [0, 1, 0, 1],
        "loss": [1.0, 3.0] * 2,
        "accuracy": [0.5, 1.0] * 2,
    }
    assert (
        log.table("scores").groupby("round").accuracy.mean().tolist()
        == log.table("rounds").accuracy[1:].tolist()
    )


def test_a_missing_table_is_named(logged, tmp_path):
    logged().write_tables(tmp_path)
    assert len(read_event_log(tmp_path)["rounds"]) == 2
    (tmp_path / "spans.parquet").unlink()
    with pytest.raises(ResultsError, match=r"spans\.parquet is missing"):
        read_event_log(tmp_path)


def test_many_devices_cost_nothing_in_rounds_without_scores():
    log = EventLog()
    log.attach(simpy.Environment())
    log.close_round(0, 0.0, 0.0, RoundPlan(()), [], None)
    assert log.columns("scores") == {name: [] for name in SCHEMAS["scores"]}
    unknown = np.full(1_000_000, math.nan)
    log.close_round(1, 0.0, 0.0, RoundPlan(()), [], Scores(unknown, unknown))
    assert log.columns("scores")["round"] == []


def test_blocks_are_restored_one_after_the_other(logged):
    log, blocks = logged(rounds=1), []
    blocks.append(log.drain())
    blocks.append(logged(first=1, rounds=1, log=log).drain())
    again = EventLog()
    again.restore({name: columns} for block in blocks for name, columns in block.items())
    np.testing.assert_equal(again.tables, log.tables)  # nan = nan
    assert again.stretched_rounds == 2
