"""Decode picture files once into the arrays that data sets are read from.

    python -m fl.data.decode_pictures tiny-imagenet-200 ROOT/tiny-imagenet
    python -m fl.data.decode_pictures CINIC-10 ROOT/cinic10 [--only-imagenet]

The folders are those that the official archives unpack to. Bytes are kept as bytes: x [N, 3, H, W]
uint8. Each array is written under another name first, so that what was interrupted is no data set.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from fl.contracts import Array
from fl.data.file_readers import check_balance
from fl.errors import DataError

Labelled = list[tuple[Path, int]]  # picture files and their classes
FROM_CIFAR = "cifar10-"  # how CINIC-10 names the pictures that it takes from CIFAR-10


def tiny_imagenet(folder: Path) -> tuple[Labelled, Labelled, tuple[str, ...], int]:
    """Tiny-ImageNet: training and validation pictures, classes in the order of wnids.txt, side 64.

    The official test pictures have no labels: the validation pictures, with the labels of
    val_annotations.txt, are tested on.
    """
    classes = tuple(lines(folder / "wnids.txt"))
    number = {name: i for i, name in enumerate(classes)}
    train = [
        (path, label)
        for name, label in number.items()
        for path in pictures(folder / "train" / name / "images")
    ]
    test = []
    annotations = folder / "val" / "val_annotations.txt"
    for count, line in enumerate(lines(annotations), start=1):
        file, name, *_ = [*line.split("\t"), ""]
        if name not in number:
            raise DataError(f'{annotations}:{count}: class "{name}" is not in wnids.txt')
        test.append((folder / "val" / "images" / file, number[name]))
    return train, test, classes, 64


def cinic10(
    folder: Path, only_imagenet: bool = False
) -> tuple[Labelled, Labelled, tuple[str, ...], int]:
    """CINIC-10: its parts train and test, classes by name, side 32.

    Args:
        folder: with train/ and test/.
        only_imagenet: leave out the pictures that come from CIFAR-10.
    """
    classes = tuple(sorted(path.name for path in (folder / "train").iterdir() if path.is_dir()))
    train, test = (
        [
            (path, label)
            for label, name in enumerate(classes)
            for path in pictures(folder / part / name)
            if not (only_imagenet and path.name.startswith(FROM_CIFAR))
        ]
        for part in ("train", "test")
    )
    return train, test, classes, 32


def lines(path: Path) -> list[str]:
    """The lines of a text file that are not empty."""
    try:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def pictures(folder: Path) -> list[Path]:
    """The picture files of a folder, by name."""
    if not folder.is_dir():
        raise DataError(f"{folder} is missing: the archive is not unpacked completely")
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in (".jpeg", ".png"))


def decoded(files: Sequence[tuple[Path, int]], side: int) -> Array:
    """Pictures, grey ones as equal planes [N, 3, side, side] uint8."""
    from PIL import Image

    out = np.empty((len(files), 3, side, side), dtype=np.uint8)
    for place, (path, _) in zip(out, files, strict=True):
        try:
            with Image.open(path) as picture:
                pixels = np.asarray(picture.convert("RGB"))
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise DataError(f"{path} is no picture: {error}") from error
        if pixels.shape != (side, side, 3):
            size = "x".join(map(str, pixels.shape[:2]))
            raise DataError(f"{path} is a picture of {size}; expected {side}x{side}")
        place[:] = pixels.transpose(2, 0, 1)
    return out


def write(folder: Path, arrays: Iterable[tuple[str, Array]]) -> None:
    """Write the arrays as NAME.npy; x_train, by which a data set is known, should come last."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays:
        waiting = folder / f"{name}.npy.part"
        with open(waiting, "wb") as file:
            np.save(file, array, allow_pickle=False)
        os.replace(waiting, folder / f"{name}.npy")


def decode(source: Path, target: Path, only_imagenet: bool = False) -> tuple[int, int]:
    """Decode an unpacked archive; the numbers of training and test pictures.

    Raises:
        DataError: it is neither of the two, not complete, or a file is no such picture.
    """
    if (source / "wnids.txt").is_file():
        train, test, classes, side = tiny_imagenet(source)
    elif (source / "train").is_dir() and (source / "test").is_dir():
        train, test, classes, side = cinic10(source, only_imagenet)
    else:
        raise DataError(
            f"{source} is neither tiny-imagenet-200 (with wnids.txt) nor CINIC-10 (with train/ and "
            "test/)"
        )
    if not train or not test:
        raise DataError(f"{source} holds {len(train)} training and {len(test)} test pictures")
    for part in (train, test):
        counts = np.bincount([label for _, label in part], minlength=len(classes))
        check_balance(source, counts, classes)
    labels = [np.array([label for _, label in part], dtype=np.int64) for part in (train, test)]
    arrays = (
        ("classes", lambda: np.array(classes)),
        ("y_train", lambda: labels[0]),
        ("y_test", lambda: labels[1]),
        ("x_test", lambda: decoded(test, side)),
        ("x_train", lambda: decoded(train, side)),
    )
    write(target, ((name, make()) for name, make in arrays))
    return len(train), len(test)


def main() -> int:
    """The command; exit code 2 with one sentence where something is wrong."""
    parser = argparse.ArgumentParser(description="Decode Tiny-ImageNet or CINIC-10 into arrays.")
    parser.add_argument("source", type=Path, help="the unpacked archive")
    parser.add_argument("target", type=Path, help="folder of the arrays")
    parser.add_argument("--only-imagenet", action="store_true", help="CINIC-10 without CIFAR-10")
    options = parser.parse_args()
    try:
        train, test = decode(options.source, options.target, options.only_imagenet)
    except (DataError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{options.target}: {train} training and {test} test pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
