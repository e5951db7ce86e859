"""Named arrays of what a user gives as data: a dict, arrays, or two torch data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fl.contracts import Array
from fl.errors import DataError

NEEDED = ("x_train", "y_train", "x_test", "y_test")
FORMS = (
    "a dict of arrays (x_train, y_train, x_test, y_test), these four in this order, or two torch "
    "data sets or pairs (x, y) of arrays (train, test)"
)


def parts_of(given: Any, source: str) -> list[tuple[str, Any]]:
    """Name and content of each array that was given; torch data sets are read."""
    if isinstance(given, tuple | list) and len(given) in (2, 4):
        given = dict(zip(("train", "test") if len(given) == 2 else NEEDED, given, strict=True))
    if not isinstance(given, Mapping):
        raise DataError(f"{source} gives {type(given).__name__}; give {FORMS}")
    parts: list[tuple[str, Any]] = []
    for name, value in given.items():
        if name in ("train", "test"):
            columns = columns_of(value, f"{source}: {name}")
            parts += [(f"{kind}_{name}", column) for kind, column in columns.items()]
            names: Any = getattr(value, "classes", None)  # often their number
            listed = isinstance(names, list | tuple | Mapping | np.ndarray)
            # a data set keeps its classes where it makes real targets of the labels
            listed = listed and as_array(columns["y"], f"{source}: y_{name}").dtype.kind != "f"
            if "classes" not in given and name == "train" and listed:
                parts.append(("classes", list(names)))
        else:
            parts.append((str(name), value))
    return parts


def columns_of(data: Any, source: str) -> dict[str, Any]:
    """x, y and, where there is a third part, clients of a torch data set or a tuple of arrays."""
    if is_an_array(data):
        raise DataError(f"{source} is one array, without labels or without test data; give {FORMS}")
    if is_tensors(data):
        tensors = data.tensors
    elif isinstance(data, tuple) and all(map(is_an_array, data)):
        tensors = data
    else:
        items = items_of(data, source)
        tensors = [stacked(list(column), source) for column in zip(*items, strict=True)]
    if len(tensors) not in (2, 3):
        raise DataError(f"{source} has {len(tensors)} tensors; give x and y, and clients or not")
    return dict(zip(("x", "y", "clients"), tensors, strict=False))


def is_an_array(data: Any) -> bool:
    """Of numpy, torch or others? A data set of the user's own may have a shape, too."""
    return hasattr(data, "shape") and hasattr(data, "__array__")


def is_tensors(data: Any) -> bool:
    """Are the items of a data set the rows of its tensors? Those of a subclass may be others."""
    if not hasattr(data, "tensors"):
        return False
    from torch.utils.data import TensorDataset

    return type(data) is TensorDataset


def items_of(data: Any, source: str) -> list[Any]:
    """The items of a data set, all (x, y) or all (x, y, client)."""
    try:
        count = -1 if isinstance(data, Mapping) else len(data)
    except (TypeError, ValueError):
        count = -1
    if count < 0 or not hasattr(data, "__getitem__"):
        problem = "a data set with a length whose items are (x, y)"
        raise DataError(f"{source} is {type(data).__name__}; give {problem}")
    if not count:
        raise DataError(f"{source} holds no sample")
    items = [data[i] for i in range(count)]
    for i, item in enumerate(items):
        if not isinstance(item, tuple | list) or len(item) not in (2, 3):
            raise DataError(f"{source}: item {i} is {type(item).__name__}; give (x, y) pairs")
        if len(item) != len(items[0]):
            found = f"item {i} has {len(item)} parts, item 0 has {len(items[0])}"
            raise DataError(f"{source}: {found}; give (x, y) or (x, y, client) throughout")
    return items


def stacked(values: list[Any], source: str) -> Array:
    """Items of one shape as an array [N, ...]."""
    arrays = [as_array(value, source) for value in values]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        first, second = sorted(shapes)[:2]
        raise DataError(f"{source}: items have different shapes, such as {first} and {second}")
    return np.stack(arrays) if arrays else np.zeros(0)


def as_array(value: Any, source: str) -> Array:
    """A numpy array, from a torch tensor, numbers or a picture too."""
    if np.ma.is_masked(value):  # as an array they would be what lies behind the mask
        raise DataError(f"{source} has masked values, which are no data; give x.filled(0) or so")
    try:
        if hasattr(value, "detach"):  # a torch tensor, without importing torch
            value = value.detach().cpu().numpy()
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise DataError(f"{source} is no array ({error})") from error
    if array.dtype == object and all(isinstance(each, str) for each in array.flat):
        return array.astype(str)  # as pandas holds words
    if array.dtype == object:
        raise DataError(f"{source} is no array of numbers: its rows differ in length or in kind")
    return array
