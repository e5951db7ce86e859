"""Data of the user's own: every form gives the same samples, and every mistake one sentence."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from fl.data.array_files import is_array_file, npz, read_array_files
from fl.data.given_arrays import NEEDED
from fl.data.own_data import own_arrays, own_samples
from fl.errors import DataError

GREY = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
MASKED = np.ma.masked_equal(np.arange(12.0).reshape(3, 4), 5.0)


def arrays(**changes):
    """Three training and two test samples of four numbers, of two classes and two clients."""
    x = np.arange(20, dtype=np.float64).reshape(5, 4)
    given = {"x_train": x[:3], "y_train": np.array([0, 1, 0]), "x_test": x[3:]}
    given |= {"y_test": np.array([1, 0]), "clients_train": np.array(["b", "a", "b"])}
    given |= changes
    return {name: value for name, value in given.items() if value is not None}


def folder_of(path, given):
    path.mkdir()
    for name, array in given.items():
        np.save(path / f"{name}.npy", array)
    return path


def same(one, other):
    pairs = zip(own_arrays(one).items(), own_arrays(other).items(), strict=True)
    return all(
        name == second and a.dtype == b.dtype and np.array_equal(a, b)
        for (name, a), (second, b) in pairs
    )


def test_every_form_gives_the_same_samples(tmp_path):
    given = arrays()
    samples = own_samples(given, "data")
    assert samples.input_shape == (4,) and samples.classes == ("0", "1") and not samples.text
    assert samples.images()[0].dtype == np.float32
    assert samples.owners[0].tolist() == [1, 0, 1] and samples.owners[1] is None  # b after a
    (tmp_path / "a.npz").write_bytes(npz(given))
    assert same(read_array_files(tmp_path / "a.npz"), samples)
    assert same(read_array_files(folder_of(tmp_path / "a", given)), samples)
    plain = own_samples(arrays(clients_train=None), "data")
    assert same(own_samples(tuple(given[name] for name in NEEDED), "data"), plain)
    tensors = [torch.from_numpy(given[name]) for name in NEEDED]
    train, test = TensorDataset(*tensors[:2]), TensorDataset(*tensors[2:])
    assert same(own_samples((train, test), "data"), plain)
    assert same(own_samples({"train": list(train), "test": list(test)}, "data"), plain)
    pairs = [(given[f"x_{part}"], given[f"y_{part}"]) for part in ("train", "test")]
    assert same(own_samples(tuple(pairs), "data"), plain)  # as Keras gives them


class Doubled(TensorDataset):
    def __getitem__(self, place):
        x, y = super().__getitem__(place)
        return 2 * x, y


class Shaped(Doubled):
    shape = (2, 3)  # of its items, or as a table has it


class Listed(list):
    """Items that have been read, beside tensors that they were made of."""

    tensors = (torch.zeros(9), torch.zeros(9))


def test_items_of_a_data_set_come_before_its_tensors():
    given = arrays(clients_train=None)
    x = [torch.from_numpy(given[name]) for name in ("x_train", "x_test")]
    y = [torch.from_numpy(given[name]) for name in ("y_train", "y_test")]
    pair = [Doubled(*tensors) for tensors in zip(x, y, strict=True)]
    twice = own_samples(given | {name: 2 * given[name] for name in ("x_train", "x_test")}, "data")
    assert same(own_samples(pair, "data"), twice)
    shaped = [Shaped(*tensors) for tensors in zip(x, y, strict=True)]
    assert same(own_samples(tuple(shaped), "data"), twice)
    assert same(own_samples([Listed(each) for each in pair], "data"), twice)


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        (2, ("0", "1")),
        (None, ("0", "1")),
        (["cat", "dog"], ("cat", "dog")),
        (np.array(["cat", "dog"]), ("cat", "dog")),
        ({"cat": 0, "dog": 1}, ("cat", "dog")),
    ],
)
def test_classes_of_a_data_set_may_be_names_or_their_number(classes, names):
    train = TensorDataset(torch.zeros(2, 4), torch.tensor([0, 1]))
    train.classes = classes
    assert own_samples((train, train), "data").classes == names


def test_words_of_clients_may_be_objects():
    """pandas holds words so."""
    words = np.array(["b", "a", "b"], dtype=object)
    assert same(own_samples(arrays(clients_train=words), "data"), own_samples(arrays(), "data"))
    with pytest.raises(DataError, match="clients_train is no array of numbers"):
        own_samples(arrays(clients_train=np.array(["b", None, "b"], dtype=object)), "data")


@pytest.mark.parametrize("kinds", [(np.uint64, np.int64), (np.int64, np.uint64)])
def test_large_ids_of_clients_are_told_apart(kinds):
    ids = np.array([2**53 + 1, 2**53, 2**53 + 2])
    given = arrays(clients_train=ids.astype(kinds[0]), clients_test=ids[:2].astype(kinds[1]))
    samples = own_samples(given, "data")
    assert samples.clients[samples.owners[1]].tolist() == [2**53 + 1, 2**53]
    strange = np.array([2**53, 2**53 + 3]).astype(kinds[1])
    with pytest.raises(DataError, match=rf"client {2**53 + 3} of clients_test has no training"):
        own_samples(given | {"clients_test": strange}, "data")


def test_ids_that_the_training_samples_cannot_have_are_strange():
    given = arrays(clients_train=np.array([0, 2**64 - 1, 1], np.uint64), clients_test=[0, -1])
    with pytest.raises(DataError, match="client -1 of clients_test has no training sample"):
        own_samples(given, "data")


def test_what_is_stored_is_read_back_as_the_same_data():
    samples = own_samples(arrays(classes=["cat", "dog"]), "data")
    assert same(own_samples(own_arrays(samples), "data"), samples)
    assert samples.classes == ("cat", "dog")
    assert npz(own_arrays(samples)) == npz(own_arrays(samples))


def test_bytes_are_pictures_and_other_whole_numbers_are_codes():
    grey = own_samples(arrays(x_train=GREY, x_test=GREY, y_train=[0, 1], clients_train=None), "d")
    assert grey.input_shape == (1, 3, 3) and not grey.text
    assert grey.images()[0].max() == np.float32(17 / 255)
    codes = GREY.reshape(2, 9).astype(np.int32)
    text = own_samples(arrays(x_train=codes, x_test=codes, y_train=[0, 1], clients_train=None), "d")
    assert text.text and text.images()[0].dtype == np.int64


def test_real_targets_have_no_classes():
    samples = own_samples(arrays(y_train=np.ones(3), y_test=np.zeros((2, 1))), "data")
    assert samples.classes == () and samples.y_train.shape == (3, 1)
    assert samples.y_train.dtype == np.float32


def test_the_classes_of_a_data_set_with_real_targets_are_not_the_users_words():
    """A data set of torchvision keeps them where its target_transform makes real numbers."""
    train = TensorDataset(torch.zeros(2, 4), torch.tensor([0.5, 1.5]))
    train.classes = ["cat", "dog"]
    assert own_samples((train, train), "data").classes == ()


def test_images_are_read_only_when_they_are_used(tmp_path):
    path = folder_of(tmp_path / "a", arrays(x_train=np.full((3, 4), np.nan)))
    samples = read_array_files(path)
    with pytest.raises(DataError, match=r"x_train: sample 0 holds a value that is not finite \(3"):
        samples.images()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"x_test": None}, "has no x_test; it needs x_train, y_train"),
        ({"clases": ["a"]}, "has clases, which is not known; did you mean classes?"),
        ({"y_train": [0, 1]}, "y_train has 2 rows, but x_train has 3 samples"),
        ({"y_train": [0, 1, -1]}, "y_train holds the label -1; labels count from 0"),
        ({"y_train": [[0], [1], [0]]}, r"y_train has shape \[3, 1\]; labels are \[N\]"),
        ({"y_train": ["a", "b", "c"]}, "y_train is of type <U1; give whole numbers"),
        ({"y_train": [0.5, 1.0, 2.0]}, "y_train is of type float64; give whole numbers"),
        ({"y_train": [0, 1, 99]}, "the label 99 is larger than the number of samples"),
        ({"classes": ["a"]}, "the label 1 has no name: classes has 1"),
        (
            {"classes": ["a", "b"], "y_train": [0.0, 1.0, 0.0], "y_test": [1.0, 0.0]},
            r"classes names labels, but y_train and y_test hold real targets; .*y\.astype\(int\)",
        ),
        ({"x_test": np.zeros((2, 5))}, r"samples of x_train are \(4,\), of x_test \(5,\)"),
        ({"x_train": [1.0, 2.0, 3.0]}, r"x_train has shape \[3\]; give \[N, ...\]"),
        ({"x_train": [[1], [1, 2]]}, "x_train is no array"),
        ({"x_train": np.zeros((3, 4), complex)}, "x_train is of type complex128; give numbers"),
        ({"x_train": MASKED}, r"x_train has masked values, .* x\.filled\(0\)"),
        ({"x_train": np.zeros((0, 4))}, "x_train holds no sample"),
        ({"x_train": np.zeros((3, 8, 8, 3), np.uint8)}, "with the channels last"),
        ({"clients_train": None, "clients_test": [1, 2]}, "has clients_test, but no clients_train"),
        ({"clients_test": ["a", "z"]}, "client z of clients_test has no training sample"),
        ({"clients_test": [1, 2]}, "clients_train holds words, clients_test whole numbers; give"),
        ({"clients_train": [0.5, 1, 1]}, "clients_train is float64"),
        ({"x_train": np.ones((3, 4), int)}, "x_train is int64 .*, x_test is float64 .*of one kind"),
        ({"x_train": np.ones((3, 4), np.uint8)}, "x_train is uint8 .*; give both of one kind"),
        ({"y_train": np.zeros((3, 0)), "y_test": np.zeros((2, 0))}, "which holds no target"),
    ],
)
def test_what_is_wrong_is_one_sentence(changes, sentence):
    with pytest.raises(DataError, match=rf"^mine\.npz.*{sentence}"):
        own_samples(arrays(**changes), "mine.npz")


@pytest.mark.parametrize("given", [5, None, (1, 2, 3), {"train": 5, "test": 5}, ([1], [2])])
def test_what_is_no_data_is_one_sentence(given):
    with pytest.raises(DataError, match="give"):
        own_samples(given, "data")


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"x": [1.0]}, "train is dict; give a data set with a length"),
        (SimpleNamespace(tensors=5), "train is SimpleNamespace; give a data set with a length"),
        ([], "train holds no sample"),
        (np.zeros((3, 4)), "train is one array, without labels or without test data; give a dict"),
        ([(1.0, 0), (2.0, 0, 7)], "item 1 has 3 parts, item 0 has 2; give .* throughout"),
        ([([1.0, 2.0], 0), ([1.0], 0)], "items have different shapes"),
        (TensorDataset(torch.zeros(3, 2)), "has 1 tensors"),
    ],
)
def test_data_sets_of_a_wrong_shape_are_one_sentence(part, sentence):
    with pytest.raises(DataError, match=sentence):
        own_samples((part, part), "data")


@pytest.mark.parametrize(
    "x", [torch.zeros(3, 4, dtype=torch.bfloat16), torch.zeros(3, 4).to_sparse()]
)
def test_tensors_that_numpy_does_not_have_are_one_sentence(x):
    with pytest.raises(DataError, match=r"x_train is no array \("):
        own_samples(arrays(x_train=x), "data")


def test_what_is_too_large_for_single_precision_is_not_finite():
    samples = own_samples(arrays(x_train=np.full((3, 4), 1e300)), "data")
    with pytest.raises(DataError, match="sample 0 holds a value that is not finite"):
        samples.images()


def test_negative_codes_are_refused():
    x = np.full((2, 3), -1)
    samples = own_samples(arrays(x_train=x, y_train=[0, 1], x_test=x, clients_train=None), "data")
    with pytest.raises(DataError, match="codes from 0 on; found -1"):
        samples.images()


def test_files_run_no_code_and_are_regular(tmp_path):
    path = folder_of(tmp_path / "a", arrays())
    np.save(path / "x_train.npy", np.array([{}, [], 1], dtype=object), allow_pickle=True)
    sentence = r"has the dtype object, .* could run code; save numbers, all rows .*, or words as x"
    with pytest.raises(DataError, match=sentence):
        read_array_files(path)
    with pytest.raises(DataError, match=r"without \.npy files; it needs x_train\.npy"):
        read_array_files(tmp_path)
    with pytest.raises(DataError, match="there is no file or folder"):
        read_array_files(tmp_path / "b.npz")
    (tmp_path / "b.npz").write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"is no \.npz file"):
        read_array_files(tmp_path / "b.npz")
    (path / "x_train.npy").write_bytes((path / "x_test.npy").read_bytes()[:-8])
    with pytest.raises(DataError, match=r"x_train cannot be read|2 samples"):
        read_array_files(path).images()


def test_a_flipped_bit_in_an_archive_is_noticed(tmp_path):
    path = tmp_path / "a.npz"
    content = bytearray(npz(arrays()))
    content[content.index(np.float64(19.0).tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="x_test cannot be read: Bad CRC"):
        read_array_files(path).images()


def test_names_of_files_are_told_from_names_of_data_sets():
    assert is_array_file("mine.npz") and is_array_file("./mine") and is_array_file("a/b")
    assert not is_array_file("digits") and not is_array_file("./mine.py:load")
