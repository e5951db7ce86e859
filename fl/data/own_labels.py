"""Labels, real targets and clients of the user's own data, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fl.contracts import Array
from fl.errors import DataError


@dataclass(frozen=True)
class StoredArray:
    """An array whose shape and type are known before it is read."""

    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[[], Array]


def labels_of(
    arrays: Mapping[str, StoredArray], source: str
) -> tuple[Array, Array, tuple[str, ...]]:
    """Labels int64 [N] and the names of their classes; or real targets float32 [N, outputs]."""
    y_train, y_test = arrays["y_train"].read(), arrays["y_test"].read()
    each = {"y_train": y_train, "y_test": y_test}
    kinds = {name: y.dtype.kind for name, y in each.items()}
    if all(kind == "f" for kind in kinds.values()):
        if "classes" in arrays:
            problem = "classes names labels, but y_train and y_test hold real targets"
            raise DataError(f"{source}: {problem}; give y.astype(int), or remove classes")
        return (*targets_of(each, source), ())
    for name, y in each.items():
        if kinds[name] not in "iu":
            raise DataError(
                f"{source}: {name} is of type {y.dtype}; give whole numbers (labels from 0 on) in "
                "both, or real numbers (targets) in both"
            )
        if y.ndim != 1:
            raise DataError(f"{source}: {name} has shape {list(y.shape)}; labels are [N]")
        if y.min() < 0:
            raise DataError(f"{source}: {name} holds the label {y.min()}; labels count from 0")
    most = int(max(y_train.max(), y_test.max()))
    if "classes" in arrays:
        stored = arrays["classes"].read()
        names = tuple(str(name) for name in np.atleast_1d(stored).tolist())
        if most >= len(names):
            raise DataError(f"{source}: the label {most} has no name: classes has {len(names)}")
    else:
        if most >= len(y_train) + len(y_test):
            problem = f"the label {most} is larger than the number of samples"
            raise DataError(f"{source}: {problem}; labels count the classes from 0 on")
        names = tuple(map(str, range(most + 1)))
    return y_train.astype(np.int64), y_test.astype(np.int64), names


def targets_of(each: Mapping[str, Array], source: str) -> tuple[Array, Array]:
    """Real targets as float32 [N, outputs]."""
    found = []
    for name, y in each.items():
        if 0 in y.shape:
            raise DataError(f"{source}: {name} has shape {list(y.shape)}, which holds no target")
        with np.errstate(over="ignore"):
            flat = y.astype(np.float32).reshape(len(y), -1)
        if y.ndim > 2 or not np.isfinite(flat).all():
            what = f"has shape {list(y.shape)}" if y.ndim > 2 else "holds values that are no number"
            raise DataError(f"{source}: {name} {what}; targets are finite, [N] or [N, outputs]")
        found.append(flat)
    if found[0].shape[1] != found[1].shape[1]:
        outputs = " and ".join(str(y.shape[1]) for y in found)
        raise DataError(f"{source}: y_train and y_test have {outputs} outputs")
    return found[0], found[1]


def clients_of(
    arrays: Mapping[str, StoredArray], source: str
) -> tuple[Array, tuple[Array, Array | None]] | None:
    """The ids in their order, and the place in it of each sample's client (train, test), int64 [N].

    Numbers are in the order of numbers, words in that of texts: user10 stands before user2.
    """
    if "clients_train" not in arrays:
        if "clients_test" in arrays:
            raise DataError(f"{source} has clients_test, but no clients_train")
        return None
    given: list[Array] = []
    for name in ("clients_train", "clients_test"):
        if name in arrays:
            ids = arrays[name].read()
            if ids.ndim != 1 or ids.dtype.kind not in "iuU":
                problem = "give the id of each sample's client, whole numbers or words [N]"
                raise DataError(f"{source}: {name} is {ids.dtype} {list(ids.shape)}; {problem}")
            given.append(ids)
    kinds = ["words" if ids.dtype.kind == "U" else "whole numbers" for ids in given]
    if len(set(kinds)) > 1:
        found = f"clients_train holds {kinds[0]}, clients_test {kinds[1]}"
        raise DataError(f"{source}: {found}; give both of one kind")
    known, numbers = np.unique(given[0], return_inverse=True)
    if len(given) == 1:
        return known, (numbers.astype(np.int64), None)
    # In one type, as int64 beside uint64 would become real numbers, which mix up large ones.
    tested = given[1].astype(known.dtype)
    strange = given[1][(tested != given[1]) | ~np.isin(tested, known)]
    if len(strange):
        raise DataError(f"{source}: client {strange[0]} of clients_test has no training sample")
    return known, (numbers.astype(np.int64), np.searchsorted(known, tested).astype(np.int64))
