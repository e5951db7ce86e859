"""Readers of data files: IDX (MNIST, Fashion-MNIST), binary CIFAR-10 and CIFAR-100, text.

A check looks only at the header and the size, for .gz at the size in its trailer, so that it is
quick; a read checks again what it got. Errors name the file, the expected and the found bytes.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np

from fl.contracts import Array
from fl.errors import DataError
from fl.regular_files import MAX_DATA_BYTES, open_regular

PIXELS = 3 * 32 * 32  # of CIFAR: the red, green and blue planes
CIFAR_ROW = 1 + PIXELS  # one label byte in front
CIFAR100_ROW = 2 + PIXELS  # the coarse and the fine label in front


def find(
    folder: Path, name: str, otherwise: str = ", or unset both to fetch the data set from OpenML"
) -> Path:
    """The file of that name in the folder, plain or with .gz."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise DataError(
        f"{folder / name} is missing (also as .gz): put it there, or set EDGESIM_DATA or --data to "
        f'the folder that holds "{folder.name}"{otherwise}'
    )


def contents(path: Path, limit: int | None = None) -> bytes:
    """The first ``limit`` bytes of a file, unpacked where it ends in .gz.

    None: as many as its size or its trailer states, and one more, by which a longer file is seen.
    """
    try:
        limit = unpacked_bytes(path) + 1 if limit is None else limit
        with open_regular(path, MAX_DATA_BYTES) as file:
            return gzip.open(file).read(limit) if path.suffix == ".gz" else file.read(limit)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {str(error).rstrip('.')}") from error


def unpacked_bytes(path: Path) -> int:
    """Size of the contents; of a .gz as its trailer states it."""
    size = path.stat().st_size
    if path.suffix != ".gz":
        return size
    if size < 18:
        raise DataError(f"{path} is truncated: expected at least 18 bytes of gzip, found {size}")
    with open_regular(path) as file:
        file.seek(-4, 2)
        return struct.unpack("<I", file.read(4))[0]


def idx_shape(path: Path, dimensions: int) -> tuple[int, ...]:
    """Shape of an IDX file of unsigned bytes, after its magic number and size are checked."""
    header_bytes = 4 + 4 * dimensions
    header = contents(path, header_bytes)
    if len(header) < header_bytes:
        raise DataError(
            f"{path} is truncated: expected a header of {header_bytes} bytes, found {len(header)}"
        )
    magic, *shape = struct.unpack(f">{1 + dimensions}I", header)
    expected_magic = 0x0800 + dimensions
    if magic != expected_magic:
        raise DataError(
            f"{path} is no such IDX file: expected the magic number {expected_magic:#010x}, "
            f"found {magic:#010x}"
        )
    expected, found = header_bytes + prod(shape), unpacked_bytes(path)
    if found != expected:
        raise DataError(f"{path} is damaged: its header promises {expected} bytes, found {found}")
    return tuple(shape)


def read_idx(path: Path, dimensions: int) -> Array:
    """The array uint8 of an IDX file."""
    shape = idx_shape(path, dimensions)
    data = contents(path)[4 + 4 * dimensions :]
    if len(data) != prod(shape):
        raise DataError(
            f"{path} is damaged: expected {prod(shape)} bytes after its header, found {len(data)}"
        )
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)


def idx_pair(folder: Path, prefix: str) -> tuple[Path, Path]:
    """Checked files of images [N, 28, 28] and labels [N] of a part of MNIST or Fashion-MNIST."""
    images, labels = (
        find(folder, f"{prefix}-images-idx3-ubyte"),
        find(folder, f"{prefix}-labels-idx1-ubyte"),
    )
    shape, count = idx_shape(images, 3), idx_shape(labels, 1)
    if shape[1:] != (28, 28):
        raise DataError(f"{images} holds images of {shape[1]}x{shape[2]}; expected 28x28")
    if shape[:1] != count:
        raise DataError(f"{images} holds {shape[0]} images, but {labels} holds {count[0]} labels")
    if shape[0] == 0:
        raise DataError(f"{images} holds no image")
    return images, labels


def check_labels(labels: Array, path: Path, classes: int = 10) -> Array:
    """The labels as int64 [N]; DataError where one is out of range."""
    if labels.max() >= classes:
        raise DataError(
            f"{path} is damaged: expected labels from 0 to {classes - 1}, found {int(labels.max())}"
        )
    return labels.astype(np.int64)


def check_balance(source: Path, counts: Array, classes: Sequence[str]) -> None:
    """Of every class there are equally many pictures, as in each part of the official archives.

    Args:
        source: what was counted.
        counts: pictures of each class, int.
        classes: their names.

    Raises:
        DataError: some are missing.
    """
    few, many = int(counts.argmin()), int(counts.argmax())
    if counts[few] < counts[many]:
        raise DataError(
            f'{source} has {counts[few]} pictures of class "{classes[few]}" where '
            f'"{classes[many]}" has {counts[many]}: the archive is not unpacked completely'
        )


def check_cifar(train_from: Path, y_train: Array, test_from: Path, y_test: Array) -> None:
    """Training and test part of CIFAR have the same classes, and of each equally many pictures.

    Args:
        train_from: where the training labels stand.
        y_train: [N].
        test_from: where the test labels stand.
        y_test: [N].

    Raises:
        DataError: pictures are missing.
    """
    labels = np.union1d(y_train, y_test)
    for source, part in ((train_from, y_train), (test_from, y_test)):
        counts = np.bincount(part, minlength=labels[-1] + 1)[labels]
        check_balance(source, counts, [str(label) for label in labels])


def cifar_file(folder: Path, name: str, row: int = CIFAR_ROW, otherwise: str | None = None) -> Path:
    """File of one batch of the binary version of CIFAR, checked; ``row``: bytes of a picture."""
    path = find(folder, name) if otherwise is None else find(folder, name, otherwise)
    check_rows(path, unpacked_bytes(path), row)
    return path


def check_rows(path: Path, size: int, row: int) -> None:
    """DataError where a file of so many bytes is not made of rows of so many."""
    if size == 0 or size % row:
        raise DataError(f"{path} is damaged: expected a multiple of {row} bytes, found {size}")


def read_cifar(paths: list[Path]) -> tuple[Array, Array]:
    """Images uint8 [N, 3, 32, 32] and labels int64 [N] of the batches, in order."""
    images, labels = [], []
    for path in paths:
        data = np.frombuffer(contents(path), dtype=np.uint8)
        check_rows(path, data.size, CIFAR_ROW)
        rows = data.reshape(-1, CIFAR_ROW)
        labels.append(check_labels(rows[:, 0], path))
        images.append(rows[:, 1:].reshape(-1, 3, 32, 32))
    return np.concatenate(images), np.concatenate(labels)


def read_cifar100(path: Path) -> tuple[Array, Array, Array]:
    """Images uint8 [N, 3, 32, 32], fine labels int64 [N] and coarse labels int64 [N].

    Raises:
        DataError: a label is out of range, or a fine class lies in two coarse ones.
    """
    data = np.frombuffer(contents(path), dtype=np.uint8)
    check_rows(path, data.size, CIFAR100_ROW)
    rows = data.reshape(-1, CIFAR100_ROW)
    coarse, fine = check_labels(rows[:, 0], path, 20), check_labels(rows[:, 1], path, 100)
    pairs = np.unique(np.stack([fine, coarse]), axis=1)
    if len(np.unique(pairs[0])) < pairs.shape[1]:
        raise DataError(f"{path} is damaged: a fine label stands beside two coarse ones")
    return rows[:, 2:].reshape(-1, 3, 32, 32), fine, coarse


def text_file(folder: Path, name: str) -> Path:
    """File of a text, checked to be there and not empty."""
    path = find(folder, name, otherwise="")
    if unpacked_bytes(path) == 0:
        raise DataError(f"{path} is empty")
    return path
