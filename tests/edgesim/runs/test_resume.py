"""Runs that were killed, have ended, or are started afresh."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.errors import RunError, ScenarioError
from edgesim.records.checkpoint import large_arrays
from edgesim.records.checksums import damaged_files
from tests.edgesim.resumed_runs import KilledError, killed_after

ROOT = Path(__file__).parents[3]


COMMAND = (sys.executable, "-m", "edgesim", "run")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clock", "kills"),
    [("clock={mode: synchronous}", 2), ("clock={mode: buffered, buffer: 2}", 1)],
)
def test_promise_7_kill_dash_nine_and_the_same_command(tiny, tmp_path, bytes_of, clock, kills):
    """SIGKILL somewhere in a run, again and again; the same command ends with the bytes of an
    undisturbed run. With the second clock devices are at work in the middle of every version;
    `test_killed_by_signal` has more clocks.
    """
    options = ["rounds=30", "network.channel.fading={kind: rayleigh, coherence: 7 ms}", clock]
    options += ["allocation.solver=equal"] if "buffered" in clock else []
    whole = simulate(load(tiny, options), out=tmp_path / "whole")
    command = [*COMMAND, str(tiny), *options, "--out", str(tmp_path / "killed"), "--quiet"]
    state = tmp_path / "killed" / "checkpoint" / "state.safetensors"
    seen = 0
    for _ in range(kills):
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        begun = rounds_done(state)
        while process.poll() is None and rounds_done(state) < begun + 5:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        seen = rounds_done(state)
        assert begun < seen < 30
    assert not (tmp_path / "killed" / "summary.json").exists()
    simulate(load(tiny, options), out=tmp_path / "killed")
    assert bytes_of(tmp_path / "killed") == bytes_of(whole.folder)


def rounds_done(state: Path) -> int:
    """Rounds in the last checkpoint: read from the header that the run itself wrote."""
    try:
        head = state.read_bytes()
    except FileNotFoundError:
        return 0
    size = int.from_bytes(head[:8], "little")
    return json.loads(json.loads(head[8 : 8 + size])["__metadata__"]["facts"])["g"] + 1


@pytest.mark.slow
def test_a_finished_run_is_not_computed_again(tiny, tmp_path):
    out = tmp_path / "out"
    first = simulate(load(tiny), out=out)
    before = {path: os.stat(path).st_mtime_ns for path in out.rglob("*") if path.is_file()}
    again = simulate(load(tiny), out=out, progress=lambda event: pytest.fail("computed again"))
    assert again.summary == first.summary
    assert again.rounds.equals(first.rounds)
    assert {path: os.stat(path).st_mtime_ns for path in out.rglob("*") if path.is_file()} == before


def test_other_data_is_another_run(tiny, tmp_path):
    """The same scenario on data files that differ in one pixel is not taken for the finished run."""  # noqa: E501
    import struct

    folders = []
    for name, pixel in (("a", 0), ("b", 255)):
        folder = tmp_path / name / "mnist"
        folder.mkdir(parents=True)
        for part, count in (("train", 60), ("t10k", 20)):
            images = np.random.default_rng(0).integers(0, 255, (count, 28, 28), dtype=np.uint8)
            images[0, 0, 0] = pixel
            labels = np.arange(count, dtype=np.uint8) % 10
            (folder / f"{part}-images-idx3-ubyte").write_bytes(
                struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes()
            )
            (folder / f"{part}-labels-idx1-ubyte").write_bytes(
                struct.pack(">II", 2049, count) + labels.tobytes()
            )
        folders.append(folder.parent)
    options = [
        "learning.dataset=mnist",
        "learning.model=mlp",
        "learning.samples_per_device=none",
        "rounds=1",
    ]
    scenario = load(tiny, options)
    simulate(scenario, data=folders[0], out=tmp_path / "out")
    simulate(
        scenario,
        data=folders[0],
        out=tmp_path / "out",
        progress=lambda event: pytest.fail("computed again"),
    )
    with pytest.raises(RunError, match="holds another run"):
        simulate(scenario, data=folders[1], out=tmp_path / "out")


@pytest.mark.slow
def test_a_finished_folder_that_lost_a_file_gets_it_back(tiny, tmp_path, bytes_of):
    out = tmp_path / "out"
    simulate(load(tiny), out=out)
    before = bytes_of(out)
    (out / "spans.parquet").unlink()
    (out / "model.safetensors").unlink()
    simulate(load(tiny), out=out)
    assert bytes_of(out) == before


@pytest.mark.slow
def test_a_damaged_file_of_a_finished_run_is_written_again_and_summary_says_so(
    tiny, tmp_path, bytes_of
):
    out = tmp_path / "out"
    simulate(load(tiny), out=out)
    before = bytes_of(out)
    (out / "summary.json").write_text("{")
    table = bytearray((out / "spans.parquet").read_bytes())
    table[len(table) // 2] ^= 1
    (out / "spans.parquet").write_bytes(table)
    again = simulate(load(tiny), out=out)
    warning = "damaged files were written again: spans.parquet, summary.json"
    assert again.summary["warnings"] == [warning]
    after = bytes_of(out)
    assert json.loads(after.pop("summary.json"))["warnings"] == [warning]
    del before["summary.json"]
    assert after == before


@pytest.mark.slow
def test_a_damaged_checkpoint_goes_on_from_the_one_before_to_the_same_bytes(
    tiny, tmp_path, bytes_of
):
    """The last state is damaged, then the log after it: round 2 is computed again each time."""
    out = tmp_path / "out"
    simulate(load(tiny), out=out)
    before = bytes_of(out)
    del before["summary.json"]
    for name, reason in (
        ("state.safetensors", "its bytes do not match their digest"),
        ("log.arrows", "the bytes of its log do not match their digest"),
    ):
        file = out / "checkpoint" / name
        content = bytearray(file.read_bytes())
        content[-9] ^= 16
        file.write_bytes(content)
        again = simulate(load(tiny), out=out)
        warning = (
            f"the checkpoint was damaged (state.safetensors: {reason}); "
            "the run went on from the one before it, after round 1"
        )
        assert warning in again.summary["warnings"]
        after = bytes_of(out)
        assert warning in json.loads(after.pop("summary.json"))["warnings"]
        assert after == before


@pytest.mark.slow
def test_a_damaged_array_with_a_file_of_its_own_goes_on_to_the_same_bytes(
    tiny, tmp_path, bytes_of, monkeypatch
):
    """The states of rounds 0 and 2 have arrays-0; as if all arrays were large."""
    monkeypatch.setattr(large_arrays, "LARGE_BYTES", 1)
    out = tmp_path / "out"
    simulate(load(tiny, ["rounds=3"]), out=out)
    before = bytes_of(out)
    for file in (out / "checkpoint" / "arrays-0").iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    (out / "summary.json").unlink()
    again = simulate(load(tiny, ["rounds=3"]), out=out)
    assert "went on from the one before it, after round 1" in again.summary["warnings"][-1]
    after = bytes_of(out)
    assert before.pop("summary.json") != after.pop("summary.json")
    assert after == before


def test_a_run_that_is_killed_while_it_is_mended_has_no_digests_of_before(few, tmp_path):
    """They would be those of another scenario.yaml, where the git state has changed since."""
    out = tmp_path / "out"
    simulate(few(), out=out)
    state = out / "checkpoint" / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-9])
    with pytest.raises(KilledError):
        simulate(few(), out=out, progress=killed_after(2))
    assert not (out / "SHA256SUMS").exists()
    simulate(few(), out=out)
    assert damaged_files(out) == []


@pytest.mark.slow
@pytest.mark.parametrize("what", ["column", "state"])
def test_a_whole_checkpoint_of_another_version_is_refused(tiny, tmp_path, monkeypatch, what):
    """It lacks a column, or something of the state, that this version reads."""
    from edgesim.records.run_tables import table_columns

    simulate(load(tiny), out=tmp_path / "out")
    (tmp_path / "out" / "summary.json").unlink()
    if what == "column":
        monkeypatch.setitem(table_columns.SPANS, "antenna", int)
    else:
        patched = "edgesim.runs.play_rounds.restored_state"
        monkeypatch.setattr(patched, lambda setup, saved: saved.facts["momentum"])
    cure = r"use --fresh \(in Python fresh=True\) to start again"
    expected = f"is whole, but another version wrote it .*; {cure}"
    with pytest.raises(RunError, match=expected):
        simulate(load(tiny), out=tmp_path / "out")


@pytest.mark.slow
def test_fresh_keeps_a_finished_run_until_the_new_one_can_begin(tiny, tmp_path, bytes_of):
    out = tmp_path / "out"
    simulate(load(tiny), out=out)
    before = bytes_of(out)
    with pytest.raises(ScenarioError, match="torch cannot use"):
        simulate(load(tiny, ["learning.device=cuda:77"]), out=out, fresh=True)
    assert bytes_of(out) == before
    (out / "checkpoint" / "state.safetensors").unlink()
    simulate(load(tiny), out=out)
    assert bytes_of(out) == before
