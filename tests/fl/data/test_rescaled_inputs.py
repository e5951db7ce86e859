"""Scales of the pixels: by hand, and what is refused."""

import numpy as np
import pytest

from fl.data.datasets import load
from fl.data.samples import Samples, rescaled
from fl.errors import DataError


def pictures():
    """Two channels: 0 and 1 (mean 0.5, deviation 0.5), and 0.25 everywhere."""
    train = np.zeros((2, 2, 1, 1), dtype=np.float32)
    train[1, 0], train[:, 1] = 1.0, 0.25
    labels = np.array([0, 1])
    return Samples(labels, labels, lambda: (train, 0.5 * train), (2, 1, 1), ("a", "b"))


def test_standard_by_hand():
    """The test pictures are moved by the mean and deviation of the training pictures."""
    train, test = rescaled(pictures(), "standard").images()
    assert train[:, 0].ravel().tolist() == [-1.0, 1.0] and test[:, 0].ravel().tolist() == [
        -1.0,
        0.0,
    ]
    assert train[:, 1].ravel().tolist() == [0.0, 0.0]  # the same everywhere: not divided by 0
    assert train.dtype == np.float32


def test_bytes_and_unit():
    train, _ = rescaled(pictures(), "bytes").images()
    assert train[:, 0].ravel().tolist() == [0.0, 255.0]
    assert rescaled(same := pictures(), "unit") is same


def test_bytes_are_of_pictures_between_0_and_1():
    """Measurements have no bytes; multiplied by 255 they would be trained on without a word."""
    given = np.zeros((2, 3), dtype=np.float32)
    for x_train, x_test, found in ((given - 1.5, given, "x_train"), (given, given + 2, "x_test")):
        labels, images = np.zeros(2, dtype=int), (x_train, x_test)
        data = rescaled(Samples(labels, labels, lambda: images, (3,), ("a",)), "bytes")  # noqa: B023
        with pytest.raises(DataError, match=rf"^inputs is bytes, .* but {found} holds values from"):
            data.images()
    above = given + np.nextafter(np.float32(1), np.float32(2))  # by the rounding of a division
    rounded = rescaled(Samples(labels, labels, lambda: (above, above), (3,), ("a",)), "bytes")
    assert rounded.images()[0].max() == pytest.approx(255)


def test_the_digits_have_mean_zero_and_deviation_one():
    train, _ = rescaled(load("digits"), "standard").images()
    assert abs(train.mean()) < 1e-5 and abs(train.std() - 1) < 1e-4


def test_texts_have_no_scale():
    texts = Samples(np.zeros(1), np.zeros(1), lambda: None, (3,), ("a",), text=True)
    with pytest.raises(DataError, match="inputs is bytes, but texts have no scale"):
        rescaled(texts, "bytes")
