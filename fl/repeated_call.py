"""A pure function of arrays whose last value is kept: rounds often ask the same again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

Value = TypeVar("Value")


class RepeatedCall(Generic[Value]):
    """The value of a pure function, computed again only where an argument has changed.

    (`functools.lru_cache` needs arguments that can be hashed.) Arguments are copied, so that they
    may be overwritten later.
    """

    def __init__(self) -> None:
        self._last: tuple[list[np.ndarray], Value] | None = None

    def __call__(self, arguments: Sequence[Any], compute: Callable[[], Value]) -> Value:
        """The value for these arguments: the last one where they are the same, else a new one.

        Args:
            arguments: all that the value depends on, numbers or arrays.
            compute: makes the value; what it raises is raised at each call.
        """
        given = [np.asarray(each) for each in arguments]
        if self._last is None or not _same(given, self._last[0]):
            self._last = [np.array(each) for each in given], compute()
        return self._last[1]


def _same(given: Sequence[np.ndarray], kept: Sequence[np.ndarray]) -> bool:
    return len(given) == len(kept) and all(
        a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b)
        for a, b in zip(given, kept, strict=True)
    )
