"""Reading runs; whatever is broken is named in one sentence."""

import json

import pandas as pd
import pytest

import edgesim
from edgesim.errors import ResultsError
from edgesim.results.finished_run import read_run


def test_a_run_with_fewer_rounds_than_planned_is_unfinished(run):
    lines = (run / "rounds.csv").read_text().splitlines()
    (run / "rounds.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(ResultsError, match=r"unfinished \(2 of 3 rounds"):
        read_run(run)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("summary.json", "{", "summary.json cannot be read"),
        ("summary.json", "[]", "no JSON object"),
        ("summary.json", "{}", "lacks scenario"),
        ("rounds.csv", "", "rounds.csv is damaged: it has no column of the table rounds"),
        (
            "rounds.csv",
            "round,time_s\n0,1.0\n",
            "rounds in .* lacks the columns latency_s, .* another version",
        ),
        ("spans.parquet", "no parquet", "spans.parquet is damaged: it is no Parquet file"),
        ("scenario.yaml", "a: [", "scenario.yaml cannot be read"),
        ("partition.json", "{", "partition.json cannot be read"),
        (
            "partition.json",
            '{"labels": ["cat"]}',
            "partition.json is damaged: .* one count per device and label",
        ),
        (
            "partition.json",
            '{"labels": ["cat"], "counts": [[1], [1, 2]]}',
            "partition.json is damaged",
        ),
        (
            "partition.json",
            '{"labels": ["cat"], "counts": [["x"], [1]]}',
            "partition.json is damaged",
        ),
        ("devices.csv", "", "devices.csv cannot be read"),
        ("devices.csv", "foo\n1\n", "devices.csv is damaged: it has no column of device numbers"),
        (
            "devices.csv",
            "device,rate_bps\n0,1.x\n",
            "devices.csv is damaged: its column rate_bps holds no numbers",
        ),
    ],
)
def test_broken_files_are_named(run, name, content, message):
    (run / name).write_text(content)
    with pytest.raises(ResultsError, match=message) as error:
        read_run(run)
    assert "\n" not in str(error.value)


def test_a_missing_table_is_named(run):
    (run / "device_rounds.parquet").unlink()
    with pytest.raises(ResultsError, match=r"device_rounds.parquet is missing; the command"):
        read_run(run)


def test_a_run_of_another_version_says_which_columns_it_lacks(run):
    pd.read_csv(run / "rounds.csv").drop(columns=["solver_residual", "loss"]).to_csv(
        run / "rounds.csv", index=False
    )
    with pytest.raises(ResultsError) as error:
        read_run(run)
    assert str(error.value).startswith(
        f"The table rounds in {run} lacks the columns loss, solver_residual; "
        f"another version wrote it (edgesim {edgesim.__version__}, git "
    )


def test_a_table_with_words_for_numbers_is_damaged(run):
    spans = pd.read_parquet(run / "spans.parquet")
    spans.assign(end_s="soon").to_parquet(run / "spans.parquet")
    with pytest.raises(
        ResultsError, match=r"spans.parquet is damaged: column end_s holds text, not numbers"
    ):
        read_run(run)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", '"x"'),
        ("targets", "3"),
        ("rounds", "null"),
        ("targets", '{"0.x": null}'),
        ("latency_threshold_s", "[]"),
    ],
)
def test_a_damaged_summary_is_said(run, key, value):
    summary = json.loads((run / "summary.json").read_text()) | {key: json.loads(value)}
    (run / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(ResultsError, match=rf"summary.json is damaged: {key} is"):
        read_run(run)
