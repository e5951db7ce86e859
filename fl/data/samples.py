"""Samples before and after their division among the devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fl.contracts import Array
from fl.errors import InputsError

ROUNDING = 1e-6  # of pictures in [0, 1]
IGNORED = -100  # a target that counts for nothing, torch's default
Images = Callable[[], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class Samples:
    """A data set before it is divided.

    Args:
        y_train: labels, int [N], of every step of a text int [N, T] with `IGNORED` where there is
            none; or real targets, float32 [N, outputs].
        y_test: the same.
        images: reads the images (train, test), float32 [N, *input_shape].
        input_shape: of one sample.
        classes: their names; empty where the targets are real numbers.
        owners: speaker or client of each sample (train, test), int [N]; test may be None. None:
            the data have none.
        text: samples are codes, int [T].
        clients: their ids, whole numbers or words, in the order of the numbers in ``owners``;
            None: they have only these numbers.
    """

    y_train: Array
    y_test: Array
    images: Images
    input_shape: tuple[int, ...]
    classes: tuple[str, ...]
    owners: tuple[Array, Array | None] | None = None
    text: bool = False
    clients: Array | None = None


@dataclass(frozen=True, eq=False)
class Federated:
    """A data set that is divided among K devices.

    Args:
        y_train: labels, int [N] or [N, T]; or real targets, float32 [N, outputs].
        y_test: the same.
        images: reads the images (train, test), float32 [N, *input_shape].
        input_shape: of one sample.
        train_index: per device the indices of its training samples, int.
        test_index: per device the indices of its test samples, int.
        classes: their names; empty where the targets are real numbers.
        text: samples are codes, int [T].
        validation_index: per device the indices of training samples that are held out from
            training, int; empty: nothing is held out.
        clients: per device the id of the client that it is [K]; None: devices are no clients.
    """

    y_train: Array
    y_test: Array
    images: Images
    input_shape: tuple[int, ...]
    train_index: list[Array]
    test_index: list[Array]
    classes: tuple[str, ...]
    text: bool = False
    validation_index: Sequence[Array] = ()
    clients: Array | None = None

    @property
    def outputs(self) -> int:
        """Values that a model gives for a sample: one per class, or one per real target."""
        return len(self.classes) or self.y_train.shape[1]

    @property
    def at_every_step(self) -> bool:
        """Has every step of a text a label of its own?"""
        return bool(self.classes) and self.y_train.ndim == 2

    @cached_property
    def test_weights(self) -> Array | None:
        """What a test sample weighs in a mean, [N]: its labels, where each has several."""
        return (self.y_test != IGNORED).sum(axis=1) if self.at_every_step else None

    @cached_property
    def _images(self) -> tuple[Array, Array]:
        return self.images()

    @property
    def x_train(self) -> Array:
        return self._images[0]

    @property
    def x_test(self) -> Array:
        return self._images[1]

    @cached_property
    def samples(self) -> Array:
        """Training samples of every device, D_k [K]."""
        return np.array([len(index) for index in self.train_index])

    @property
    def held_out(self) -> Federated | None:
        """The same devices, tested on the samples that they hold out; None where nobody does."""
        if not any(map(len, self.validation_index)):
            return None
        return replace(
            self,
            y_test=self.y_train,
            images=lambda: (self.x_train, self.x_train),
            test_index=list(self.validation_index),
            validation_index=(),
        )

    def label_counts(self) -> Array:
        """Training samples of every device and class [K, classes]; without one of each [K, 1]."""
        if not self.classes or self.at_every_step:
            return self.samples[:, None]
        size = len(self.classes)
        return np.stack(
            [np.bincount(self.y_train[index], minlength=size) for index in self.train_index]
        )


def to_unit(images: Array) -> Array:
    """Bytes to float32 in [0, 1]."""
    return images.astype(np.float32) / np.float32(255)


def to_bytes(images: Array, name: str) -> Array:
    """From [0, 1] to [0, 255], float32."""
    if images.min() < -ROUNDING or images.max() > 1 + ROUNDING:
        found = f"{name} holds values from {images.min():g} to {images.max():g}"
        problem = f"is bytes, which is for pictures in [0, 1], but {found}; remove it"
        raise InputsError("inputs", problem)
    return images * np.float32(255)


def rescaled(samples: Samples, inputs: str) -> Samples:
    """The same samples with their images, in [0, 1], on another scale.

    Args:
        samples: images.
        inputs: unit: as they are; standard: less the mean of each channel of the training images,
            divided by its standard deviation; bytes: times 255.

    Raises:
        InputsError: the samples are texts, which have no scale; with bytes, when the images are
            read, they are not in [0, 1].
    """
    if inputs == "unit":
        return samples
    if samples.text:
        raise InputsError("inputs", f"is {inputs}, but texts have no scale; remove it")

    def images() -> tuple[Array, Array]:
        train, test = samples.images()
        if inputs == "bytes":
            return to_bytes(train, "x_train"), to_bytes(test, "x_test")
        axes = (0, *range(2, train.ndim))
        mean = train.mean(axis=axes, keepdims=True, dtype=np.float64)
        deviation = train.std(axis=axes, keepdims=True, dtype=np.float64)
        deviation[deviation == 0] = 1.0  # a channel that is the same everywhere
        shift, scale = mean.astype(np.float32), deviation.astype(np.float32)
        return (train - shift) / scale, (test - shift) / scale

    return replace(samples, images=images)
