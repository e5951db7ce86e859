"""Checkpoints that no run wrote, with digests of their own: each is one line of `verify`."""

import hashlib
import io

import pytest

from edgesim.records.checkpoint.checkpoint_log import read_blocks, write_block
from edgesim.verification.verify import verify
from fl.stored_files import read_sealed_arrays, sealed_arrays


def changed(folder, facts, log=None):
    """Write other facts and another log with their digests."""
    state = folder / "checkpoint" / "state.safetensors"
    arrays, known = read_sealed_arrays(state)
    if log is not None:
        (folder / "checkpoint" / "log.arrows").write_bytes(log)
        facts = {"log_bytes": len(log), "log_sha256": hashlib.sha256(log).hexdigest()} | facts
    state.write_bytes(sealed_arrays(arrays, known | facts))
    (folder / "checkpoint" / "previous-state.safetensors").unlink()


def wrong(folder):
    ((_, checks),) = verify([folder])
    return {check.name: check.detail for check in checks if check.outcome == "WRONG"}


@pytest.mark.parametrize("g", ["x", None, [1]])
def test_a_state_of_no_round(copied, g):
    changed(copied, {"g": g})
    assert list(wrong(copied)) == ["checkpoint"]


@pytest.mark.parametrize(
    ("column", "value"), [("time_s", None), ("time_s", ["soon"]), ("round", ["a"])]
)
def test_a_log_without_a_column_or_with_texts_for_numbers(copied, column, value):
    blocks = read_blocks(copied / "checkpoint" / "log.arrows")
    first = next(block["rounds"] for block in blocks if "rounds" in block)
    del first[column]
    first |= {} if value is None else {column: value}
    log = io.BytesIO()
    for block in blocks:
        write_block(log, block)
    changed(copied, {}, log.getvalue())
    assert list(wrong(copied)) == ["log and tables"]


def test_a_log_that_is_none(copied):
    changed(copied, {}, b"abc" * 100)
    assert "metadata bytes" in wrong(copied)["log and tables"]
