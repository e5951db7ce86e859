"""`edgesim verify` on whole, unsealed, unfinished and changed folders."""

import hashlib
import json
import re
import shutil

import pandas as pd
import pytest
from typer.testing import CliRunner

import edgesim
from edgesim.cli.app import app
from edgesim.records.checksums import SUMS
from edgesim.tables.table_reading import read_event_log
from edgesim.verification.check_result import FAILED, PASSED, SKIPPED
from edgesim.verification.verify import check_run, check_sweep


def invoke(*arguments):
    return CliRunner().invoke(app, ["verify", *map(str, arguments)])


def outcomes(folder):
    return {check.name: check.outcome for check in check_run(folder, None, False)}


def seal_again(folder, name):
    """As somebody would who changes a file and its digest, too."""
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    lines = (folder / SUMS).read_text().splitlines()
    changed = [f"{digest}  {name}" if line.endswith(f"  {name}") else line for line in lines]
    (folder / SUMS).write_text("\n".join(changed) + "\n")


@pytest.mark.slow
def test_a_whole_run_passes_every_check(static_run):
    assert set(outcomes(static_run).values()) == {PASSED}
    result = invoke(static_run)
    assert result.exit_code == 0
    assert "3 rounds planned again" in result.stdout
    assert "9 uploads within 1e-09" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 run: 0 wrong, 0 not checked in full"
    assert result.stdout.splitlines()[0] == str(static_run)  # in one line, however long
    assert all(line == line.rstrip() for line in result.stdout.splitlines())
    assert re.search(r"^  files +ok \d+ digests$", result.stdout, re.MULTILINE)


@pytest.mark.slow
def test_the_end_counts_runs_and_the_advice_is_given_once(static_run, tmp_path):
    """Two runs with code of the user's own, of which two checks cannot be made for one reason."""
    for name in ("a", "b", "c"):
        shutil.copytree(static_run, tmp_path / name)
    for name in ("a", "b"):
        text = (tmp_path / name / "scenario.yaml").read_text()
        own = re.sub(r"solver: \S+", "solver: ./own.py:f", text, count=1)
        (tmp_path / name / "scenario.yaml").write_text(own)
        seal_again(tmp_path / name, "scenario.yaml")
    (tmp_path / "c" / "trace.json").write_text("{}")
    lines = invoke(tmp_path).stdout.splitlines()
    assert sum("--allow-code" in line for line in lines) == 1
    ended = [f"WRONG: {tmp_path}/c: files", "3 runs: 1 wrong, 2 not checked in full"]
    assert lines[-2:] == ended


@pytest.mark.parametrize(
    "name", ["trace.json", "model.safetensors", "summary.json", "timing.json", SUMS]
)
def test_one_flipped_bit_in_any_file_is_wrong(copied, name):
    content = bytearray((copied / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copied / name).write_bytes(content)
    assert outcomes(copied)["files"] == FAILED
    result = invoke(copied)
    assert result.exit_code == 1 and name in result.stdout


def test_a_flipped_bit_in_the_checkpoint_is_wrong(copied):
    for name in ("log.arrows", "previous-state.safetensors"):
        path = copied / "checkpoint" / name
        content = bytearray(path.read_bytes())
        content[-3] ^= 8
        path.write_bytes(content)
        assert outcomes(copied)["checkpoint"] == FAILED


def test_a_folder_without_digests_says_so(copied):
    (copied / SUMS).unlink()
    result = invoke(copied)
    assert result.exit_code == 1 and "SHA256SUMS is missing" in " ".join(result.stdout.split())
    (copied / "timing.json").unlink()
    result = invoke(copied)
    assert result.exit_code == 1
    assert "no digests: there is no SHA256SUMS" in result.stdout


@pytest.mark.parametrize(
    ("name", "column", "check"),
    [
        ("rounds.csv", "bits_up", "rounds"),
        ("rounds.csv", "energy_j", "rounds"),
        ("rounds.csv", "latency_s", "rounds"),
        ("rounds.csv", "late", "rounds"),
        ("spans.parquet", "energy_j", "device rounds"),
        ("spans.parquet", "bits", "device rounds"),
        ("device_rounds.parquet", "upload_s", "device rounds"),
    ],
)
def test_a_changed_table_with_a_new_digest_does_not_follow_from_the_others(
    copied, name, column, check
):
    table = read_event_log(copied)[name.partition(".")[0]]
    row = table[column].to_numpy().nonzero()[0][0] if table[column].any() else 0
    table.loc[row, column] += 1
    if name.endswith(".csv"):
        table.to_csv(copied / name, index=False)
    else:
        table.to_parquet(copied / name, index=False)
    seal_again(copied, name)
    found = outcomes(copied)
    assert found["files"] == PASSED and found["tables"] == PASSED
    assert found["log and tables"] == FAILED
    assert found[check] == FAILED


def test_a_changed_summary_with_a_new_digest_does_not_follow_from_the_rounds(copied):
    summary = json.loads((copied / "summary.json").read_text())
    summary["energy_j"] *= 1.001
    (copied / "summary.json").write_text(json.dumps(summary))
    seal_again(copied, "summary.json")
    found = outcomes(copied)
    assert found["files"] == PASSED and found["summary"] == FAILED


def test_an_unfinished_run_is_checked_as_far_as_it_is(static_scenario, tmp_path):
    class Stop(Exception):
        pass

    def stop(event):
        if event["kind"] == "round" and event["round"] == 1:
            raise Stop

    with pytest.raises(Stop):
        edgesim.simulate(edgesim.load(static_scenario), out=tmp_path / "run", progress=stop)
    result = invoke(tmp_path)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1:] == [
        "  checkpoint  ok          whole after 2 rounds",
        "  summary     not checked there is none: the run has not finished",
        "1 run: 0 wrong, 1 not checked in full",
    ]


@pytest.mark.slow
def test_a_sweep_with_its_points_and_their_table(static_scenario, tmp_path):
    command = ["sweep", str(static_scenario), "budget.latency_threshold=80ms,100ms"]
    options = ["--workers", "1", "--out", str(tmp_path / "s"), "--quiet"]
    assert CliRunner().invoke(app, [*command, *options]).exit_code == 0
    result = invoke(tmp_path / "s")
    assert result.exit_code == 0
    assert "2 of 2 points done" in result.stdout
    assert result.stdout.splitlines()[-1] == ("2 runs and 1 sweep: 0 wrong, 0 not checked in full")
    points = pd.read_parquet(tmp_path / "s" / "sweep.parquet")
    points.assign(energy_j=1.0).to_parquet(tmp_path / "s" / "sweep.parquet", index=False)
    assert [check.outcome for check in check_sweep(tmp_path / "s")] == [PASSED, FAILED]
    table = (tmp_path / "s" / "sweep.parquet").read_bytes()
    damaged = table.replace(b"pandas_type", b"qandas_type")  # pandas answers with a KeyError
    (tmp_path / "s" / "sweep.parquet").write_bytes(damaged)
    assert damaged != table
    assert [check.outcome for check in check_sweep(tmp_path / "s")] == [PASSED, FAILED]
    (tmp_path / "s" / "sweep.parquet").unlink()
    assert [check.outcome for check in check_sweep(tmp_path / "s")] == [PASSED, SKIPPED]
    listed = (tmp_path / "s" / "sweep.json").read_bytes()
    (tmp_path / "s" / "sweep.json").write_bytes(listed.replace(b'"seed": 0', b'"seed": 1'))
    assert [check.outcome for check in check_sweep(tmp_path / "s")] == [FAILED]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "swept", "today", "older", "wrong"),
    [  # -110 dBm is 1e-14 W, and -180 dBm/Hz is 1e-21 W/Hz, once in one column
        ("network.noise", "-110 dBm,-180 dBm/Hz", ["-110 dBm", "-180 dBm/Hz"], [1e-14, 1e-21],
         [1e-14, 1e-20]),
        ("evaluate.every", "60s,2min", [60.0, 120.0], ["60 s", "2 min"], ["60 s", "3 min"]),
    ],
)  # fmt: skip
def test_an_older_table_is_whole(static_scenario, tmp_path, key, swept, today, older, wrong):
    axis = f"{key}={swept}"
    options = ["rounds=1", "--workers", "1", "--out", str(tmp_path), "--quiet"]
    assert CliRunner().invoke(app, ["sweep", str(static_scenario), axis, *options]).exit_code == 0
    table = pd.read_parquet(tmp_path / "sweep.parquet")
    assert table[key].tolist() == today
    for values, outcome in ((older, PASSED), (wrong, FAILED)):
        table.assign(**{key: values}).to_parquet(tmp_path / "sweep.parquet", index=False)
        assert check_sweep(tmp_path)[-1].outcome == outcome


def test_a_place_without_runs_is_bad_input(tmp_path):
    result = invoke(tmp_path)
    assert result.exit_code == 2 and "No runs found in" in result.stderr
