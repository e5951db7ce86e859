"""Files of the user's own arrays: an .npz file, or a folder of .npy files. They run no code."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from fl.data.given_arrays import NEEDED
from fl.data.own_data import OPTIONAL, samples_of
from fl.data.own_labels import StoredArray
from fl.data.samples import Samples
from fl.errors import DataError
from fl.regular_files import MAX_DATA_BYTES, open_regular

HOW = "numpy.savez(file, x_train=..., y_train=..., x_test=..., y_test=...) writes such a file"
DAMAGED = (  # a RuntimeError: an archive is encrypted, or packed by a method that there is not
    *(OSError, ValueError, EOFError, KeyError, MemoryError, RuntimeError),
    *(zlib.error, zipfile.BadZipFile),
)


def is_array_file(dataset: str) -> bool:
    """Does the name of a data set stand for an .npz file or a folder?"""
    return ".py:" not in dataset and (dataset.endswith(".npz") or "/" in dataset)


def array_paths(path: Path) -> list[Path]:
    """The files that hold the arrays: the .npz file itself, or the known .npy files of a folder.

    Raises:
        DataError: there is no such regular file or folder.
    """
    if path.is_dir():
        found = sorted(file for file in path.glob("*.npy") if file.is_file())
        if not found:
            names = ", ".join(f"{name}.npy" for name in NEEDED)
            raise DataError(f"{path} is a folder without .npy files; it needs {names}")
        return found
    if not path.exists():
        raise DataError(f"there is no file or folder {path}")
    if not path.is_file():
        raise DataError(f"{path} is no regular file")
    if path.suffix == ".py":
        raise DataError(f"{path} is code; name its function, ./{path.name}:load")
    if path.suffix != ".npz":
        raise DataError(f"{path} is no .npz file and no folder of .npy files; {HOW}")
    return [path]


def read_array_files(path: Path) -> Samples:
    """The data of an .npz file or a folder of .npy files; of x only the header is read at first.

    Raises:
        DataError: one sentence on the first thing that is wrong.
    """
    paths = array_paths(path)
    if path.is_dir():
        arrays = {file.stem: stored(file, f"{path}: {file.stem}", None) for file in paths}
        known = {name: each for name, each in arrays.items() if name in (*NEEDED, *OPTIONAL)}
        return samples_of(known, str(path))
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if name.endswith(".npy")]
    except DAMAGED as error:
        raise DataError(f"{path} is no .npz file ({error}); {HOW}") from error
    return samples_of(
        {name[:-4]: stored(path, f"{path}: {name[:-4]}", name) for name in members}, str(path)
    )


def check_values(path: Path) -> None:
    """Read the samples too; once for each state of the files, as every point of a sweep asks.

    Raises:
        DataError: a value is not finite, or a code is negative; or they cannot be read.
    """
    found = ((file, file.stat()) for file in array_paths(path))
    _check_values(path, *((file, s.st_size, s.st_mtime_ns, s.st_ino) for file, s in found))


@lru_cache(maxsize=1024)
def _check_values(path: Path, *stamps: tuple[Path, int, int, int]) -> None:
    read_array_files(path).images()


def npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The content of an .npz file; the same arrays always give the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return content.getvalue()


def stored(path: Path, source: str, member: str | None) -> StoredArray:
    """An array of a file, or of one member of an .npz file; only its header is read here."""
    shape, dtype = opened(path, member, source, header_of)
    if dtype.hasobject:
        problem = "has the dtype object, and reading Python objects could run code"
        raise DataError(
            f"{source} {problem}; save numbers, all rows equally long, or words as x.astype(str)"
        )

    def read() -> np.ndarray:
        array = opened(path, member, source, lambda file: np.lib.format.read_array(file))
        if array.shape != shape or array.dtype != dtype:
            raise DataError(f"{source} has changed since it was looked at")
        return array

    return StoredArray(shape, dtype, read)


def opened(path: Path, member: str | None, source: str, use: Callable[[IO[bytes]], Any]) -> Any:
    """What ``use`` makes of the open file; its errors name the array."""
    try:
        if member is None:
            with open_regular(path, MAX_DATA_BYTES) as file:
                return use(file)
        with (
            open_regular(path, MAX_DATA_BYTES) as content,
            zipfile.ZipFile(content) as archive,
            archive.open(member) as packed,
        ):
            return use(packed)
    except DAMAGED as error:
        raise DataError(f"{source} cannot be read: {str(error).rstrip('.')}") from error


def header_of(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of an .npy file."""
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"version {version} of the .npy format is not read")
    shape, _, dtype = readers[version](file)
    return shape, dtype
