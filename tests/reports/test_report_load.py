"""Finding, reading and grouping runs; every complaint is one sentence."""

import json

import pytest

from reports.run_data.finished_run import load_run
from reports.run_data.run_files import ReportError
from reports.run_data.run_search import find_runs
from reports.run_data.scheme_grouping import load_schemes
from reports.run_data.swept_keys import flatten


def test_runs_are_found_below_a_folder_once(tmp_path, write_run):
    one = write_run(tmp_path / "runs" / "demo" / "a")
    two = write_run(tmp_path / "runs" / "demo" / "b", seed=1)
    (one / "checkpoint").mkdir()
    (one / "checkpoint" / "summary.json").write_text("{}")
    assert find_runs([tmp_path / "runs", one]) == ([one, two], [], [])


def test_no_runs(tmp_path):
    with pytest.raises(ReportError, match=r"No runs found in .*empty"):
        (tmp_path / "empty").mkdir()
        find_runs([tmp_path / "empty"])
    with pytest.raises(ReportError, match="is not a folder"):
        find_runs([tmp_path / "nowhere"])


def test_an_unfinished_run_is_named(tmp_path, write_run):
    run = write_run(tmp_path / "a")
    (run / "summary.json").unlink()
    assert find_runs([run]) == ([], [run], [])
    other = write_run(tmp_path / "b")
    assert find_runs([tmp_path]) == ([other], [run], [])
    (interrupted := tmp_path / "c" / "checkpoint").mkdir(parents=True)
    (interrupted / "log.arrows").write_bytes(b"")
    assert find_runs([tmp_path]).unfinished == [run, tmp_path / "c"]


def test_a_run_with_fewer_rounds_than_planned_is_unfinished(tmp_path, write_run):
    run = write_run(tmp_path / "a")
    lines = (run / "rounds.csv").read_text().splitlines()
    (run / "rounds.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(ReportError, match=r"unfinished \(3 of 4 rounds"):
        load_run(run)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("summary.json", "{", "summary.json cannot be read"),
        ("summary.json", "[]", "no JSON object"),
        ("summary.json", "{}", "lacks scenario"),
        ("rounds.csv", "", "event log .* cannot be read"),
        (
            "rounds.csv",
            "round,time_s\n0,1.0\n",
            "rounds in .* lacks the columns latency_s, .* another version",
        ),
        ("spans.parquet", "no parquet", "event log .* cannot be read"),
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
def test_broken_files_are_named(tmp_path, write_run, name, content, message):
    run = write_run(tmp_path / "a")
    (run / name).write_text(content)
    with pytest.raises(ReportError, match=message) as error:
        load_run(run)
    assert "\n" not in str(error.value)


def test_a_missing_table_is_named(tmp_path, write_run):
    run = write_run(tmp_path / "a")
    (run / "device_rounds.parquet").unlink()
    with pytest.raises(ReportError, match="event log"):
        load_run(run)


def test_different_targets_do_not_go_together(tmp_path, write_run):
    one, two = write_run(tmp_path / "a"), write_run(tmp_path / "b", scheme="x", targets=("0.7",))
    with pytest.raises(ReportError, match=r"different target accuracies \(0.8, 0.95 and 0.7\)"):
        load_schemes([one, two])


def test_seeds_of_one_scheme_are_one_scheme(tmp_path, write_run):
    folders = [write_run(tmp_path / str(seed), seed=seed) for seed in (2, 0, 1)]
    (scheme,) = load_schemes(folders)
    assert [run.seed for run in scheme.runs] == [0, 1, 2]


def test_the_same_seed_twice_is_an_error(tmp_path, write_run):
    with pytest.raises(ReportError, match=r"same scheme .* same seed 0"):
        load_schemes([write_run(tmp_path / "a"), write_run(tmp_path / "b")])


def test_schemes_of_one_label_are_told_apart_by_what_differs(tmp_path, write_run):
    one, two = write_run(tmp_path / "a"), write_run(tmp_path / "b", bandwidth="20 MHz")
    labels = [scheme.label for scheme in load_schemes([one, two])]
    assert sorted(labels) == ["joint (bandwidth 20 MHz)", "joint (bandwidth 200 MHz)"]
    three = write_run(tmp_path / "c", name="other")
    assert "joint (other)" in [scheme.label for scheme in load_schemes([one, three])]


def test_schemes_come_in_the_order_of_the_paper(tmp_path, write_run):
    pairs = {
        "z": ("liu", "kkt"),
        "a": ("fedavg", "kkt"),
        "m": ("fedalt", "equal"),
        "own": ("./my.py:Mine", "kkt"),
    }
    pairs |= {"e": ("liu", "equal"), "p": ("pruning-only", "kkt")}
    folders = [
        write_run(tmp_path / key, scheme=key, method=m, solver=s) for key, (m, s) in pairs.items()
    ]
    schemes = load_schemes(folders)
    assert [scheme.label for scheme in schemes] == ["z", "e", "p", "m", "a", "own"]
    assert [scheme.role for scheme in schemes] == [
        "joint",
        "equal",
        "pruning",
        "personal",
        "reference",
        None,
    ]


def test_seed_and_provenance_are_no_configuration():
    assert flatten({"seed": 1, "provenance": {"git": "x"}, "a": {"b": 2, "seed": 3}}) == {
        "a.b": "2",
        "a.seed": "3",
    }


def test_an_infinite_threshold_is_none(tmp_path, write_run):
    run = write_run(tmp_path / "a")
    summary = json.loads((run / "summary.json").read_text()) | {"latency_threshold_s": float("inf")}
    (run / "summary.json").write_text(json.dumps(summary))
    assert load_run(run).threshold_s is None
