"""Files that are read back: kinds, sizes and digests."""

import os

import numpy as np
import pytest

from fl.stored_files import (
    BLANK,
    DamagedFileError,
    check_seal,
    open_regular,
    read_regular,
    read_sealed_arrays,
    read_sealed_json,
    sealed,
    sealed_arrays,
)


def test_any_flipped_bit_of_sealed_bytes_is_noticed():
    raw = sealed(b'{"digest": "' + BLANK.encode() + b'", "rounds": 3}')
    check_seal(raw)
    for place in range(len(raw)):
        for bit in range(8):
            with pytest.raises(DamagedFileError):
                check_seal(raw[:place] + bytes([raw[place] ^ (1 << bit)]) + raw[place + 1 :])


def test_bytes_without_one_place_for_the_digest_are_not_sealed():
    for raw in (b"{}", (BLANK * 2).encode()):
        with pytest.raises(ValueError, match="blank digest once"):
            sealed(raw)


def test_arrays_come_back_with_their_facts(tmp_path):
    arrays = {"w": np.array([1.5, -2.0], np.float32), "mask": np.array([True, False])}
    path = tmp_path / "a.safetensors"
    path.write_bytes(sealed_arrays(arrays, {"g": 3}))
    assert path.read_bytes() == sealed_arrays(arrays, {"g": 3})
    back, facts = read_sealed_arrays(path)
    assert facts["g"] == 3 and back["w"].tolist() == [1.5, -2.0] and back["mask"].dtype == bool
    assert back["w"].flags.writeable


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
        "folder": "it is a folder, and only regular files are read",
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


def test_json_with_a_digest(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(sealed(b'{"digest": "' + BLANK.encode() + b'", "wall_s": 3}'))
    assert read_sealed_json(path)["wall_s"] == 3
    path.write_bytes(path.read_bytes().replace(b"3}", b"4}"))
    with pytest.raises(DamagedFileError, match="do not match their digest"):
        read_sealed_json(path)
