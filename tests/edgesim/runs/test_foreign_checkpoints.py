"""Checkpoints that no run wrote, with digests of their own bytes: each is refused in a sentence."""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO

import numpy as np
import pytest

from edgesim import load, simulate
from edgesim.errors import RunError
from edgesim.records.checkpoint.checkpoint_log import read_blocks, write_block
from fl.stored_files import read_sealed_arrays, sealed_arrays
from tests.edgesim.resumed_runs import KilledError, killed_after


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda blocks: blocks[0]["rounds"].pop("time_s"), "no 'time_s'"),
        (
            lambda blocks: blocks[0]["rounds"].update(time_s=["soon"]),
            "could not convert string to float",
        ),
        (lambda blocks: blocks[0]["rounds"].update(round=[9]), "list index out of range"),
        (lambda blocks: blocks.clear(), "it has 0 of 3 rounds"),
    ],
)
def test_a_log_that_no_run_wrote_is_refused(few, tmp_path, change, reason):
    out = tmp_path / "out"
    simulate(few(), out=out)
    blocks = read_blocks(out / "checkpoint" / "log.arrows")
    change(blocks)
    log, state = BytesIO(), out / "checkpoint" / "state.safetensors"
    for block in blocks:
        write_block(log, block)
    arrays, facts = read_sealed_arrays(state)
    size, digest = len(log.getvalue()), sha256(log.getvalue()).hexdigest()
    (out / "checkpoint" / "log.arrows").write_bytes(log.getvalue())
    state.write_bytes(sealed_arrays(arrays, facts | {"log_bytes": size, "log_sha256": digest}))
    (out / "summary.json").unlink()
    with pytest.raises(RunError, match=f"another version wrote it .{reason}"):
        simulate(few(), out=out)


def killed_and_changed(scenario, out, change):
    """Kill a run after its first round, and change what its checkpoint holds."""
    with pytest.raises(KilledError):
        simulate(scenario, out=out, progress=killed_after(0))
    state = out / "checkpoint" / "state.safetensors"
    arrays, facts = read_sealed_arrays(state)
    change(arrays, facts)
    state.write_bytes(sealed_arrays(arrays, facts))


def refusal(scenario, out):
    with pytest.raises(RunError) as refused:
        simulate(scenario, out=out)
    return str(refused.value)


def with_jobs(change):
    return lambda arrays, facts: change(facts["at_work"])


JOBS = [
    (lambda record: record.pop("flights"), "no 'flights'"),
    (lambda record: record.update(jobs="many"), "invalid literal for int"),
    (lambda record: record.update(idle_since_s=[0.0]), "cannot reshape array of size 1"),
    (lambda record: record["flights"][0].update(base=7), "list index out of range"),
    (lambda record: record["flights"][0].update(dispatched_s=None), "not supported between"),
    (lambda record: record["flights"][0]["grant"].pop("share"), "missing 1 required"),
]


@pytest.mark.parametrize(("change", "reason"), JOBS)
@pytest.mark.parametrize(
    "clock",
    [
        ["clock={mode: asynchronous, in_flight: 3}"],
        ["clock={mode: buffered, buffer: 2}", "server={up: 1 h, repair: 1 s, save_every: 1}"],
    ],
)
def test_jobs_at_work_that_no_run_wrote_are_refused(few, tmp_path, clock, change, reason):
    """As columns, and played again by processes; they were tracebacks."""
    killed_and_changed(few(*clock), tmp_path / "out", with_jobs(change))
    said = refusal(few(*clock), tmp_path / "out")
    assert said.startswith("the checkpoint is whole, but another version wrote it (")
    assert reason in said


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"warnings": 5}, "damaged (state.safetensors: 'int' object is not iterable)"),
        ({"g": float("inf")}, "damaged (state.safetensors: cannot convert float infinity"),
        ({"time_s": -1.0}, "s, not at -1 s); use --fresh"),
    ],
)
def test_facts_that_no_run_wrote_are_refused(few, tmp_path, change, reason):
    killed_and_changed(few(), tmp_path / "out", lambda arrays, facts: facts.update(change))
    assert reason in refusal(few(), tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("w", lambda w: w[None], "the model w is [1, 6058] of torch.float32, not [6058] of real"),
        ("w", lambda w: w.astype(np.int32), "the model w is [6058] of torch.int32, not"),
        ("base/0", lambda w: w[:-1], "base/0 is [6057] of torch.float32, unlike the model"),
    ],
)
def test_models_of_another_shape_are_refused(tiny, tmp_path, name, change, reason):
    """They ended in an error of torch."""
    given = load(tiny, ["clock={mode: buffered, buffer: 2}", "allocation.solver=equal"])
    killed_and_changed(
        given, tmp_path / "out", lambda arrays, _: arrays.update({name: change(arrays[name])})
    )
    assert reason in refusal(given, tmp_path / "out")


@pytest.mark.slow
def test_detours_that_no_run_wrote_are_refused(tiny, tmp_path):
    killed_and_changed(load(tiny), tmp_path / "out", lambda _, facts: facts.update(detours=5))
    assert "another version wrote it ('int' object is not iterable)" in refusal(
        load(tiny), tmp_path / "out"
    )
