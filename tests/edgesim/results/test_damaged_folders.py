"""Run folders damaged on purpose: what is wrong is one sentence that names the file and the place.

The digests are taken away, as in folders of another origin: the schema alone has to notice.
"""

import json
import os

import numpy as np
import pandas as pd
import pytest

from edgesim.errors import ResultsError
from edgesim.results.finished_run import read_run
from edgesim.results.sweep_file import linked_keys, sweep_points

PIPED = ("summary.json", "rounds.csv", "spans.parquet", "scenario.yaml")


def sentence(folder) -> str:
    with pytest.raises(ResultsError) as error:
        read_run(folder)
    assert "\n" not in str(error.value) and len(str(error.value)) < 700
    return str(error.value)


def parquet(folder, name, change):
    table = pd.read_parquet(folder / name)
    change(table).to_parquet(folder / name)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("scheme", ["a"]),
        ("scenario", {"a": 1}),
        ("scheme", "x" * 1_000_000),
        ("rounds", -3),
        ("rounds", 10**30),
        ("devices", True),
        ("seed", 2**70),
        ("targets", {"0.8": {"round": "soon"}}),
        ("targets", {"nan": None}),
        ("latency_threshold_s", -1.0),
        ("energy_j", 1e308),
        ("warnings", [3]),
        ("stretched_rounds", "x"),
        ("weights", {"total": "many"}),
        ("final_metric", {"r2": "high"}),
        ("final_metric", 0.5),
    ],
)
def test_a_summary_with_the_wrong_kind_of_value(run, key, value):
    summary = json.loads((run / "summary.json").read_text()) | {key: value}
    (run / "summary.json").write_text(json.dumps(summary))
    assert f"summary.json is damaged: {key} is" in sentence(run)


@pytest.mark.parametrize(
    ("table", "column", "value", "expected"),
    [
        ("spans", "energy_j", 1e308, "column energy_j, row 2: is 1e+308"),
        ("spans", "energy_j", np.nan, "column energy_j, row 2: is nan"),
        ("spans", "round", -1, "column round, row 2: is -1"),
        ("device_rounds", "device", 0, "row 2: round 0, device 0 stands twice"),
        ("device_rounds", "status", "gone", 'column status, row 2: is "gone"; allowed are arrived'),
        ("device_rounds", "device", 0.5, "column device holds fractions or gaps"),
    ],
)
def test_a_table_with_a_value_that_no_run_writes(run, table, column, value, expected):
    def change(rows):
        kind = object if isinstance(value, str) else np.result_type(rows[column], type(value))
        rows[column] = rows[column].astype(kind)
        rows.loc[1, column] = value
        return rows

    if expected.startswith("column round, row 2: is 10"):  # of the last row, to keep the order
        parquet(run, f"{table}.parquet", lambda rows: rows.iloc[:1].assign(round=10**9))
        assert "round, row 1: is 1000000000, and summary.json says that there are 3" in sentence(
            run
        )
        return
    parquet(run, f"{table}.parquet", change)
    assert f"{table}.parquet is damaged: {expected}" in sentence(run)


def test_a_round_that_the_run_does_not_have(run):
    parquet(run, "spans.parquet", lambda rows: rows.iloc[:1].assign(round=10**9))
    expected = "column round, row 1: is 1000000000, and summary.json says that there are 3 rounds"
    assert expected in sentence(run)


def test_spans_without_phase(run):
    parquet(run, "spans.parquet", lambda rows: rows.drop(columns=["phase"]))
    assert "The table spans" in sentence(run) and "lacks the column phase" in sentence(run)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda text: text.replace("\n1,", "\n-1,"), "column round, row 2: is -1"),
        (lambda text: text.replace("\n1,", "\n7,"), "row 3: round 2 stands behind a later one"),
        (lambda text: text.replace("\n1,", "\none,"), 'column round, row 2: is "one", which is no'),
        (lambda text: text.replace("\n1,", "\n1e5,"), 'row 2: is "1e5", which is no whole number'),
        (lambda text: text + "3,\n", "row 4 has 2 fields and the head has"),
        (lambda text: text.replace("time_s", "round", 1), 'column "round" stands twice'),
        (lambda text: text + '"' + "x" * 200_000, "it is no CSV file (field larger than"),
        (lambda text: text.replace("\n1,", "\n" + "9" * 30 + ","), "a number that is too large"),
    ],
)
def test_a_csv_table(run, change, expected):
    path = run / "rounds.csv"
    path.write_text(change(path.read_text()))
    assert expected in sentence(run)


def test_a_metric_whose_name_would_lead_out_of_a_report(run):
    head, *rows = (run / "rounds.csv").read_text().splitlines()
    lines = [f"{head},../../../x", *(f"{row},0.5" for row in rows)]
    (run / "rounds.csv").write_text("\n".join(lines) + "\n")
    assert 'rounds.csv is damaged: column "../../../x" is no name of a metric' in sentence(run)


@pytest.mark.parametrize("name", PIPED)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_only_regular_files_are_read(run, name, kind):
    (run / name).unlink()
    if kind == "pipe":
        os.mkfifo(run / name)
    elif kind == "device":
        (run / name).symlink_to("/dev/zero")
    else:
        (run / name).mkdir()
    expected = "Is a directory" if kind == "folder" else f"it is a {kind}, and only regular files"
    assert f"{name} cannot be read: {expected}" in sentence(run)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("report: {beside: liu, schemes: [joint]}", "report.schemes is a list, not a mapping"),
        ("evaluate: [1]", "evaluate is a list, not a mapping"),
        ("evaluate: {every: 5 x}", 'evaluate.every is "5 x" (unknown unit "x")'),
        ("evaluate: {every: 0 s}", 'evaluate.every is "0 s"; allowed is more than 0'),
        ("evaluate: {every: [1, 2]}", "evaluate.every is a list; write a whole number"),
    ],
)
def test_a_key_that_reports_read_and_that_no_run_wrote_is_damage(run, text, expected):
    """A report ended in a sentence without the file, or with 0 s in a division by zero."""
    (run / "scenario.yaml").write_text(f"name: x\n{text}\n")
    assert f"scenario.yaml is damaged: {expected}" in sentence(run)


def test_deep_json_and_an_alias_bomb_are_refused_at_once(run):
    text = (run / "scenario.yaml").read_text()
    nine = "a: &a [x,x,x,x,x,x,x,x,x]\n"
    for name, before in zip("bcdefghij", "abcdefghi", strict=True):
        nine += f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n"
    (run / "scenario.yaml").write_text(nine)
    assert 'anchors and aliases ("a") are not allowed' in sentence(run)
    (run / "scenario.yaml").write_text(text + "x: [" + "1," * 3_000_000 + "1]\n")
    assert "it has 5.7" in sentence(run) and "more than the 4 MiB allowed" in sentence(run)
    (run / "scenario.yaml").write_text(text.partition("provenance")[0] + "provenance: [1]\n")
    assert "scenario.yaml is damaged: provenance is a list, not a mapping" in sentence(run)
    (run / "summary.json").write_text('{"scheme": "\\ud800"}')
    assert "summary.json cannot be read" in sentence(run)
    (run / "summary.json").write_text("[" * 200_000)
    assert "summary.json cannot be read: it is nested too deep" in sentence(run)


def test_counts_of_a_partition_and_devices(run):
    (run / "partition.json").write_text('{"labels": ["a"], "counts": [[-1], [1]]}')
    assert "one count per device and label" in sentence(run)
    (run / "partition.json").unlink()
    (run / "devices.csv").write_text("device,rate_bps\n0,1e308\n1,5\n")
    assert "its column rate_bps is 1e+308 in row 1; allowed are numbers up to" in sentence(run)
    (run / "devices.csv").write_text("device,rate_bps\n1,5\n0,5\n")
    assert "its column device does not count the devices from 0" in sentence(run)


@pytest.mark.parametrize(
    "point",
    [
        {"folder": "a\0b"},
        {"folder": "/etc"},
        {"folder": "../other"},
        {"folder": "a", "values": ["x"]},
        {"folder": "a", "values": {"x": 3}},
        {"folder": "a", "label": ["x"]},
        {"folder": "a", "seed": 1.5},
        {"folder": "a", "status": {}},
    ],
)
def test_a_point_of_sweep_json(tmp_path, point):
    (tmp_path / "sweep.json").write_text(json.dumps({"points": [{"folder": "a"}, point]}))
    with pytest.raises(ResultsError, match=r"sweep.json is damaged: \w+ of point 2 is"):
        sweep_points(tmp_path)


@pytest.mark.parametrize("linked", ["ab", [["a", 3]], [[]], {"a": "b"}])
def test_the_linked_keys_of_sweep_json(tmp_path, linked):
    (tmp_path / "sweep.json").write_text(json.dumps({"points": [], "linked": linked}))
    with pytest.raises(ResultsError, match=r"sweep.json is damaged: linked is .*, not lists"):
        linked_keys(tmp_path)


def test_a_sealed_sweep_json_with_a_flipped_bit(tmp_path):
    from fl.stored_files import BLANK, sealed

    whole = sealed(json.dumps({"digest": BLANK, "points": [{"folder": "abc"}]}).encode())
    (tmp_path / "sweep.json").write_bytes(whole)
    assert sweep_points(tmp_path)[0]["folder"] == "abc"
    (tmp_path / "sweep.json").write_bytes(whole.replace(b"abc", b"abb"))
    with pytest.raises(ResultsError, match="its bytes do not match their digest"):
        sweep_points(tmp_path)


def test_a_damaged_file_with_digests_is_refused_before_it_is_parsed(copied_run):
    run = copied_run("b")
    content = bytearray((run / "spans.parquet").read_bytes())
    content[100] ^= 4
    (run / "spans.parquet").write_bytes(content)
    assert "spans.parquet is damaged: its bytes do not match SHA256SUMS" in sentence(run)
