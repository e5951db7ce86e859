"""Which files are read."""

import os

import pytest

from fl.regular_files import open_lock, open_regular, read_regular


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "large", "absent"])
def test_only_regular_files_of_a_limited_size_are_read(tmp_path, kind):
    path = tmp_path / "it"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "large":
        path.write_bytes(bytes(3000))
    reason = {
        "folder": "Is a directory",
        "pipe": "it is a pipe",
        "device": "it is a device",
        "large": "it has 2.93 KiB, more than the 2.734 KiB allowed",
        "absent": "No such file",
    }
    with pytest.raises(OSError, match=reason[kind]) as error:
        read_regular(path, 2800)
    assert error.value.filename in (path, str(path))


def test_a_link_to_a_regular_file_is_read(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"x"


def test_a_lock_is_made_and_opened_again(tmp_path):
    open_lock(tmp_path / "lock").close()
    (tmp_path / "lock").write_text("kept")
    open_lock(tmp_path / "lock").close()
    assert (tmp_path / "lock").read_text() == "kept"


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_lock_that_is_no_regular_file_is_refused_and_not_waited_for(tmp_path, kind):
    path = tmp_path / "lock"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "made")
    with pytest.raises(OSError, match="its lock is no regular file"):
        open_lock(path)
    assert not (tmp_path / "made").exists()
