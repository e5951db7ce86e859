"""Data of the user's own: named arrays or torch data sets, checked and made into `Samples`.

The names are the same in a dict, in an .npz file and as files of a folder: x_train, y_train,
x_test, y_test; optionally clients_train and clients_test (who holds each sample) and classes (the
names of the labels).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from fl.contracts import Array
from fl.data.given_arrays import NEEDED, as_array, parts_of
from fl.data.own_labels import StoredArray, clients_of, labels_of
from fl.data.samples import Samples, to_unit
from fl.errors import DataError

OPTIONAL = ("clients_train", "clients_test", "classes")
CODES = "codes of characters"
CHANNELS = (1, 3, 4)  # of pictures: grey, RGB, RGBA
CHANNELS_LAST = (
    "with the channels last; give [N, channels, height, width]: numpy.moveaxis(x, -1, 1)"
)


def own_samples(given: Any, source: str) -> Samples:
    """Data in memory as `Samples`.

    Args:
        given: a dict of arrays, four arrays (x_train, y_train, x_test, y_test), or two pairs (x, y)
            of arrays or torch data sets (train, test), whose items are (x, y) or (x, y, client); a
            dict may hold them as train and test, beside classes.
        source: what errors call the data, such as "./mine.py:load".

    Raises:
        DataError: one sentence on the first thing that is wrong.
    """
    if isinstance(given, Samples):
        return given
    parts = parts_of(given, source)
    return samples_of(
        {name: in_memory(as_array(value, f"{source}: {name}")) for name, value in parts}, source
    )


def in_memory(array: Array) -> StoredArray:
    return StoredArray(array.shape, array.dtype, lambda: array)


def samples_of(arrays: Mapping[str, StoredArray], source: str) -> Samples:
    """Named arrays as `Samples`; x is read and looked at only when it is used.

    Raises:
        DataError: an array is missing, has no such name, or does not fit the others.
    """
    check_names(arrays, source)
    shapes = [sample_shape(arrays[name], f"{source}: {name}") for name in ("x_train", "x_test")]
    if shapes[0] != shapes[1]:
        raise DataError(f"{source}: samples of x_train are {shapes[0]}, of x_test {shapes[1]}")
    meanings = [meaning_of(arrays[name].dtype) for name in ("x_train", "x_test")]
    if meanings[0] != meanings[1]:
        raise DataError(
            f"{source}: x_train is {arrays['x_train'].dtype} ({meanings[0]}), x_test is "
            f"{arrays['x_test'].dtype} ({meanings[1]}); give both of one kind"
        )
    check_rows(arrays, source)
    y_train, y_test, classes = labels_of(arrays, source)
    x_train, x_test = arrays["x_train"], arrays["x_test"]

    def images() -> tuple[Array, Array]:
        return (
            prepared(x_train.read(), f"{source}: x_train"),
            prepared(x_test.read(), f"{source}: x_test"),
        )

    ids, owners = clients_of(arrays, source) or (None, None)
    codes = meanings[0] == CODES
    return Samples(y_train, y_test, images, shapes[0], classes, owners, codes, ids)


def meaning_of(dtype: np.dtype) -> str:
    """What the numbers of samples are taken for."""
    if dtype == np.uint8:
        return "bytes of pictures"
    return CODES if dtype.kind in "iu" else "real numbers"


def check_names(arrays: Mapping[str, StoredArray], source: str) -> None:
    for name in NEEDED:
        if name not in arrays:
            raise DataError(f"{source} has no {name}; it needs {', '.join(NEEDED)}")
    for name in arrays:
        if name not in (*NEEDED, *OPTIONAL):
            near = get_close_matches(name, (*NEEDED, *OPTIONAL), n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(NEEDED)}"
            more = "" if near else f" and, if wanted, {', '.join(OPTIONAL)}"
            raise DataError(f"{source} has {name}, which is not known; {hint}{more}")


def check_rows(arrays: Mapping[str, StoredArray], source: str) -> None:
    """As many labels, and clients, as samples."""
    for part in ("train", "test"):
        rows = arrays[f"x_{part}"].shape[0]
        if rows == 0:
            raise DataError(f"{source}: x_{part} holds no sample")
        for kind in ("y", "clients"):
            other = arrays.get(f"{kind}_{part}")
            if other is not None and (not other.shape or other.shape[0] != rows):
                found = other.shape[0] if other.shape else "no"
                raise DataError(
                    f"{source}: {kind}_{part} has {found} rows, but x_{part} has {rows} samples"
                )


def sample_shape(array: StoredArray, source: str) -> tuple[int, ...]:
    """The shape of one sample as the model sees it: grey pictures [H, W] get their channel."""
    if array.dtype.kind not in "fiub":
        raise DataError(f"{source} is of type {array.dtype}; give numbers")
    shape = array.shape[1:]
    if not shape:
        found = f"[{array.shape[0]}]" if array.shape else "a single number"
        raise DataError(f"{source} has shape {found}; give [N, ...], one row a sample")
    if 0 in shape:
        raise DataError(f"{source} has shape {list(array.shape)}, in which nothing is left")
    if array.dtype == np.uint8 and len(shape) == 2:
        return (1, *shape)
    if array.dtype == np.uint8 and channels_last(shape):
        raise DataError(f"{source} has shape {list(array.shape)} {CHANNELS_LAST}")
    return shape


def channels_last(shape: Sequence[int]) -> bool:
    """Is one sample a picture [height, width, channels]?"""
    return len(shape) == 3 and shape[-1] in CHANNELS and shape[0] not in CHANNELS


def prepared(x: Array, source: str) -> Array:
    """Samples as a model reads them: float32, or int64 where they are codes.

    Bytes are pictures, [0, 255] -> [0, 1].

    Raises:
        DataError: a value is not finite, or a code is negative.
    """
    if x.dtype == np.uint8:
        return to_unit(x[:, None] if x.ndim == 3 else x)
    if x.dtype.kind in "iu":
        if x.min() < 0:
            raise DataError(f"{source} holds whole numbers, so codes from 0 on; found {x.min()}")
        return x.astype(np.int64)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        x = x.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(x).reshape(len(x), -1).all(axis=1))
    if len(bad):
        do = "1 sample does" if len(bad) == 1 else f"{len(bad)} samples do"
        raise DataError(f"{source}: sample {bad[0]} holds a value that is not finite ({do})")
    return x


def own_arrays(samples: Samples) -> dict[str, Array]:
    """The named arrays of which `samples_of` makes the same data."""
    x_train, x_test = samples.images()
    arrays = {"x_train": x_train, "y_train": samples.y_train}
    arrays |= {"x_test": x_test, "y_test": samples.y_test}
    if samples.classes:
        arrays["classes"] = np.array(samples.classes)
    for part, clients in zip(("train", "test"), samples.owners or (), strict=False):
        if clients is not None:
            ids = samples.clients
            arrays[f"clients_{part}"] = clients if ids is None else ids[clients]
    return arrays


def content_digest(arrays: Sequence[Array]) -> bytes:
    """SHA-256 over type, shape and content of arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{array.dtype} {array.shape}".encode())
        total.update(np.ascontiguousarray(array).data)
    return total.digest()
