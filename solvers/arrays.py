"""Numbers that a user gives, as checked arrays with one value per device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]
FINITE, EPS = float(np.finfo(float).max), float(np.finfo(float).eps)
NUMBERS = "give a number or an array of numbers, one per device"


def numbers(name: str, value: Any, advice: str = NUMBERS) -> Array:
    """A new array of floats; text, dates and masked values, which numpy would convert, are errors.

    Raises:
        ValueError: names the field, what was given and the advice.
    """
    try:
        given = np.asarray(value)
        is_object = given.dtype.kind == "O"
        words = is_object and any(isinstance(each, str | bytes) for each in given.flat)
        if np.ma.is_masked(value) or given.dtype.kind not in "biufO" or words:
            raise TypeError
        return np.array(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {_shown(value)}; {advice}.") from None


def _shown(value: Any) -> str:
    """The beginning of a value, on one line."""
    try:
        return f"{' '.join(repr(value).split()):.60}"
    except ValueError:  # Python does not print integers of more than some thousand digits
        return "a number of too many digits"


def broadcast(given: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """Every field as a read-only array [K]; at least one of them decides K.

    Raises:
        ValueError: the fields are not numbers, or their shapes do not fit.
    """
    arrays = {name: numbers(name, value) for name, value in given.items()}
    try:
        shape = np.broadcast_shapes((1,), *(a.shape for a in arrays.values()))
    except ValueError:
        shape = ()
    if len(shape) != 1 or shape[0] == 0:
        shapes = ", ".join(f"{name} {a.shape}" for name, a in arrays.items() if a.ndim)
        raise ValueError(
            f"The fields have shapes {shapes}; give every field one number or one value per device."
        )
    return {name: read_only(np.broadcast_to(a, shape)) for name, a in arrays.items()}


def read_only(values: Array) -> Array:
    """The same array, which can no longer be written to."""
    values.setflags(write=False)
    return values


def require(name: str, values: Array, good: Mask, allowed: str) -> None:
    """Raise ValueError with the first device for which `good` [K] is false."""
    if not good.all():
        k = int(np.argmin(good))
        raise ValueError(f"{name} of device {k} is {values[k]:g}; it must be {allowed}.")


def require_between(
    name: str, values: Array, low: float | Array, high: float | Array, allowed: str
) -> None:
    """Raise ValueError unless low <= values <= high."""
    require(name, values, (values >= low) & (values <= high), allowed)


def require_positive(name: str, values: Array) -> None:
    """Raise ValueError unless values are finite and above zero."""
    require(name, values, (values > 0.0) & (values <= FINITE), "finite and positive")
