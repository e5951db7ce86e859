"""Partitions by client and by file: who holds what, and one sentence for every mistake."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from edgesim.seeds import Seeds
from fl.data.partitions.given_partitions import by_client, by_file, surplus_clients
from fl.data.partitions.partition import partition
from fl.errors import DataError

CLIENTS = np.array([2, 0, 0, 1, 2, 2])


def lists(parts):
    return [part.tolist() for part in parts]


def test_a_device_is_the_client_of_its_number_in_order_of_the_ids():
    train, test = by_client((CLIENTS, np.array([2, 0])), 3)
    assert lists(train) == [[1, 2], [3], [0, 4, 5]] and lists(test) == [[1], [], [0]]


def test_with_fewer_devices_the_largest_clients_take_part():
    train, test = by_client((CLIENTS, None), 2)
    assert lists(train) == [[1, 2], [0, 4, 5]] and test is None
    with pytest.raises(DataError, match="3 clients have training samples: too few for 4 devices"):
        by_client((CLIENTS, None), 4)
    with pytest.raises(DataError, match=r"^1 client has training samples: too few for 2 devices"):
        by_client((CLIENTS * 0, None), 2)
    with pytest.raises(DataError, match="does not say whose each sample is"):
        by_client(None, 2)


def test_test_samples_without_clients_follow_the_training_samples():
    """Client 0 has label 0 only, client 1 label 1 only: so have their test samples."""
    labels, clients = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    options = {"kind": "natural", "owners": (clients, None)}
    train, test = partition(labels, labels, 2, 2, Seeds(0), **options)
    assert lists(train) == [[0, 1], [2, 3]] and lists(test) == [[0, 1], [2, 3]]


def test_real_targets_are_divided_without_labels():
    targets = np.linspace(0, 1, 8, dtype=np.float32)[:, None]
    train, test = partition(targets, targets[:4], 0, 2, Seeds(0))
    assert list(map(len, train)) == [4, 4] and list(map(len, test)) == [2, 2]
    assert sorted(np.concatenate(train)) == list(range(8))
    with pytest.raises(DataError, match=r"divides by label.*use iid, natural or file"):
        partition(targets, targets, 0, 2, Seeds(0), kind="dirichlet", alpha=1.0)


def test_a_csv_file_assigns_samples(tmp_path):
    path = tmp_path / "split.csv"
    path.write_text("sample,device,part\n4,0,train\n1,1,train\n0,1,train\n2,1,test\n")
    train, test = by_file(path, (6, 3), 2)
    assert lists(train) == [[4], [0, 1]] and lists(test) == [[], [2]]
    path.write_text("sample,device\n4,0\n1,1\n")
    assert by_file(path, (6, 3), 2)[1] is None


def test_an_npz_file_assigns_samples(tmp_path):
    np.savez(tmp_path / "split.npz", train=np.array([1, -1, 0]))
    train, test = by_file(tmp_path / "split.npz", (3, 3), 2)
    assert lists(train) == [[2], [0]] and test is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", r"split.csv:1: is ; write sample,device"),
        ("0,1\n", r"split.csv:1: is 0,1; write sample,device"),
        ("sample,device\n0,0\n0,1\n", "split.csv:3: sample 0 of train is named twice"),
        ("sample,device\n9,0\n", "split.csv:2: sample is 9; allowed are 0 to 3"),
        (
            f"sample,device\n{'9' * 5000},0\n",
            "split.csv:2: sample is 9999999999",
        ),
        ("sample,device\n0,x\n", "split.csv:2: device is x; allowed are 0 to 1"),
        ("sample,device\n0\n", "split.csv:2: is 0; write sample,device"),
        ("sample,device,part\n0,0,val\n", r"split.csv:2: is 0,0,val; write"),
        ("sample,device\n0,0\n", "gives device 1 no training sample"),
    ],
)
def test_what_is_wrong_in_a_csv_file_has_its_line(tmp_path, text, sentence):
    path = tmp_path / "split.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=sentence):
        by_file(path, (4, 4), 2)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"test": np.zeros(4, int)}, "has test; it needs train, and if wanted test"),
        ({"train": np.zeros(3, int)}, r"train is int64 \[3\]; the device of each sample is int"),
        ({"train": np.array([0, 1, 2, 0])}, "train names device 2; there are 0 to 1"),
        ({"train": np.array([0, 1, -2, 0])}, "train names device -2"),
    ],
)
def test_what_is_wrong_in_an_npz_file_is_one_sentence(tmp_path, arrays, sentence):
    np.savez(tmp_path / "split.npz", **arrays)
    with pytest.raises(DataError, match=sentence):
        by_file(tmp_path / "split.npz", (4, 4), 2)


def test_an_npz_file_that_is_none_or_promises_too_much_is_one_sentence(tmp_path):
    path = tmp_path / "split.npz"
    with open(path, "wb") as file:  # a bare array
        np.save(file, np.zeros(4, int))
    with pytest.raises(DataError, match=r"split.npz cannot be read: it is no archive of arrays"):
        by_file(path, (4, 4), 2)
    header = io.BytesIO()
    promised = {"descr": "<i8", "fortran_order": False, "shape": (1 << 50,)}
    np.lib.format.write_array_header_1_0(header, promised)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train.npy", header.getvalue())
    with pytest.raises(DataError, match=r"split.npz cannot be read: Unable to allocate 8.00 PiB"):
        by_file(path, (4, 4), 2)


def test_clients_without_a_device_are_named():
    """Clients 0 to 3 hold 1, 3, 2 and 1 of seven samples; client 4 holds none."""
    train = np.array([0, 1, 1, 1, 2, 2, 3])
    assert surplus_clients(train, 4) is None
    sentence = surplus_clients(train, 2)
    assert sentence.startswith("2 of 4 clients take part, those with most samples: 2 with 2 of 7 ")
