"""Files with a digest of their own bytes."""

import numpy as np
import pytest

from fl.stored_files import (
    BLANK,
    DamagedFileError,
    check_seal,
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


def test_json_with_a_digest(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(sealed(b'{"digest": "' + BLANK.encode() + b'", "wall_s": 3}'))
    assert read_sealed_json(path)["wall_s"] == 3
    path.write_bytes(path.read_bytes().replace(b"3}", b"4}"))
    with pytest.raises(DamagedFileError, match="do not match their digest"):
        read_sealed_json(path)
