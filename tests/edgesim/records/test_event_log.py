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
from fl.contracts import Grant, Outcome, RoundPlan, Scores

COLUMNS = {
    "rounds": "round time_s latency_s selected arrived late failed infeasible loss accuracy accuracy_std rho_mean "  # noqa: E501
    "rho_max bits_up bits_down flops cycles energy_j solver_residual pruning_per_hz pruning_per_s",
    "device_rounds": "round device status share rho rate_bps download_s compute_s upload_s finish_s bits_up bits_down "  # noqa: E501
    "flops cycles energy_j",
    "spans": "round device phase start_s end_s bits cycles energy_j",
    "scores": "round device loss accuracy",
    "measures": "round name value",
}
FILES = ("rounds.csv", "device_rounds.parquet", "spans.parquet", "scores.parquet", "measures.csv")
MEASURES = {"density": 0.35, "accuracy global": math.nan, "NA": math.inf, "a, b": 3}


def logged(first=0, rounds=2, log=None):
    """Two devices compute for 2 s (8 cycles) and 4 s; device 1 is cut off after 3 s; device 2 is
    infeasible.
    """
    env, log = simpy.Environment(), log or EventLog()
    log.attach(env)
    grants = (Grant(0, 0.25, 0.5, 1e9, 1.0), Grant(1, 0.75, 0.0, 1e9, 1.0))
    plan = RoundPlan(grants, (2,), 1e-12, budget_s=3.0, pruning_per_hz=-2e-7, pruning_per_s=-50.0)

    def work(g, device, seconds):
        with log.span(g, device, "upload") as span:
            span.bits = 10.0
        with log.span(g, device, "train", lambda span: 2 * span.cycles, 8.0, 16.0, seconds):
            yield env.timeout(seconds)

    for g in range(first, first + rounds):
        start_s = env.now
        processes = [env.process(work(g, k, 2.0 + 2.0 * k)) for k in (1, 0)]
        env.run(until=start_s + 3.0)
        processes[0].interrupt()
        with pytest.raises(simpy.Interrupt):
            env.run(processes[0])
        outcomes = [
            Outcome(plan.grants[0], None, "arrived", True, True, 2.0),
            Outcome(plan.grants[1], None, "late", False, False, math.nan),
            Outcome(Grant(2, 0.0, 0.0, 1e9, 1.0), None, "infeasible", False, False, math.nan),
        ]
        tests = (
            np.array([1.0, 3.0, math.nan]),
            np.array([0.5, 1.0, math.nan]),
        )  # device 2 has no test data
        scores = Scores(*tests, MEASURES) if g else None
        log.close_round(g, start_s, env.now, plan, outcomes, scores, threshold_s=2.0)
    return log


def test_columns_are_those_of_the_contract():
    assert {name: " ".join(SCHEMAS[name]) for name in COLUMNS} == COLUMNS


def test_spans_are_ordered_and_an_interrupted_one_counts_what_was_done():
    spans = logged(rounds=1).columns("spans")
    assert spans["device"] == [0, 0, 1, 1]
    assert spans["phase"] == ["upload", "train"] * 2
    assert spans["end_s"] == [0.0, 2.0, 0.0, 3.0]
    assert spans["cycles"] == [0.0, 8.0, 0.0, 6.0]  # 3 of 4 s
    assert spans["energy_j"] == [0.0, 16.0, 0.0, 12.0]


def test_a_round_adds_up_its_spans():
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


def test_infeasible_devices_have_a_row_without_times():
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


def test_tables_come_back_as_they_were_written(tmp_path):
    log = logged()
    log.write_tables(tmp_path)
    for name, frame in read_event_log(tmp_path).items():
        own = log.table(name)
        assert list(frame.columns) == list(own.columns)
        for column, kind in SCHEMAS[name].items():
            np.testing.assert_array_equal(frame[column], own[column])
            assert kind is str or frame[column].dtype == np.dtype(kind)


def test_csv_is_exact_and_leaves_unknown_numbers_empty(tmp_path):
    log = logged(rounds=1)
    log.columns("rounds")["bits_up"][0] = 0.1 + 0.2
    log.write_tables(tmp_path)
    header, row = (tmp_path / "rounds.csv").read_bytes().decode().splitlines()
    assert header.replace(",", " ") == COLUMNS["rounds"]
    assert (
        row
        == "0,3.0,3.0,3,1,1,0,1,,,,0.25,0.5,0.30000000000000004,0.0,28.0,14.0,28.0,1e-12,-2e-07,-50.0"  # noqa: E501
    )


def test_drained_rows_put_back_give_the_same_bytes(tmp_path):
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


def test_scores_have_a_row_for_every_device_with_test_data_in_an_evaluated_round():
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


def test_measures_keep_the_order_of_the_method(tmp_path):
    log = logged()
    assert log.columns("measures")["name"] == ["density", "accuracy global", "NA", "a, b"]
    log.write_tables(tmp_path)
    text = (tmp_path / "measures.csv").read_text()
    assert text == 'round,name,value\n1,density,0.35\n1,accuracy global,\n1,NA,inf\n1,"a, b",3.0\n'
    back = read_event_log(tmp_path)["measures"]
    assert back.name.tolist() == list(MEASURES)
    np.testing.assert_array_equal(back.value, list(MEASURES.values()))


def test_a_missing_table_is_named(tmp_path):
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


def test_blocks_are_restored_one_after_the_other():
    log, blocks = logged(rounds=1), []
    blocks.append(log.drain())
    blocks.append(logged(first=1, rounds=1, log=log).drain())
    again = EventLog()
    again.restore({name: columns} for block in blocks for name, columns in block.items())
    np.testing.assert_equal(again.tables, log.tables)  # nan = nan
    assert again.stretched_rounds == 2
