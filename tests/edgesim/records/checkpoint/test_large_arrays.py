"""Large arrays of a checkpoint: written once, in two copies, and never read damaged."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest

from edgesim.records.checkpoint import run_checkpoint
from edgesim.records.checkpoint.large_arrays import LARGE_BYTES, LargeArrays
from edgesim.records.checkpoint.run_checkpoint import RunFolder
from edgesim.records.checkpoint.usable_folder import FolderError
from edgesim.verification.check_result import FAILED
from edgesim.verification.stored_bytes import check_checkpoint
from fl.stored_files import DamagedFileError, read_sealed_arrays, sealed_arrays

SIZE = LARGE_BYTES // 4
ROWS = {"rounds": {"round": [0], "time_s": [0.1]}}


def models(*values):
    """A small array, and large ones of a value each."""
    large = {f"local/{k}": np.full(SIZE, v, np.float32) for k, v in enumerate(values)}
    return {"w": np.array([1.5], np.float32), **large}


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / "run", "abc")
    folder.open()
    yield folder
    folder.close()


def reopened(folder):
    """What the next process finds, and its folder."""
    folder.close()
    again = RunFolder(folder.path, "abc")
    return again, again.open()


def files(folder):
    """How many files each of the two folders has."""
    return [len(list(each.iterdir())) if each.exists() else 0 for each in folder.large.folders]


def values_of(saved):
    return [saved.arrays[f"local/{k}"][0] for k in range(len(saved.arrays) - 1)]


def test_what_was_saved_comes_back_and_can_be_changed(folder):
    folder.save(0, 0.1, models(1, 2), {}, ROWS)
    again, saved = reopened(folder)
    assert list(saved.arrays) == ["local/0", "local/1", "w"] and values_of(saved) == [1, 2]
    assert saved.arrays["local/0"].shape == (SIZE,) and saved.arrays["w"].tolist() == [1.5]
    saved.arrays["local/0"][0] = 7.0
    again.close()


def test_an_array_that_stays_the_same_is_not_written_again(folder):
    """One model of three is new in each round: the others stay where they lie."""
    for g in range(2):
        folder.save(g, 0.1, models(1, 2, 3 + g), {}, ROWS)
    assert files(folder) == [3, 3]
    places = {path: path.stat().st_ino for path in folder.large.folders[0].iterdir()}
    folder.save(2, 0.3, models(1, 2, 9), {}, ROWS)
    assert files(folder) == [3, 3]
    stayed = [
        path for path, place in places.items() if path.exists() and path.stat().st_ino == place
    ]
    assert len(stayed) == 2
    assert folder.state_file.stat().st_size < LARGE_BYTES


def test_equal_arrays_are_one_file(folder):
    folder.save(0, 0.1, models(4, 4, 4), {}, ROWS)
    assert files(folder) == [1, 0]
    assert values_of(reopened(folder)[1]) == [4, 4, 4]


@pytest.mark.parametrize("harm", ["flip", "remove"])
def test_a_damaged_array_takes_the_state_before(folder, harm):
    """Of an array that stayed the same each state has a copy; the next save mends it."""
    folder.save(0, 0.1, models(1, 2), {}, ROWS)
    folder.save(1, 0.2, models(1, 3), {}, ROWS)
    path = folder.large.folders[1] / digest_of(folder, "local/0")
    if harm == "flip":
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        said = "the bytes of its array local/0 do not match their digest"
    else:
        path.unlink()
        said = "its array local/0: No such file or directory"
    result, _ = check_checkpoint(folder.path)
    assert said in result.detail
    again, saved = reopened(folder)
    assert (saved.g, saved.is_older, values_of(saved)) == (0, True, [1, 2])
    assert saved.warnings[0].startswith(f"the checkpoint was damaged (state.safetensors: {said}")
    again.save(1, 0.2, models(1, 3), {}, ROWS)
    again, saved = reopened(again)
    assert (saved.g, saved.is_older, values_of(saved)) == (1, False, [1, 3])
    again.close()


def test_a_damaged_file_that_no_state_was_read_from_is_written_again(folder):
    """Files of the state before are not read where the last one is whole, and the next save finds
    them under the names of its own arrays; so it is with what a power loss left of a killed save.
    """
    folder.save(0, 0.1, models(1, 2), {}, ROWS)
    folder.save(1, 0.2, models(1, 3), {}, ROWS)
    for path in folder.large.folders[0].iterdir():
        path.write_bytes(b"")
    again, saved = reopened(folder)
    assert (saved.g, saved.warnings) == (1, [])
    again.save(2, 0.3, models(1, 2), {}, ROWS)
    assert check_checkpoint(folder.path)[0].detail == "whole after 3 rounds"
    again, saved = reopened(again)
    assert (saved.g, values_of(saved)) == (2, [1, 2])
    again.close()


def test_a_save_that_failed_can_be_made_again(folder, monkeypatch):
    """The disk is full where the state is written: it does not take the other state's folder."""
    folder.save(0, 0.1, models(1), {}, ROWS)
    folder.save(1, 0.2, models(2), {}, ROWS)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(run_checkpoint, "write_atomic", no_space)
        folder.save(2, 0.3, models(3), {}, ROWS)
    folder.save(2, 0.3, models(3), {}, ROWS)
    assert check_checkpoint(folder.path)[0].detail == "whole after 3 rounds"
    folder.state_file.unlink()
    again, saved = reopened(folder)
    assert (saved.g, values_of(saved)) == (1, [2])
    again.close()


def no_space(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_state_that_is_replaced_while_it_is_checked_is_not_called_damaged(folder, monkeypatch):
    """`edgesim verify` of a run in progress: the next save removes the arrays of the one before."""
    folder.save(0, 0.1, models(1), {}, ROWS)
    folder.save(1, 0.2, models(2), {}, ROWS)
    read = LargeArrays.read

    def slowly(large, index, turn):
        if turn == 0:  # of the state before
            folder.save(2, 0.3, models(3), {}, ROWS)
        return read(large, index, turn)

    monkeypatch.setattr(LargeArrays, "read", slowly)
    assert check_checkpoint(folder.path)[0].detail == "whole after 2 rounds"


@pytest.mark.parametrize("facts", [{"turn": 7}, {"large": [1]}, {"large": {"w": ["a" * 64]}}])
def test_a_state_that_no_run_wrote_is_refused(folder, facts):
    folder.save(0, 0.1, models(1), {}, ROWS)
    arrays, whole = read_sealed_arrays(folder.state_file)
    del whole["digest"]
    folder.state_file.write_bytes(sealed_arrays(arrays, whole | facts))
    assert check_checkpoint(folder.path)[0].outcome == FAILED
    with pytest.raises(FolderError, match="checkpoint is damaged"):
        reopened(folder)


def test_damage_in_both_states_is_refused(folder):
    folder.save(0, 0.1, models(1), {}, ROWS)
    folder.save(1, 0.2, models(1), {}, ROWS)
    for each in folder.large.folders:
        next(each.iterdir()).write_bytes(b"")
    with pytest.raises(FolderError, match=r"checkpoint is damaged \(state.safetensors: .*local/0"):
        reopened(folder)


def test_what_a_kill_leaves_behind_is_removed(folder):
    """Files of a round that was not finished, and half of one."""
    folder.save(0, 0.1, models(1), {}, ROWS)
    turn = folder.large.folders[1]
    turn.mkdir()
    (turn / ("a" * 64)).write_bytes(b"of a killed round")
    (turn / ("b" * 64 + ".new")).write_bytes(b"half")
    (turn / "notes.txt").write_text("mine")
    again, saved = reopened(folder)
    assert saved.g == 0
    again.save(1, 0.2, models(2), {}, ROWS)
    assert sorted(path.name for path in turn.iterdir()) == sorted(
        [digest_of(again, "local/0"), "notes.txt"]
    )
    again.close()


def test_fresh_removes_them(folder):
    folder.save(0, 0.1, models(1), {}, ROWS)
    folder.close()
    again = RunFolder(folder.path, "abc")
    assert again.open(fresh=True) is None
    assert not [each for each in again.large.folders if each.exists()]
    again.close()


def test_arrays_without_a_state_are_removed(folder):
    """A kill while --fresh removed the run before."""
    for g in range(2):
        folder.save(g, 0.1, models(1), {}, ROWS)
    folder.state_file.unlink()
    folder.previous_file.unlink()
    again, saved = reopened(folder)
    assert saved is None and not [each for each in again.large.folders if each.exists()]
    again.close()


def test_what_a_linked_folder_holds_stays(folder, tmp_path):
    """Caches of models name their files by digests, too."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / ("a" * 64)).write_text("mine")
    folder.large.folders[0].symlink_to(tmp_path / "blobs")
    folder.large.remove()
    assert (tmp_path / "blobs" / ("a" * 64)).read_text() == "mine"


def test_an_array_of_another_shape_is_not_read(folder):
    """Its digest is that of the bytes, and the state's own digest that of shape and dtype."""
    folder.save(0, 0.1, models(1), {}, ROWS)
    raw = folder.state_file.read_bytes()
    folder.state_file.write_bytes(raw.replace(str(SIZE).encode(), str(SIZE - 1).encode()))
    with pytest.raises(DamagedFileError, match="do not match their digest"):
        folder.read_state(folder.state_file)


def digest_of(folder, name):
    """Under which name the last state has an array."""
    head = folder.state_file.read_bytes()
    size = int.from_bytes(head[:8], "little")
    return json.loads(json.loads(head[8 : 8 + size])["__metadata__"]["facts"])["large"][name][0]
