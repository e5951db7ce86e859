"""Archives of arrays that cannot be unpacked."""

import pickle
import zipfile

import numpy as np
import pytest

from fl.data.array_files import read_array_files
from fl.data.partitions.given_partitions import owners_of_npz
from fl.errors import DataError

ARRAYS = {
    "x_train": np.ones((4, 2), np.float32),
    "y_train": np.array([0, 1, 0, 1]),
    "x_test": np.ones((2, 2), np.float32),
    "y_test": np.array([0, 1]),
}


def encrypted(path):
    """Say in every head of the archive that its content is encrypted."""
    content = bytearray(path.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(mark)
        while place >= 0:
            content[place + flags] |= 1
            place = content.find(mark, place + 4)
    path.write_bytes(content)


def unknown(path):
    """Say that it is packed by a method that there is not."""
    content = bytearray(path.read_bytes())
    for mark, method in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = content.find(mark)
        while place >= 0:
            content[place + method] = 97
            place = content.find(mark, place + 4)
    path.write_bytes(content)


def packed_wrongly(path):
    content = bytearray(path.read_bytes())
    place = content.find(b"train.npy") + 30
    content[place : place + 20] = b"\xff" * 20
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "said"),
    [(encrypted, "is encrypted"), (unknown, "not supported"), (packed_wrongly, "decompressing")],
)
def test_an_archive_that_cannot_be_unpacked_is_one_sentence(tmp_path, harm, said):
    path = tmp_path / "it.npz"
    np.savez_compressed(path, **ARRAYS)
    harm(path)
    with pytest.raises(DataError, match=f"cannot be read: .*{said}"):
        read_array_files(path).images()
    np.savez_compressed(path, train=np.arange(500) % 5)
    harm(path)
    with pytest.raises(DataError, match=f"cannot be read: .*{said}"):
        owners_of_npz(path, (500, 0), 5)


def test_a_pickle_is_no_archive_and_nobody_is_advised_to_load_it(tmp_path):
    path = tmp_path / "it.npz"
    path.write_bytes(pickle.dumps({"train": [0, 1]}))
    assert not zipfile.is_zipfile(path)
    with pytest.raises(DataError, match=r"it.npz cannot be read: it is no archive of arrays$"):
        owners_of_npz(path, (2, 0), 2)
