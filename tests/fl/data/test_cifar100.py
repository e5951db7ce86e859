"""CIFAR-100 on a generated miniature of the official layout, and what is refused."""

import numpy as np
import pytest

from fl.data.datasets import load, locate
from fl.errors import DataError


def rows(fine, coarse, seed):
    """Pictures with these labels: a coarse and a fine byte, then three planes."""
    pixels = np.random.default_rng(seed).integers(0, 256, (len(fine), 3072), dtype=np.uint8)
    labels = np.array([coarse, fine], dtype=np.uint8).T
    return np.concatenate([labels, pixels], axis=1)


@pytest.fixture
def small(tmp_path):
    """Two fine classes of one coarse class and one of another, two pictures each; one to test."""
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    train = rows([3, 3, 7, 99, 99, 7], [4, 4, 19, 4, 4, 19], 0)
    (folder / "train.bin").write_bytes(train.tobytes())
    (folder / "test.bin").write_bytes(rows([99, 7, 3], [4, 19, 4], 1).tobytes())
    (folder / "fine_label_names.txt").write_text("\n".join(f"c{i}" for i in range(100)) + "\n")
    return tmp_path, folder, train


def test_the_fine_label_is_the_second_byte(small):
    root, folder, train = small
    samples = load("cifar100", root)
    assert samples.y_train.tolist() == [3, 3, 7, 99, 99, 7]
    assert samples.classes[99] == "c99" and samples.input_shape == (3, 32, 32)
    x_train, x_test = samples.images()
    assert x_train.dtype == np.float32 and len(x_test) == 3
    assert (x_train[4, 1] * 255).round().astype(int).ravel().tolist() == train[
        4, 1026:2050
    ].tolist()
    assert locate("cifar100", root) == [folder / "train.bin", folder / "test.bin"]


def test_what_is_damaged_or_of_another_version_is_refused(small, tmp_path):
    root, folder, _ = small
    (folder / "test.bin").write_bytes(rows([3, 3], [4, 5], 2).tobytes())
    with pytest.raises(DataError, match="a fine label stands beside two coarse ones"):
        load("cifar100", root)
    (folder / "test.bin").write_bytes(rows([100], [4], 2).tobytes())
    with pytest.raises(DataError, match="expected labels from 0 to 99, found 100"):
        load("cifar100", root)
    (folder / "test.bin").write_bytes(b"x" * 3073)
    with pytest.raises(DataError, match="expected a multiple of 3074 bytes, found 3073"):
        load("cifar100", root)
    (folder / "test.bin").unlink()
    with pytest.raises(DataError, match=r"test\.bin is missing.*168,513,733 bytes"):
        load("cifar100", root)


def test_a_part_of_the_pictures_is_refused(small):
    """Every class has equally many, in training as in test: nothing less is a whole archive."""
    root, folder, train = small
    for rest, said in (
        (train[:-1], r'train\.bin has 1 pictures of class "7" where "3" has 2: .*not unpacked'),
        (train[:2], r'train\.bin has 0 pictures of class "7" where "3" has 2'),
    ):
        (folder / "train.bin").write_bytes(rest.tobytes())
        with pytest.raises(DataError, match=said):
            load("cifar100", root)
    (folder / "train.bin").write_bytes(train.tobytes())
    (folder / "test.bin").write_bytes(rows([3], [4], 1).tobytes())
    with pytest.raises(DataError, match=r'test\.bin has 0 pictures of class "7" where "3" has 1'):
        load("cifar100", root)


def test_pickles_are_refused_with_the_name_of_the_right_file(tmp_path):
    (tmp_path / "cifar-100-python").mkdir()
    with pytest.raises(DataError, match=r"holds pickles.*cifar-100-binary\.tar\.gz"):
        load("cifar100", tmp_path)
