"""Data sets of pictures: their files, found, checked and read.

Pictures are float32 in [0, 1], [N, channels, height, width]. Labels are read at once, pictures only
when they are used.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fl.contracts import Array
from fl.data import file_readers as files
from fl.data.array_files import read_array_files
from fl.data.samples import Samples, to_unit
from fl.errors import DataError

DIGITS = tuple("0123456789")
CLOTHES = (
    *("t-shirt", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)
CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def digits(root: Path | None) -> Samples:
    """Handwritten digits of scikit-learn, 1797 images of 8x8; 80 % train, whatever the seed."""
    table = digits_table()
    order = np.random.Generator(np.random.Philox(key=1797)).permutation(len(table))
    table, cut = table[order], round(0.8 * len(table))
    pixels = (table[:, :-1] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    labels = table[:, -1].astype(np.int64)
    return Samples(
        labels[:cut], labels[cut:], lambda: (pixels[:cut], pixels[cut:]), (1, 8, 8), DIGITS
    )


@cache
def digits_table() -> Array:
    """Pixels 0 to 16 and label, [1797, 65]."""
    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise DataError(
            "the digits come with scikit-learn, which is not installed: pip install scikit-learn"
        )
    # Scikit-learn's own file is read directly: importing the library takes a second.
    path = Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"
    if path.is_file():
        with gzip.open(path, "rt") as file:
            return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return np.column_stack([bunch.data, bunch.target])


def idx(folder: str, openml: str, classes: tuple[str, ...]) -> Callable[[Path | None], Samples]:
    """Loader of MNIST or Fashion-MNIST: the four IDX files in ROOT/folder, plain or .gz."""

    def load(root: Path | None) -> Samples:
        if root is None:
            return from_openml(openml, 60_000, (1, 28, 28), classes)
        (x_train, y_train), (x_test, y_test) = (
            files.idx_pair(root / folder, part) for part in ("train", "t10k")
        )

        def images() -> tuple[Array, Array]:
            train, test = (to_unit(files.read_idx(path, 3))[:, None] for path in (x_train, x_test))
            return train, test

        train, test = (files.check_labels(files.read_idx(y, 1), y) for y in (y_train, y_test))
        return Samples(train, test, images, (1, 28, 28), classes)

    return load


def cifar_paths(root: Path) -> list[Path]:
    """The five training batches and the test batch, checked."""
    folders = root / "cifar10", root / "cifar-10-batches-bin"
    folder = next((f for f in folders if any(f.glob("*_batch*.bin*"))), folders[1])
    return [
        files.cifar_file(folder, f"{name}.bin")
        for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
    ]


def cifar10(root: Path | None) -> Samples:
    """CIFAR-10 in its binary version, in ROOT/cifar10 or ROOT/cifar-10-batches-bin."""
    if root is None:
        return from_openml("CIFAR_10", 50_000, (3, 32, 32), CIFAR)
    *train, test = cifar_paths(root)
    x_train, y_train = files.read_cifar(train)
    x_test, y_test = files.read_cifar([test])
    files.check_cifar(test.parent, y_train, test, y_test)  # in sum: no batch alone is balanced
    return Samples(y_train, y_test, lambda: (to_unit(x_train), to_unit(x_test)), (3, 32, 32), CIFAR)


def cifar100_paths(root: Path | None) -> list[Path]:
    """train.bin and test.bin of CIFAR-100, checked; the pickles of its Python version are refused.

    Raises:
        DataError: they are not there, or of a wrong size.
    """
    official = (
        "it is cifar-100-binary.tar.gz (168,513,733 bytes, md5 03b5dce01913d631647c71ecec9e9cb8) "
        "of https://www.cs.toronto.edu/~kriz/cifar.html"
    )
    if root is None:
        raise DataError(
            "data set cifar100 is not here: set EDGESIM_DATA or --data to a folder with "
            f"cifar-100-binary/train.bin and test.bin; {official}"
        )
    folders = root / "cifar100", root / "cifar-100-binary"
    folder = next((f for f in folders if any(f.glob("train.bin*"))), folders[1])
    if not folder.exists() and (root / "cifar-100-python").exists():
        raise DataError(
            f"{root / 'cifar-100-python'} holds pickles, which are not read: unpack the binary "
            f"version beside it; {official}"
        )
    otherwise = f"; {official}"
    return [
        files.cifar_file(folder, f"{part}.bin", files.CIFAR100_ROW, otherwise)
        for part in ("train", "test")
    ]


def cifar100(root: Path | None) -> Samples:
    """CIFAR-100 in its binary version, in ROOT/cifar100 or ROOT/cifar-100-binary; fine labels."""
    train, test = cifar100_paths(root)
    (x_train, y_train, _), (x_test, y_test, _) = map(files.read_cifar100, (train, test))
    files.check_cifar(train, y_train, test, y_test)
    names = train.parent / "fine_label_names.txt"
    classes = tuple(map(str, range(100)))
    if names.is_file():
        classes = tuple(files.contents(names).decode("ascii", "replace").split())
        if len(classes) != 100:
            raise DataError(f"{names} has {len(classes)} names; expected 100")
    images = lambda: (to_unit(x_train), to_unit(x_test))  # noqa: E731
    return Samples(y_train, y_test, images, (3, 32, 32), classes)


@dataclass(frozen=True)
class DecodedPictures:
    """A set of picture files, decoded once into arrays: ROOT/folder/*.npy.

    Args:
        folder: below the root.
        official: the archive, its bytes and its md5.
        source: the folder that the archive unpacks to.
    """

    folder: str
    official: str
    source: str

    def path(self, root: Path | None) -> Path:
        """The folder of the arrays.

        Raises:
            DataError: it is not there.
        """
        how = (
            f"unpack {self.official} and run: python -m fl.data.decode_pictures {self.source} "
            f"ROOT/{self.folder}"
        )
        if root is None:
            raise DataError(
                f"data set {self.folder} is not here: set EDGESIM_DATA or --data to a folder ROOT "
                f"with {self.folder}/x_train.npy; {how}"
            )
        if not (root / self.folder / "x_train.npy").is_file():
            raise DataError(f"{root / self.folder / 'x_train.npy'} is missing: {how}")
        return root / self.folder

    def __call__(self, root: Path | None) -> Samples:
        return read_array_files(self.path(root))


TINY_IMAGENET = DecodedPictures(
    "tiny-imagenet",
    "tiny-imagenet-200.zip (248,100,043 bytes, md5 90528d7ca1a48142e341f4ef8d21d0de)",
    "tiny-imagenet-200",
)
CINIC10 = DecodedPictures(
    "cinic10",
    "CINIC-10.tar.gz (687,544,992 bytes, md5 6ee4d0c996905fe93221de577967a372)",
    "CINIC-10",
)


def from_openml(name: str, train: int, shape: tuple[int, ...], classes: tuple[str, ...]) -> Samples:
    """A data set fetched by scikit-learn from OpenML, or from scikit-learn's own cache of it."""
    from sklearn.datasets import fetch_openml

    try:
        # labels as text: scikit-learn 1.9 fails on the whole numbers of pandas 3.1 categories
        labels_as_text = {"dtype": {math.prod(shape): str}}
        bunch = fetch_openml(
            name, version=1, as_frame=False, n_retries=1, read_csv_kwargs=labels_as_text
        )
    except (OSError, ValueError) as error:
        raise DataError(
            f"data set {name} is not here and cannot be fetched from OpenML "
            f"({str(error).rstrip('.')}): set EDGESIM_DATA or --data to a folder with the IDX "
            "files in mnist/ or fashion-mnist/, or with the binary batches in cifar-10-batches-bin/"
        ) from error
    pixels, labels = bunch.data.reshape(-1, *shape), bunch.target.astype(np.int64)
    return Samples(
        labels[:train],
        labels[train:],
        lambda: (to_unit(pixels[:train]), to_unit(pixels[train:])),
        shape,
        classes,
    )
