"""The log of a checkpoint in a folder of unknown origin."""

import hashlib
import os

import pytest

from edgesim.records.checkpoint.checkpoint_log import CheckpointLog
from fl.stored_files import DamagedFileError

ROWS = {"rounds": {"round": [0]}}


@pytest.fixture
def precious(tmp_path):
    path = tmp_path / "precious"
    path.write_text("mine")
    return path


def test_a_log_that_is_a_link_is_replaced_and_not_emptied(tmp_path, precious):
    (tmp_path / "log.arrows").symlink_to(precious)
    log = CheckpointLog(tmp_path / "log.arrows")
    log.clear()
    log.append(ROWS)
    assert precious.read_text() == "mine" and not log.path.is_symlink()


def test_nothing_is_cut_off_through_a_link(tmp_path, precious):
    """Of no bytes every file has the digest."""
    (tmp_path / "log.arrows").symlink_to(precious)
    facts = {"log_bytes": 0, "log_sha256": hashlib.sha256(b"").hexdigest()}
    with pytest.raises(DamagedFileError, match="its log is a link"):
        CheckpointLog(tmp_path / "log.arrows").restore(facts)
    assert precious.read_text() == "mine"


def test_a_pipe_in_place_of_the_log_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "log.arrows")
    log = CheckpointLog(tmp_path / "log.arrows")
    log.clear()
    assert log.restore(log.append(ROWS)) == [ROWS]
