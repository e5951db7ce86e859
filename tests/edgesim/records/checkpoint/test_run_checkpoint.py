"""The run folder: what survives a kill, and what is refused."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest

from edgesim.records.checkpoint.checkpoint_log import read_blocks
from edgesim.records.checkpoint.run_checkpoint import RunFolder
from edgesim.records.checkpoint.usable_folder import FolderError, refuse_unusable
from edgesim.records.run_tables.table_files import FILES

ROWS = {
    "rounds": {"round": [0], "time_s": [0.1]},
    "spans": {"round": [0, 0], "phase": ["upload", "idle"]},
}
NEXT = {
    "rounds": {"round": [1], "time_s": [0.30000000000000004]},
    "spans": {"round": [], "phase": []},
}
ARRAYS = {"w": np.array([1.5, -2.0], np.float32)}


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / "run", "abc")
    assert folder.open() is None
    yield folder
    folder.close()


def again(folder, fingerprint="abc"):
    """The next process: the one before has ended, however it ended."""
    folder.close()
    return RunFolder(folder.path, fingerprint)


def test_what_was_saved_comes_back_to_the_last_bit(folder):
    folder.save(0, 0.1, ARRAYS, {"state": {"g": 1}}, ROWS)
    folder.save(1, 0.30000000000000004, ARRAYS, {"state": {"g": 2}}, NEXT)
    saved = again(folder).open()
    assert (saved.g, saved.time_s, saved.facts["state"]) == (1, 0.30000000000000004, {"g": 2})
    assert saved.arrays["w"].tolist() == [1.5, -2.0]
    assert [block for block in saved.tables if "rounds" in block] == [
        {"rounds": ROWS["rounds"]},
        {"rounds": NEXT["rounds"]},
    ]


def test_tables_without_rows_take_no_room_in_the_log(folder):
    folder.save(0, 0.1, ARRAYS, {}, ROWS)
    size = folder.log_file.stat().st_size
    folder.save(1, 0.2, ARRAYS, {}, {"scores": {"round": [], "device": []}})
    assert folder.log_file.stat().st_size == size
    assert again(folder).open().g == 1


def test_a_kill_while_the_log_grows_loses_only_that_round(folder):
    folder.save(0, 0.1, ARRAYS, {}, ROWS)
    whole = folder.log_file.read_bytes()
    for tail in (b"\x00", whole[: len(whole) // 2], whole):
        folder.log_file.write_bytes(whole + tail)  # killed before the state file was replaced
        assert again(folder).open().g == 0
        assert folder.log_file.read_bytes() == whole


def test_a_kill_before_the_first_checkpoint_starts_afresh(folder):
    folder.log_file.write_bytes(b"half a block")
    assert again(folder).open() is None
    assert read_blocks(folder.log_file) == []


def test_another_run_is_not_overwritten(folder):
    folder.save(0, 0.1, ARRAYS, {}, ROWS)
    with pytest.raises(FolderError, match="holds another run; use --fresh"):
        again(folder, "other").open()
    assert again(folder).open().g == 0
    assert again(folder, "other").open(fresh=True) is None


def test_fresh_removes_every_table_that_a_run_can_have(folder):
    for name in FILES.values():
        (folder.path / name).write_text("of the run before")
    again(folder).open(fresh=True)
    assert not [name for name in FILES.values() if (folder.path / name).exists()]


def test_fresh_removes_nothing_that_is_not_ours(folder):
    (folder.path / "notes.txt").write_text("mine")
    folder.save(0, 0.1, ARRAYS, {}, ROWS)
    again(folder).open(fresh=True)
    assert (folder.path / "notes.txt").read_text() == "mine"


def test_a_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(FolderError, match="is not empty and holds no run"):
        RunFolder(tmp_path, "abc").open()
    with pytest.raises(FolderError, match="is a file"):
        RunFolder(tmp_path / "thesis.tex", "abc").open()


def test_a_damaged_checkpoint_is_said_not_used(folder):
    folder.save(0, 0.1, ARRAYS, {}, ROWS)
    content = folder.state_file.read_bytes()
    folder.state_file.write_bytes(content[:20])
    with pytest.raises(FolderError, match="checkpoint is damaged"):
        again(folder).open()
    folder.state_file.write_bytes(content)
    folder.log_file.write_bytes(folder.log_file.read_bytes()[:-8])  # shorter than the state says
    with pytest.raises(FolderError, match="checkpoint is damaged"):
        again(folder).open()


@pytest.mark.slow
def test_every_flipped_bit_of_the_last_state_is_noticed(folder):
    """Resumed from the state before it, with a warning; both damaged: refused."""
    folder.save(0, 0.1, ARRAYS, {}, ROWS)
    folder.save(1, 0.2, ARRAYS, {}, NEXT)
    folder.close()
    whole, log = folder.state_file.read_bytes(), folder.log_file.read_bytes()
    for place in range(len(whole)):
        folder.state_file.write_bytes(flipped(whole, place, place % 8))
        folder.log_file.write_bytes(log)
        reader = RunFolder(folder.path, "abc")
        saved = reader.open()
        reader.close()
        assert saved is not None and (saved.g, saved.is_older) == (0, True), place
        assert saved.warnings[0].startswith("the checkpoint was damaged (state.safetensors: ")
    folder.previous_file.write_bytes(flipped(folder.previous_file.read_bytes(), 40, 0))
    with pytest.raises(FolderError, match="checkpoint is damaged"):
        again(folder).open()


@pytest.mark.slow
def test_every_flipped_bit_of_the_log_is_noticed(folder):
    """Rows of the last round: the state before it does; rows of an earlier one: refused."""
    folder.save(0, 0.1, ARRAYS, {}, ROWS)
    first = folder.log_file.stat().st_size
    folder.save(1, 0.2, ARRAYS, {}, NEXT)
    folder.close()
    whole = folder.log_file.read_bytes()
    for place in range(0, len(whole), 7):
        folder.log_file.write_bytes(flipped(whole, place, place % 8))
        reader = RunFolder(folder.path, "abc")
        if place < first:
            with pytest.raises(FolderError, match="log do not match their digest"):
                reader.open()
        else:
            assert reader.open().g == 0
        reader.close()


def test_a_kill_between_the_two_names_of_a_state_takes_the_one_before_without_a_word(folder):
    folder.save(0, 0.1, ARRAYS, {}, ROWS)
    folder.save(1, 0.2, ARRAYS, {}, NEXT)
    folder.state_file.unlink()
    saved = again(folder).open()
    assert (saved.g, saved.warnings, saved.is_older) == (0, [], False)


def test_a_checkpoint_without_digests_is_refused(folder):
    """As versions before had them."""
    from safetensors.numpy import save

    facts = {"fingerprint": "abc", "g": 0, "time_s": 0.1, "log_bytes": 0}
    folder.state_file.write_bytes(save(ARRAYS, metadata={"facts": json.dumps(facts)}))
    with pytest.raises(FolderError, match="was written before checkpoints had digests"):
        again(folder).open()


def flipped(content, place, bit):
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


def test_facts_are_json_and_no_pickle(folder):
    folder.save(0, 0.1, ARRAYS, {"state": {"g": 1}}, ROWS)
    head = folder.state_file.read_bytes()
    size = int.from_bytes(head[:8], "little")
    facts = json.loads(json.loads(head[8 : 8 + size])["__metadata__"]["facts"])
    assert facts["fingerprint"] == "abc"
    assert facts["log_bytes"] == folder.log_file.stat().st_size


@pytest.mark.parametrize("name", ["scenario.yaml", "checkpoint/precious", "rounds.csv"])
def test_files_of_the_users_with_our_names_make_no_run(tmp_path, name):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / name).write_text("mine")
    for fresh in (False, True):
        with pytest.raises(FolderError, match="is not empty and holds no run"):
            RunFolder(tmp_path, "abc").open(fresh)
    assert (tmp_path / name).read_text() == "mine"
    assert not (tmp_path / "checkpoint" / "log.arrows").exists()


def test_two_processes_do_not_write_one_run(folder):
    with pytest.raises(FolderError, match="another process is running in"):
        RunFolder(folder.path, "abc").open()
    assert again(folder).open() is None


@pytest.mark.parametrize("name", ["file/below", "/proc/none", "x" * 300])
def test_places_where_no_folder_can_be(tmp_path, name):
    (tmp_path / "file").write_text("x")
    with pytest.raises(FolderError, match=r"cannot be used|is a file"):
        RunFolder(tmp_path / name, "abc").open()


def test_what_a_kill_leaves_before_the_first_file_is_no_other_folder(tmp_path):
    """A sweep makes its folder of points and its lock before sweep.json."""
    sweep, lock = tmp_path / "sweep", tmp_path / "sweep" / "lock"
    (sweep / "points").mkdir(parents=True)
    lock.touch()
    refuse_unusable(sweep, "sweep", sweep / "sweep.json", lock)
    (sweep / "sweep.json.new").write_text("{")  # not yet renamed
    refuse_unusable(sweep, "sweep", sweep / "sweep.json", lock)
    lock.write_text("somebody's")
    with pytest.raises(FolderError, match="is not empty and holds no sweep"):
        refuse_unusable(sweep, "sweep", sweep / "sweep.json", lock)


@pytest.mark.parametrize("before", [None, [], ["scenario.yaml", "checkpoint/log.arrows"]])
def test_a_run_that_has_not_started_takes_away_what_it_made_and_nothing_else(tmp_path, before):
    """Where a run lay before, its scenario.yaml may be the file that this run was asked for."""
    path = tmp_path / "run"
    for name in before or ():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("")
    if before == []:
        path.mkdir()
    folder = RunFolder(path, "abc")
    folder.open()
    (path / "scenario.yaml").write_text("rounds: 1")
    folder.discard_unstarted()
    folder.close()
    assert path.exists() == (before is not None)
    assert (path / "scenario.yaml").exists() == (path / "checkpoint").exists() == bool(before)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_lock_that_is_no_file_is_refused_and_not_waited_for(tmp_path, kind):
    folder = RunFolder(tmp_path / "run", "abc")
    folder.lock_file.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(folder.lock_file)
    else:
        folder.lock_file.symlink_to(tmp_path / "made")
    folder.log_file.touch()
    with pytest.raises(FolderError, match="its lock is no regular file"):
        folder.open()
    assert not (tmp_path / "made").exists()


def test_a_folder_that_is_gone_hides_no_error(folder):
    shutil.rmtree(folder.path)
    folder.discard_unstarted()
