"""`edgesim compare`: what differs between real runs, and where first."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from edgesim.cli.app import app
from edgesim.errors import ResultsError
from reports.run_diff import RunComparison, compare, compare_runs, described, named_runs
from reports.table_diff import compare_tables


def invoke(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


@pytest.fixture
def two(real_runs, tmp_path):
    """A real run, and a copy of it to change, without digests of the files."""
    copy = shutil.copytree(real_runs / "5MHz-s0", tmp_path / "copy")
    for name in ("SHA256SUMS", "timing.json"):  # whose digest says that there were sums
        (copy / name).unlink()
    return real_runs / "5MHz-s0", copy


def test_a_run_equals_its_copy(two):
    result = invoke(*two)
    assert result.exit_code == 0 and result.stdout.startswith(
        "  equal: all keys, the tables rounds, device_rounds"
    )


def test_versions_are_said_and_make_no_difference(two):
    one, other = two
    text = (other / "scenario.yaml").read_text()
    assert "  simpy: " in text
    (other / "scenario.yaml").write_text(text.replace("  simpy: ", "  simpy: 9."))
    result = invoke(one, other)
    assert (
        result.exit_code == 0 and "version of simpy: " in result.stdout and " | 9." in result.stdout
    )


def test_one_changed_digit_is_found_where_it_is(two):
    one, other = two
    table = pd.read_csv(one / "rounds.csv", dtype=str, keep_default_na=False)
    before = table.loc[1, "energy_j"]
    table.loc[1, "energy_j"] = before[:-1] + ("1" if before[-1] != "1" else "2")
    table.to_csv(other / "rounds.csv", index=False)
    found = compare_runs(one, other, "")
    assert (found.keys, found.files, found.first_round, found.same) == ((), (), 1, False)
    (rounds,) = found.tables
    assert (rounds.name, rounds.rows, rounds.of) == ("rounds", 1, 2)
    assert (rounds.first.place, rounds.first.column) == ("round 1", "energy_j")
    assert (float(rounds.first.a), float(rounds.first.b)) == (
        float(before),
        float(table.loc[1, "energy_j"]),
    )
    assert invoke(one, other).exit_code == 1


def test_a_key_without_effect_still_differs(two):
    one, other = two
    text = (other / "scenario.yaml").read_text()
    (other / "scenario.yaml").write_text(text.replace("bits_per_weight: 32", "bits_per_weight: 16"))
    found = compare_runs(one, other, "")
    assert (
        found.keys == (("accounting.bits_per_weight", "32", "16"),)
        and found.tables == ()
        and not found.same
    )


def test_device_and_phase_are_named(two):
    one, other = two
    spans = pd.read_parquet(one / "spans.parquet")
    at = spans.index[(spans["round"] == 1) & (spans["device"] == 2) & (spans["phase"] == "upload")][
        0
    ]
    spans.loc[at, "end_s"] += 1e-12
    spans.to_parquet(other / "spans.parquet")
    first = compare_runs(one, other, "").tables[0].first
    assert (first.round, first.place, first.column) == (1, "round 1, device 2, upload", "end_s")


def test_another_band_differs_in_its_key_and_from_the_first_round(real_runs):
    found = compare_runs(real_runs / "5MHz-s0", real_runs / "10MHz-s0", "")
    assert found.keys == (("network.bandwidth", "5 MHz", "10 MHz"),) and found.first_round == 0
    assert {table.name for table in found.tables} >= {"rounds", "device_rounds", "spans"}


def test_another_seed_is_a_key(real_runs):
    assert compare_runs(real_runs / "5MHz-s0", real_runs / "5MHz-s1", "").keys == (
        ("seed", "0", "1"),
    )


def test_runs_of_other_versions_are_compared_in_the_columns_they_share(two):
    one, other = two
    table = pd.read_csv(one / "rounds.csv", dtype=str, keep_default_na=False)
    table.drop(columns=["flops", "rho_max"]).to_csv(other / "rounds.csv", index=False)
    lines, same = compare(one, other)
    assert not same and "  table rounds: only the first run has rho_max, flops" in lines
    assert not any("rows differ" in line for line in lines)


def frame(**columns):
    return pd.DataFrame(columns)


def test_tables_by_hand():
    nan = np.nan
    a = frame(round=[0, 0, 1], device=[0, 1, 0], x=[1.0, nan, 3.0])
    assert compare_tables("t", a, a.copy()) is None  # nan equals nan
    found = compare_tables("t", a, a.assign(x=[1.0, 2.0, 4.0]))
    assert (found.rows, found.first.place, found.first.a, found.first.b) == (
        2,
        "round 0, device 1",
        "nan",
        "2.0",
    )
    shorter = compare_tables("t", a, a.iloc[:2])
    assert (shorter.rows, shorter.first.place, shorter.first.a, shorter.first.b) == (
        1, "round 1, device 0", "a row", "no row",
    )  # fmt: skip
    moved = compare_tables("t", a, a.assign(device=[0, 2, 0]))
    assert (moved.first.column, moved.first.a, moved.first.b) == (
        "",
        "round 0, device 1",
        "round 0, device 2",
    )


def test_whole_numbers_are_compared_as_numbers():
    assert compare_tables("t", frame(round=[0], x=[1]), frame(round=[0], x=[1.0])) is None


def test_folders_of_runs_by_scheme_and_seed(real_runs, tmp_path):
    runs = tmp_path / "runs"
    for name in ("5MHz-s0", "5MHz-s1"):
        shutil.copytree(real_runs / name, runs / "deeper" / name)
    result = invoke(runs, tmp_path / "runs")
    assert result.exit_code == 0 and result.stdout == "2 of 2 pairs of runs are equal.\n"
    assert set(named_runs(runs)) == {"tiny: fedavg, seed 0", "tiny: fedavg, seed 1"}
    other = shutil.copytree(runs, tmp_path / "other")
    shutil.rmtree(other / "deeper" / "5MHz-s1")
    lines, same = compare(runs, other)
    assert not same and lines == [
        f"only in {runs}: tiny: fedavg, seed 1",
        "1 of 1 pairs of runs are equal.",
    ]


def test_versions_of_equal_pairs_in_folders_are_said_once(real_runs, tmp_path):
    for name in ("5MHz-s0", "5MHz-s1"):
        shutil.copytree(real_runs / name, tmp_path / "same" / name)
        run = shutil.copytree(real_runs / name, tmp_path / "runs" / name)
        for digests in ("SHA256SUMS", "timing.json"):  # whose digest says that there were sums
            (run / digests).unlink()
        text = (run / "scenario.yaml").read_text()
        (run / "scenario.yaml").write_text(text.replace("  simpy: ", "  simpy: 1"))
    lines, same = compare(tmp_path / "runs", tmp_path / "same")
    said = [line for line in lines if line.startswith("version of simpy: 1")]
    assert len(said) == 1 and said[0].endswith(" in 2 equal pairs") and same
    assert lines[-1] == "2 of 2 pairs of runs are equal."


def test_folders_with_other_seeds_are_matched_without_them(real_runs, tmp_path):
    for seed in (0, 1):
        shutil.copytree(real_runs / f"5MHz-s{seed}", tmp_path / str(seed) / "run")
    lines, same = compare(tmp_path / "0", tmp_path / "1")
    assert not same and "  key seed: 0 | 1" in lines


@pytest.mark.slow
def test_sweeps_are_matched_by_their_points(real_runs, tmp_path):
    """The folders' names do not matter: another version names them otherwise."""
    for place, prefix in (("a", "x"), ("b", "y")):
        listed = []
        for band in (5, 10):
            folder = f"points/{prefix}{band}"
            shutil.copytree(real_runs / f"{band}MHz-s0", tmp_path / place / folder)
            values = {"network.bandwidth": f"{band}MHz"}
            listed.append(
                {"folder": folder, "label": "fedavg", "values": values, "seed": 0, "status": "done"}
            )
        (tmp_path / place / "sweep.json").write_text(json.dumps({"points": listed, "linked": []}))
    assert list(named_runs(tmp_path / "a")) == [
        f"fedavg: network.bandwidth={band}MHz, seed 0" for band in (10, 5)
    ]
    lines, same = compare(tmp_path / "a", tmp_path / "b")
    assert same and lines == ["2 of 2 pairs of runs are equal."]


def test_a_sweep_beside_runs_is_matched_by_scenario_scheme_and_seed(real_runs, tmp_path):
    """A run of its own has no point: it matched nothing, though labels and values are equal."""
    listed = []
    for seed in (0, 1):
        shutil.copytree(real_runs / f"5MHz-s{seed}", tmp_path / "sweep" / f"points/{seed}")
        shutil.copytree(real_runs / f"5MHz-s{seed}", tmp_path / "runs" / f"run{seed}")
        listed.append({"folder": f"points/{seed}", "label": None, "values": {}, "seed": seed})
    (tmp_path / "sweep" / "sweep.json").write_text(json.dumps({"points": listed, "linked": []}))
    lines, same = compare(tmp_path / "sweep", tmp_path / "runs")
    assert same and lines == ["2 of 2 pairs of runs are equal."]
    shutil.rmtree(tmp_path / "runs" / "run0")
    shutil.rmtree(tmp_path / "sweep" / "points" / "1")
    lines, same = compare(tmp_path / "sweep", tmp_path / "runs")
    assert not same and "  key seed: 0 | 1" in lines


def test_bad_input_is_one_sentence(real_runs, tmp_path):
    (tmp_path / "empty").mkdir()
    run = real_runs / "5MHz-s0"
    broken = shutil.copytree(run, tmp_path / "broken")
    (broken / "spans.parquet").write_bytes((run / "spans.parquet").read_bytes()[:200])
    for a, b, sentence in (
        (run, real_runs, "runs a folder with 4;"),
        (run, tmp_path / "nowhere", "is not a folder"),
        (tmp_path / "empty", real_runs, "No runs found in"),
        (run, broken, "spans.parquet is damaged: its bytes do not match SHA256SUMS"),
    ):
        result = invoke(a, b)
        assert result.exit_code == 2 and sentence in result.stderr, (a, b, result.stderr)
        assert len(result.stderr.splitlines()) == 1
    with pytest.raises(ResultsError, match="no run in common"):
        named = tmp_path / "named"
        shutil.copytree(run, named / "run")
        for name in ("SHA256SUMS", "timing.json"):
            (named / "run" / name).unlink()
        summary = json.loads((named / "run" / "summary.json").read_text()) | {"scheme": "other"}
        (named / "run" / "summary.json").write_text(json.dumps(summary))
        compare(named, real_runs)


def test_long_values_of_a_key_show_where_they_differ():
    """The first 57 characters of two paths were the same text twice."""
    paths = [f"/home/somebody/{'a-long-name/' * 6}{name}.csv" for name in "ab"]
    found = RunComparison("", (("network.channel.trace", *paths),), (), (), ())
    (line,) = described(found)
    one, other = line.partition(": ")[2].split(" | ")
    assert one.endswith("/a.csv") and other.endswith("/b.csv") and len(one) == len(other) == 60
