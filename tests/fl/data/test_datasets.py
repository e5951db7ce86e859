"""Readers on files that the tests write, whole and damaged; the digits; the real files where they
are.
"""

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from edgesim.seeds import Seeds
from fl.data import datasets as data
from fl.data import file_readers
from fl.data.datasets import load, locate, spread
from fl.errors import DataError

IMAGES = np.arange(12 * 784, dtype=np.uint32).astype(np.uint8).reshape(12, 28, 28)
LABELS = (np.arange(12) % 10).astype(np.uint8)


def idx_bytes(array, magic=None):
    return (
        struct.pack(f">{1 + array.ndim}I", magic or 0x0800 + array.ndim, *array.shape)
        + array.tobytes()
    )


@pytest.fixture(params=["plain", "gz"])
def mnist(request, tmp_path):
    """A folder with a small MNIST, and a function that overwrites one of its files."""

    def write(name, content, raw=False):
        path = tmp_path / "mnist" / (name + ".gz" * (request.param == "gz"))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if raw or request.param == "plain" else gzip.compress(content))
        return path

    for part, size in (("train", 12), ("t10k", 5)):
        write(f"{part}-images-idx3-ubyte", idx_bytes(IMAGES[:size]))
        write(f"{part}-labels-idx1-ubyte", idx_bytes(LABELS[:size]))
    return tmp_path, write


def test_idx_files_are_read(mnist):
    root, _ = mnist
    assert len(locate("mnist", root)) == 4
    samples = load("mnist", root)
    x_train, x_test = samples.images()
    assert x_train.shape == (12, 1, 28, 28)
    assert x_train.dtype == np.float32
    assert np.array_equal((x_train[:, 0] * 255).round(), IMAGES)
    assert np.array_equal(x_test, x_train[:5])
    assert samples.y_train.tolist() == LABELS.tolist()
    assert samples.y_test.tolist() == LABELS[:5].tolist()


def refused(root, said, dataset="mnist"):
    with pytest.raises(DataError, match=said) as by_locate:
        locate(dataset, root)
    with pytest.raises(DataError, match=said):
        load(dataset, root)
    assert "\n" not in str(by_locate.value)


def test_a_header_that_promises_more(mnist):
    root, write = mnist
    write("train-images-idx3-ubyte", idx_bytes(IMAGES)[:-100])
    refused(root, "train-images.* is damaged: its header promises 9424 bytes, found 9324")


def test_a_header_cut_off(mnist):
    root, write = mnist
    write("t10k-labels-idx1-ubyte", b"\0\0\x08")
    refused(root, "t10k-labels.*truncated: expected a header of 8 bytes, found 3")


def test_a_wrong_magic_number(mnist):
    root, write = mnist
    write("train-labels-idx1-ubyte", idx_bytes(LABELS, magic=0x0D01))
    refused(root, "expected the magic number 0x00000801, found 0x00000d01")


def test_labels_and_images_that_do_not_match(mnist):
    root, write = mnist
    write("train-labels-idx1-ubyte", idx_bytes(LABELS[:7]))
    refused(root, "12 images, but .* holds 7 labels")


def test_images_of_another_size(mnist):
    root, write = mnist
    write("t10k-images-idx3-ubyte", idx_bytes(IMAGES[:5, :8, :8].copy()))
    refused(root, "holds images of 8x8; expected 28x28")


def test_a_label_out_of_range(mnist):
    root, write = mnist
    write("t10k-labels-idx1-ubyte", idx_bytes(LABELS[:5] + np.uint8(9)))
    with pytest.raises(DataError, match="expected labels from 0 to 9, found 13"):
        load("mnist", root)


def test_a_missing_file_is_named_with_what_to_do(mnist):
    root, write = mnist
    write("train-images-idx3-ubyte", b"").unlink()
    refused(root, "train-images-idx3-ubyte is missing.*EDGESIM_DATA")


@pytest.mark.slow
def test_a_gz_unpacks_no_further_than_its_trailer_says(tmp_path):
    """64 MB of zeros behind a first member of eight bytes; the trailer is that of eight bytes."""
    path = tmp_path / "x.gz"
    zeros = gzip.compress(b"12345678") + gzip.compress(bytes(1 << 26))
    path.write_bytes(zeros[:-4] + (8).to_bytes(4, "little"))
    assert len(file_readers.contents(path)) == 9  # one more than the eight


def test_a_truncated_gz(mnist):
    root, write = mnist
    whole = gzip.compress(idx_bytes(IMAGES))
    path = write("train-images-idx3-ubyte", whole[: len(whole) // 2], raw=True)
    refused(root, "damaged|promises|cannot be read" if path.suffix == ".gz" else "magic")
    write("train-images-idx3-ubyte", b"\x1f\x8b\x08", raw=True)
    refused(root, "truncated|cannot be read")


def cifar_batches(folder):
    """Two pictures of each of five classes, in five batches of which none has all; one to test."""
    rng = np.random.default_rng(1)
    labels = {f"data_batch_{i}": [i, i % 5 + 1] for i in range(1, 6)} | {"test_batch": range(1, 6)}
    batches = {}
    for name, mine in labels.items():
        pixels = rng.integers(0, 256, (len(mine), 3072))
        batches[name] = np.column_stack([mine, pixels]).astype(np.uint8)
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.bin").write_bytes(batches[name].tobytes())
    return batches


@pytest.mark.parametrize("folder", ["cifar10", "cifar-10-batches-bin"])
def test_cifar_binary(tmp_path, folder):
    batches = cifar_batches(tmp_path / folder)
    assert len(locate("cifar10", tmp_path)) == 6
    samples = load("cifar10", tmp_path)
    x_train, x_test = samples.images()
    assert x_train.shape == (10, 3, 32, 32)
    assert x_test.shape == (5, 3, 32, 32)
    assert samples.y_train[2] == batches["data_batch_2"][0, 0]
    assert (
        round(float(x_train[2, 1, 0, 3]) * 255) == batches["data_batch_2"][0, 1 + 1024 + 3]
    )  # green, row 0, column 3
    path = tmp_path / folder / "data_batch_4.bin"
    path.write_bytes(path.read_bytes()[:-1])
    refused(
        tmp_path,
        r"data_batch_4.bin is damaged: expected a multiple of 3073 bytes, found 6145",
        "cifar10",
    )
    path.unlink()
    refused(tmp_path, "data_batch_4.bin is missing", "cifar10")


def test_cifar_without_a_picture_is_refused(tmp_path):
    """One of class 4 is gone: the batches are not balanced each, but together."""
    folder = tmp_path / "cifar10"
    fourth = cifar_batches(folder)["data_batch_4"]
    (folder / "data_batch_4.bin").write_bytes(fourth[1:].tobytes())
    with pytest.raises(DataError, match='cifar10 has 1 pictures of class "4" where "1" has 2: '):
        load("cifar10", tmp_path)


def test_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    samples = load("digits")
    x = np.concatenate(samples.images())
    assert x.shape == (1797, 1, 8, 8)
    assert len(samples.y_train) == 1438
    assert x.min() == 0
    assert x.max() == 1
    theirs = load_digits()
    ours = sorted(
        zip(
            (x * 16).reshape(1797, -1).tolist(),
            np.concatenate([samples.y_train, samples.y_test]),
            strict=True,
        )
    )
    assert ours == sorted(zip(theirs.data.tolist(), theirs.target, strict=True))


def test_the_test_digits_do_not_depend_on_the_seed():
    a, b = (spread(load("digits"), 3, Seeds(seed)) for seed in (0, 1))
    assert np.array_equal(a.x_test, b.x_test)
    assert not np.array_equal(a.train_index[0], b.train_index[0])


def test_label_counts():
    digits = spread(load("digits"), 5, Seeds(0), kind="labels", labels_per_device=2)
    assert digits.label_counts().shape == (5, 10)
    assert digits.label_counts().sum(axis=1).tolist() == digits.samples.tolist()
    assert ((digits.label_counts() > 0).sum(axis=1) == 2).all()


def test_unknown_data_set():
    with pytest.raises(DataError, match=r'no data set "minst".*did you mean "mnist"'):
        locate("minst")


def test_the_environment_names_the_root(mnist, monkeypatch):
    root, _ = mnist
    monkeypatch.setenv("EDGESIM_DATA", str(root))
    assert data.data_root(None) == root
    assert len(load("mnist").y_train) == 12


REAL = Path(os.environ.get("EDGESIM_DATA", ""))


@pytest.mark.slow
@pytest.mark.needs_data
@pytest.mark.parametrize("dataset", ["mnist", "fashion-mnist"])
def test_the_real_files(dataset):
    if not os.environ.get("EDGESIM_DATA") or not (REAL / dataset).is_dir():
        pytest.skip(f"EDGESIM_DATA is unset or has no folder {dataset}")
    locate(dataset)
    samples = load(dataset)
    assert (
        samples.y_train[:5].tolist()
        == {"mnist": [5, 0, 4, 1, 9], "fashion-mnist": [9, 0, 0, 3, 0]}[dataset]
    )
    assert (len(samples.y_train), len(samples.y_test)) == (60_000, 10_000)
    x_train, x_test = samples.images()
    assert x_train.shape == (60_000, 1, 28, 28)
    assert abs(float(x_test.mean()) - {"mnist": 0.1325, "fashion-mnist": 0.2868}[dataset]) < 1e-4
